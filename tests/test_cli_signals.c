/* tests/test_cli_signals.c - a test that faults is survived, and leaves the handlers as they were. */
#include "../cli/signals.c" /* the program is no library */

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static bool says_yes(const char *arg) {
    return arg[0] == 'y';
}

static bool faults(const char *arg) {
    raise(arg[0] == 'i' ? SIGILL : SIGSEGV);
    return true;
}

static void mine(int number) {
    (void)number;
}

static void test_faults_are_survived(void **unused) {
    (void)unused;
    struct sigaction set = {.sa_handler = mine}, got;
    bool result = false;
    sigaction(SIGILL, &set, NULL);
    assert_false(nib_cli_signals_survive(faults, "i", &result));
    assert_false(nib_cli_signals_survive(faults, "s", &result));
    assert_true(nib_cli_signals_survive(says_yes, "y", &result) && result);
    assert_true(nib_cli_signals_survive(says_yes, "n", &result) && !result);
    sigaction(SIGILL, NULL, &got);
    assert_ptr_equal(got.sa_handler, mine);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_faults_are_survived)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
