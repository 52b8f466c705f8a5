/* tests/support/level.h - which levels a test compares: all, or ONLY_LEVEL where a build is made for one of them. */
#ifndef NIB_TESTS_SUPPORT_LEVEL_H
#define NIB_TESTS_SUPPORT_LEVEL_H

#include <string.h>

#if defined(ONLY_LEVEL)
#define IS_WANTED(level) (strcmp(level, ONLY_LEVEL) == 0)
#else
#define IS_WANTED(level) ((level) != NULL)
#endif

#endif
