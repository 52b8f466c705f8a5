/* tests/support/slow.h - whether this build runs tests many times slower than usual: they take fewer combinations then.
 *
 * A sanitizer looks for broken memory, which shows in less than all combinations. An emulator (NIB_EMULATED, set when tests
 * are built for another processor) stands in for a machine where everything runs. */
#ifndef NIB_TESTS_SUPPORT_SLOW_H
#define NIB_TESTS_SUPPORT_SLOW_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#define IS_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define IS_SANITIZED 0
#endif

#if defined(NIB_EMULATED)
#define IS_EMULATED 1
#else
#define IS_EMULATED 0
#endif

#define IS_SLOW (IS_SANITIZED || IS_EMULATED)

#endif
