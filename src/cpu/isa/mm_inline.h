/* cpu/isa/mm_inline.h - private to the matrix kernels: how their templates are made.
 *
 * INL functions are templates: they are inlined whole and constant arguments folded. UNROLL stands before loops over
 * register arrays, which would live in memory otherwise. Under a sanitizer both do nothing: with checks in every copy
 * compiling would take minutes. */
#ifndef NIB_CPU_ISA_MM_INLINE_H
#define NIB_CPU_ISA_MM_INLINE_H

#if defined(__has_feature)
#define NIB_HAS_FEATURE(x) __has_feature(x)
#else
#define NIB_HAS_FEATURE(x) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || NIB_HAS_FEATURE(address_sanitizer) ||             \
    NIB_HAS_FEATURE(thread_sanitizer) || NIB_HAS_FEATURE(memory_sanitizer)
#define INL static inline
#define UNROLL
#else
#define INL static inline __attribute__((always_inline))
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#endif

#endif
