/* Operations on four bytes at once, for kernels that run on any core.
 *
 * If the compiler may use the SIMD instructions of CV32E40P (-mcpu=...+xcvsimd+xcvmem+xcvalu), kernels
 * use them and both hardware loops, so the core must be version 2 with COREV_PULP = 1; otherwise
 * everything is plain C with the same results.  A kernel may be interrupted; a handler or scheduler
 * that itself uses hardware loops, or calls a kernel, must save and restore the registers of both.
 * Words hold four int8 elements, the first in the lowest byte.
 */
#ifndef HTVM_SIMD_H
#define HTVM_SIMD_H

#include <stdint.h>

#if defined(__riscv_xcvsimd) && defined(__riscv_xcvmem) && defined(__riscv_xcvalu)
#define HTVM_SIMD 1
#else
#define HTVM_SIMD 0
#endif

/* Cortex-M cores with the DSP extension: their instructions multiply pairs of halfwords. */
#if defined(__ARM_FEATURE_DSP) && defined(__thumb2__)
#define HTVM_DSP 1
#include <arm_acle.h>
#else
#define HTVM_DSP 0
#endif

/* RISC-V cores with vectors of at least 128 bits. */
#if defined(__riscv_vector) && defined(__riscv_v_min_vlen) && __riscv_v_min_vlen >= 128
#define HTVM_RVV 1
#if (defined(__clang__) && __clang_major__ < 17) ||                                                \
    (defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 14)
#error "RISC-V's vectors need clang 17 or GCC 14; for plain C, compile for a core without them"
#endif
#include <riscv_vector.h>
#else
#define HTVM_RVV 0
#endif

/* Inlined always, so that constant arguments yield a specialized copy. */
#define HTVM_INLINE static inline __attribute__((always_inline, unused))

/* Called, never inlined: so that callers need not save the registers of rare or long parts. */
#define HTVM_CALLED static __attribute__((noinline))

/* The same for functions of headers, which a file may leave unused: one copy for all callers. */
#define HTVM_SHARED static __attribute__((noinline, unused))

/* And no copies for some of their arguments. */
#if defined(__clang__)
#define HTVM_ONCE HTVM_SHARED
#else
#define HTVM_ONCE static __attribute__((noinline, noclone, unused))
#endif

/* Before a loop: write it out this many times.  Compilers that do not know the pragma see none. */
#define HTVM_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define HTVM_UNROLL(times) HTVM_PRAGMA(unroll times)
#elif defined(__GNUC__) && __GNUC__ >= 8
#define HTVM_UNROLL(times) HTVM_PRAGMA(GCC unroll times)
#else
#define HTVM_UNROLL(times)
#endif

#if HTVM_SIMD || HTVM_DSP
/* Four bytes of whatever type. */
typedef uint32_t __attribute__((may_alias)) htvm_word_t;
#endif

#if defined(__thumb2__)
/* The longest loops in assembly need 13 or 14 registers, but compilers may keep r7 for frames, and
 * platforms r9: such a statement saves these two itself, so that no compiler has to give them up.  All
 * of its operands are given registers, lest they be in these. */
#define HTVM_BORROW "push {r7, r9}\n"
#define HTVM_RETURN "pop {r7, r9}\n"
#endif

#if HTVM_DSP
/* The same at any address: LDR reaches it, but no pair of such accesses may become LDRD or LDM. */
typedef struct __attribute__((packed, may_alias)) {
    uint32_t word;
} htvm_unaligned_t;

/* Rotates right by 8 bits, as part of the instruction that extends (GCC has no __ror). */
HTVM_INLINE uint32_t htvm_rotate8(uint32_t word)
{
    return word >> 8 | word << 24;
}
#endif

#if HTVM_SIMD
/* Begins a statement with hardware loops: loop 0 goes from label 3 to 4, and inside loop 1 from 2 to
 * 5.  It ends with .option pop.  .balign comes first, because GNU as ignores it behind norvc. */
#define HTVM_LOOPS                                                                                 \
    ".balign 4\n.option push\n.option norvc\n.option norelax\n"                                    \
    "1: .word 0x0000402b|(((3f-1b)>>2)<<20)\n" /* cv.starti 0 */                                   \
    "1: .word 0x0000422b|(((4f-1b)>>2)<<20)\n" /* cv.endi 0 */                                     \
    "1: .word 0x000040ab|(((2f-1b)>>2)<<20)\n" /* cv.starti 1 */                                   \
    "1: .word 0x000042ab|(((5f-1b)>>2)<<20)\n" /* cv.endi 1 */

/* The same with loop 0 only. */
#define HTVM_LOOP                                                                                  \
    ".balign 4\n.option push\n.option norvc\n.option norelax\n"                                    \
    "1: .word 0x0000402b|(((3f-1b)>>2)<<20)\n" /* cv.starti 0 */                                   \
    "1: .word 0x0000422b|(((4f-1b)>>2)<<20)\n" /* cv.endi 0 */
#endif

/* Returns the sum of the products of four int8 elements, plus `sum`; wraps around. */
HTVM_INLINE int32_t htvm_dot4(uint32_t a, uint32_t b, int32_t sum)
{
#if HTVM_SIMD
    __asm__("cv.sdotsp.b %0, %1, %2" : "+r"(sum) : "r"(a), "r"(b));
    return sum;
#elif HTVM_DSP
    const int8x4_t x = (int8x4_t)a, y = (int8x4_t)b;
    sum = __smlad(__sxtb16(x), __sxtb16(y), sum);
    return __smlad(__sxtb16((int8x4_t)htvm_rotate8(a)), __sxtb16((int8x4_t)htvm_rotate8(b)), sum);
#else
    uint32_t total = (uint32_t)sum;
    for (uint32_t i = 0; i < 32; i += 8) {
        total += (uint32_t)((int8_t)(uint8_t)(a >> i) * (int8_t)(uint8_t)(b >> i));
    }
    return (int32_t)total;
#endif
}

/* The same if the elements of `a` are uint8. */
HTVM_INLINE int32_t htvm_dot4_unsigned(uint32_t a, uint32_t b, int32_t sum)
{
#if HTVM_SIMD
    __asm__("cv.sdotusp.b %0, %1, %2" : "+r"(sum) : "r"(a), "r"(b));
    return sum;
#else
    uint32_t total = (uint32_t)sum;
    for (uint32_t i = 0; i < 32; i += 8) {
        total += (uint32_t)((int32_t)(a >> i & 255u) * (int8_t)(uint8_t)(b >> i));
    }
    return (int32_t)total;
#endif
}

/* Returns (value + add) >> shift, where the sum wraps around; shift is 0 to 31. */
HTVM_INLINE int32_t htvm_add_shift(int32_t value, int32_t add, uint32_t shift)
{
#if HTVM_SIMD
    __asm__("cv.addnr %0, %1, %2" : "+r"(value) : "r"(add), "r"(shift));
    return value;
#else
    return (int32_t)((uint32_t)value + (uint32_t)add) >> shift;
#endif
}

/* Returns the four bytes at any address; across words, SIMD cores take a cycle more. */
HTVM_INLINE uint32_t htvm_load4(const void *from)
{
    const uint8_t *const at = from;
#if HTVM_SIMD
    return *(const htvm_word_t *)at;
#elif HTVM_DSP
    return ((const htvm_unaligned_t *)at)->word;
#else
    uint32_t word = 0;
    for (uint32_t i = 0; i < 4; i++) {
        word |= (uint32_t)at[i] << (8 * i);
    }
    return word;
#endif
}

/* Stores four bytes at any address. */
HTVM_INLINE void htvm_store4(void *to, uint32_t word)
{
    uint8_t *const at = to;
#if HTVM_SIMD
    *(htvm_word_t *)at = word;
#elif HTVM_DSP
    ((htvm_unaligned_t *)at)->word = word;
#else
    for (uint32_t i = 0; i < 4; i++) {
        at[i] = (uint8_t)(word >> (8 * i));
    }
#endif
}

/* Returns the upper half of a word, followed by the lower half of the next one. */
HTVM_INLINE uint32_t htvm_halves(uint32_t word, uint32_t next)
{
#if HTVM_SIMD
    __asm__("cv.shuffle2.h %0, %1, %2" : "+r"(word) : "r"(next), "r"(0x00020001u));
    return word;
#else
    return word >> 16 | next << 16;
#endif
}

/* Returns the larger and the smaller of two numbers. */
HTVM_INLINE int32_t htvm_max(int32_t a, int32_t b) { return a > b ? a : b; }
HTVM_INLINE int32_t htvm_min(int32_t a, int32_t b) { return a < b ? a : b; }

#endif
