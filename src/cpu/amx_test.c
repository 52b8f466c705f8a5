/* cpu/amx_test.c - compares tile products with plain integers, before anything relies on them.
 *
 * A flag of the processor proves nothing: virtual machines have claimed tiles that they could not run. Signal handlers
 * belong to the whole process, so what stands here while a test runs is the one thing that threads share. */
#include "cpu/amx_test.h"

#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

enum { N_SIGNALS = 3 };
static const int signals[N_SIGNALS] = {SIGILL, SIGSEGV, SIGBUS};

static atomic_flag busy = ATOMIC_FLAG_INIT;   /* one test at a time */
static struct sigaction previous[N_SIGNALS];  /* written while busy */
static _Thread_local sigjmp_buf *on_fault;    /* of the testing thread; NULL in all others */

static void handle(int number, siginfo_t *info, void *context) {
    if (on_fault) siglongjmp(*on_fault, 1);
    for (int i = 0; i < N_SIGNALS; i++) {
        if (signals[i] != number) continue;
        const struct sigaction *p = &previous[i];
        if (p->sa_flags & SA_SIGINFO) p->sa_sigaction(number, info, context);
        else if (p->sa_handler == SIG_DFL || p->sa_handler == SIG_IGN) signal(number, SIG_DFL); /* it faults again */
        else p->sa_handler(number);
    }
}

static bool is_right(nib_cpu_amx_product multiply, int n_cols) {
    _Alignas(64) int8_t a[16][64], b[16][64];
    _Alignas(64) nib_cpu_amx_sums got;
    uint32_t random = 1;
    for (int i = 0; i < 16 * 64; i++) {
        random = random * 1664525u + 1013904223u;
        a[i / 64][i % 64] = (int8_t)(i % 5 ? random >> 24 : 0x7f);
        b[i / 64][i % 64] = (int8_t)(i % 7 ? random >> 16 : 0x80);
    }
    multiply(n_cols, a[0], b[0], &got);
    for (int t = 0; t < 16; t++)
        for (int r = 0; r < 16; r++) {
            int32_t s = 0, u = 0;
            for (int k = 0; k < n_cols; k++) {
                int8_t w = b[k / 4][4 * r + k % 4];
                s += a[t][k] * w;
                u += a[t][k] * (uint8_t)w;
            }
            if (got.both_signed[t][r] != s || got.b_unsigned[t][r] != u) return false;
        }
    return true;
}

bool nib_cpu_amx_test(nib_cpu_amx_product multiply) {
    struct sigaction ours = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigemptyset(&ours.sa_mask);
    while (atomic_flag_test_and_set(&busy)) {} /* some microseconds */
    for (int i = 0; i < N_SIGNALS; i++) sigaction(signals[i], &ours, &previous[i]);
    sigjmp_buf here;
    volatile bool right = false;
    if (sigsetjmp(here, 1) == 0) {
        on_fault = &here;
        right = is_right(multiply, 32) && is_right(multiply, 64);
    }
    on_fault = NULL;
    for (int i = 0; i < N_SIGNALS; i++) sigaction(signals[i], &previous[i], NULL);
    atomic_flag_clear(&busy);
    return right;
}
