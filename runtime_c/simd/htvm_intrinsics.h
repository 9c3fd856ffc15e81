/* Operations that generated kernels call: on words of four elements (htvm_simd.h), and on sums.
 *
 * These are few instructions on a core with the CORE-V or the Arm DSP extension, and plain C with the
 * same results elsewhere.
 */
#ifndef HTVM_INTRINSICS_H
#define HTVM_INTRINSICS_H

#include <stdint.h>

#include "htvm_columns.h"
#include "htvm_runs.h"
#include "htvm_simd.h"
#include "htvm_spread.h"

/* Returns the four elements at any address; if that is not word-aligned, it takes a cycle more. */
HTVM_INLINE uint32_t htvm_load4_any(const int8_t *at)
{
#if HTVM_SIMD
    uint32_t word;
    __asm__("lw %0, %1" : "=r"(word) : "m"(*(const int8_t(*)[4])at));
    return word;
#else
    return htvm_load4(at);
#endif
}

/* Returns sum + a * b; wraps around. */
HTVM_INLINE int32_t htvm_mac(int32_t a, int32_t b, int32_t sum)
{
#if HTVM_SIMD && defined(__riscv_xcvmac)
    __asm__("cv.mac %0, %1, %2" : "+r"(sum) : "r"(a), "r"(b));
    return sum;
#else
    return (int32_t)((uint32_t)sum + (uint32_t)a * (uint32_t)b);
#endif
}

/* Returns (a + b) / 2^shift, rounded to the nearest, halves up.  1 <= shift <= 30, and neither sum nor
 * rounding may overflow. */
HTVM_INLINE int32_t htvm_add_round(int32_t a, int32_t b, uint32_t shift)
{
#if HTVM_SIMD
    __asm__("cv.addRNr %0, %1, %2" : "+r"(a) : "r"(b), "r"(shift));
    return a;
#else
    return (a + b + (int32_t)(1u << (shift - 1u))) >> shift;
#endif
}

/* Returns TFLite's requantization of a sum by doubled / 2^32 / 2^(shift - 1): the product is rounded
 * to the nearest, halves up; the division rounds halves away from zero.  `doubled` is twice the Q31
 * multiplier, and at least 2^31.  |sum| < 3 * 2^29, and 2 <= shift <= 32; with the CORE-V extension
 * |sum| < 2^29, and 2 <= shift <= 29.
 *
 * With q = floor(sum * doubled / 2^31), the first result is (q + 1) >> 1, and the second is
 * (q + 1 + 2^(shift - 1) - (2 if q is negative, else 0)) >> shift.  That is right for q = -1, too,
 * where the first result is 0: both ways give 0. */
HTVM_INLINE int32_t htvm_scale(int32_t sum, uint32_t doubled, uint32_t shift)
{
#if HTVM_SIMD
    const int32_t q = (int32_t)(((int64_t)(sum * 2) * (int64_t)doubled) >> 32);
    return htvm_add_round(q, (q < 0) ? -1 : 1, shift);
#else
#if HTVM_DSP
    /* The first result at once: the product with doubled - 2^32, plus sum * 2^32. */
    int32_t first;
    __asm__("smmlar %0, %1, %2, %1" : "=r"(first) : "r"(sum), "r"(doubled));
#elif HTVM_THUMB
    const int32_t first = htvm_high_product(sum, doubled);
#else
    const int32_t first = htvm_rounded_high(sum, doubled);
#endif
    if (__builtin_constant_p(shift) && shift <= 29) {
        return (first - (first < 0) + (int32_t)(1u << (shift - 2u))) >> (shift - 1u);
    }
    return (((first - (first < 0)) >> (shift - 2u)) + 1) >> 1;
#endif
}

/* Returns the number limited to low..high; -128 <= low <= high <= 127.  Ranges of whole bytes are
 * the cheapest. */
HTVM_INLINE int32_t htvm_clip(int32_t value, int32_t low, int32_t high)
{
#if HTVM_SIMD
    if (high == 127 && (low == -128 || low == 0)) {
        int32_t clipped;
        if (low == 0) {
            __asm__("cv.clipu %0, %1, 8" : "=r"(clipped) : "r"(value));
        } else {
            __asm__("cv.clip %0, %1, 8" : "=r"(clipped) : "r"(value));
        }
        return clipped;
    }
#endif
#if HTVM_DSP
    if (high == 127 && low == -128) {
        return (int32_t)__builtin_arm_ssat(value, 8); /* GCC has it return unsigned. */
    }
#endif
    return htvm_min(htvm_max(value, low), high);
}

/* Returns htvm_scale's result less 128, limited to -128..high.  Without long products of words, it pays
 * to ask first whether that is -128, as for half of the sums in front of a ReLU. */
HTVM_INLINE int32_t htvm_scale_least(int32_t sum, uint32_t doubled, uint32_t shift, int32_t high)
{
#if HTVM_THUMB
    int32_t made = -128;
    if (sum > 0) {
        made += ((htvm_high_product(sum, doubled) >> (shift - 2u)) + 1) >> 1;
    }
    return htvm_min(made, high);
#else
    return htvm_clip(htvm_scale(sum, doubled, shift) - 128, -128, high);
#endif
}

#include "htvm_band.h"
#include "htvm_depthwise.h"
#include "htvm_lines.h"
#include "htvm_nines.h"
#include "htvm_pool.h"
#include "htvm_rescale.h"
#include "htvm_rows.h"
#include "htvm_scaled.h"
#include "htvm_taps.h"

#endif
