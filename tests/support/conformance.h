/* tests/support/conformance.h - the folder walk of programs that read answers of other programs. */
#ifndef NIB_TESTS_SUPPORT_CONFORMANCE_H
#define NIB_TESTS_SUPPORT_CONFORMANCE_H

/* Calls run(folder, name) for every file whose name ends with suffix, in order, in the folder argv[1], or in `sub` of
 * $NIB_CONFORMANCE_DATA. Returns how many there were; -1, with a line that says so, when neither is given. */
int conformance_each(int argc, char **argv, const char *sub, const char *suffix,
                     void (*run)(const char *folder, const char *name));

#endif
