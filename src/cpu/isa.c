/* cpu/isa.c - the levels of this build, best first, and whether the machine can run them.
 *
 * A level counts only when the processor has its instructions and the operating system saves the registers (XCR0 of
 * x86, the hardware capabilities that Linux reports on ARM). */
#include "cpu/isa.h"

#include "base/status.h"
#include "base/sys.h"
#include "cpu/amx_test.h"
#include "cpu/kern/mm.h"
#include "cpu/ops.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>

/* Bits of XCR0: state that the operating system saves; 0 when it does not say. */
static unsigned saved_state(void) {
    unsigned a, b, c, d, lo, hi;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return 0;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return lo;
}

enum { STATE_AVX = 0x06, STATE_AVX512 = 0xe6, STATE_TILES = 0x60000 };

static bool usable_avx2(void) {
    unsigned a, b, c, d;
    if ((saved_state() & STATE_AVX) != STATE_AVX) return false;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_FMA) || !(c & bit_F16C)) return false;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_AVX2);
}

static bool usable_avxvnni(void) {
    unsigned a, b, c, d;
    const unsigned avx_vnni = 1u << 4; /* leaf 7, sub-leaf 1, EAX */
    return usable_avx2() && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & avx_vnni);
}

static bool usable_avx512(void) {
    unsigned a, b, c, d;
    const unsigned ebx = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
    if ((saved_state() & STATE_AVX512) != STATE_AVX512 || !usable_avx2()) return false;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & ebx) == ebx && (c & bit_AVX512VNNI);
}

static bool has_amx(void) {
    unsigned a, b, c, d;
    const unsigned edx = 1u << 24 | 1u << 25; /* AMX-TILE, AMX-INT8 */
    return usable_avx512() && (saved_state() & STATE_TILES) == STATE_TILES &&
           __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & edx) == edx;
}

static bool usable_amx(void) {
#if defined(NIB_TILES_HEADER)
    return usable_avx512() && nib_cpu_amx_test(nib_cpu_amx_multiply);
#else
    return has_amx() && nib_sys_permit_tiles() && nib_cpu_amx_test(nib_cpu_amx_multiply);
#endif
}
#endif

#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>

static bool usable_neon(void) {
    return getauxval(AT_HWCAP) & HWCAP_ASIMDDP;
}

static bool usable_neon_i8mm(void) {
    return usable_neon() && getauxval(AT_HWCAP2) & HWCAP2_I8MM;
}
#endif

static bool usable_always(void) {
    return true;
}

/* X(name, usable, ops, mm, q16), best first. */
#if defined(__x86_64__)
#define LEVELS_X86(X)                                                                                                  \
    X(amx, usable_amx, nib_cpu_ops_avx512, nib_cpu_mm_amx, nib_cpu_q16_avx512)                                         \
    X(avx512, usable_avx512, nib_cpu_ops_avx512, nib_cpu_mm_avx512, nib_cpu_q16_avx512)                                \
    X(avxvnni, usable_avxvnni, nib_cpu_ops_avx2, nib_cpu_mm_avxvnni, nib_cpu_q16_avxvnni)                              \
    X(avx2, usable_avx2, nib_cpu_ops_avx2, nib_cpu_mm_avx2, nib_cpu_q16_avx2)
#else
#define LEVELS_X86(X)
#endif
#if defined(__aarch64__) && defined(__linux__)
#define LEVELS_ARM(X)                                                                                                  \
    X(neon_i8mm, usable_neon_i8mm, nib_cpu_ops_neon, nib_cpu_mm_neon_i8mm, nib_cpu_q16_neon)                           \
    X(neon, usable_neon, nib_cpu_ops_neon, nib_cpu_mm_neon, nib_cpu_q16_neon)
#else
#define LEVELS_ARM(X)
#endif
#define LEVELS(X) LEVELS_X86(X) LEVELS_ARM(X) X(scalar, usable_always, nib_cpu_ops_scalar, nib_cpu_mm_scalar, nib_cpu_q16_scalar)

#define LEVEL(name, usable, ops, mm, q16) {#name, usable, &ops, &mm, &q16},
#define NAME(name, usable, ops, mm, q16) #name,
static const nib_cpu_isa levels[] = {LEVELS(LEVEL)};
static const char *const names[] = {LEVELS(NAME) NULL};
enum { N_LEVELS = sizeof levels / sizeof levels[0] };

static const nib_cpu_isa *by_name(const char *name) {
    for (size_t i = 0; i < N_LEVELS; i++)
        if (strcmp(levels[i].name, name) == 0) return &levels[i];
    return NULL;
}

nib_status nib_cpu_isa_find(const nib_cpu_isa **out, const char *name, nib_error *err) {
    *out = NULL;
    if (!name) {
        size_t i = 0;
        while (!levels[i].usable()) i++;
        *out = &levels[i];
        return NIB_OK;
    }
    const nib_cpu_isa *isa = by_name(name);
    if (!isa) {
        char list[128] = "";
        for (size_t i = 0; i < N_LEVELS; i++) {
            if (i) strcat(list, ", ");
            strcat(list, levels[i].name);
        }
        return nib_fail(err, NIB_E_ARG, "no instruction set level '%s' in this build: it has %s", name, list);
    }
    if (!isa->usable())
        return nib_fail(err, NIB_E_UNSUPPORTED, "this machine cannot run the instruction set level '%s'", name);
    *out = isa;
    return NIB_OK;
}

const nib_cpu_isa *nib_cpu_isa_scalar(void) {
    return &levels[N_LEVELS - 1];
}

const char *const *nib_isa_names(void) {
    return names;
}

const char *nib_isa_trouble(void) {
#if defined(__x86_64__)
    if (has_amx() && !nib_sys_permit_tiles()) return "the kernel does not permit the processor's AMX tiles";
    if (has_amx() && !usable_amx()) return "the processor's AMX tiles give wrong results";
#endif
    return NULL;
}

bool nib_isa_usable(const char *isa) {
    const nib_cpu_isa *level = isa ? by_name(isa) : NULL;
    return level && level->usable();
}
