/* onnxruntime's requantization, rint(float32(sum) * scale) with float32's roundings, in integers.
 *
 * A scale is factor * 2^-(32 + drop) with 2^30 <= factor < 2^31 (a float32's mantissa), or 0.  Almost
 * every product is far from a tie between two integers; then adding a half and shifting is exact.
 * Results below 256 in magnitude are those of float32 arithmetic; larger ones may differ by one.
 */
#ifndef HTVM_FLOAT_PRODUCT_H
#define HTVM_FLOAT_PRODUCT_H

#include <stdint.h>

/* Returns round(a * b / 2^32), halves up. */
static inline __attribute__((always_inline, unused)) int32_t htvm_rounded_high(int32_t a, uint32_t b)
{
#if defined(__thumb__) && !defined(__thumb2__)
    /* Armv6-M has no long products. */
    const uint32_t low = (uint32_t)a & 0xffffu, below = b & 0xffffu, above = b >> 16;
    const int32_t high = a >> 16;
    const int32_t first = (int32_t)((uint32_t)high * below); /* |first| < 2^31 */
    const uint32_t second = low * above;
    /* Both middle products, and what the lowest one carries, in 32 bits without a sign. */
    const uint32_t part = (low * below >> 16) + (second & 0xffffu) + ((uint32_t)first & 0xffffu);
    return (int32_t)((uint32_t)high * above) + (first >> 16) + (int32_t)(second >> 16) +
           (int32_t)((part + 0x8000u) >> 16);
#else
    const int64_t product = (int64_t)a * (int64_t)b;
    return (int32_t)(product >> 32) + (int32_t)((uint32_t)product >> 31);
#endif
}

/* Returns the product where it may be a tie: float32's rounding moves what is within half a unit of
 * the last of 24 bits onto it, and ties go to the even integer. */
static __attribute__((noinline, unused)) int32_t htvm_beside_tie(int32_t sum, int32_t factor,
                                                                 int32_t drop)
{
    const int64_t product = (int64_t)sum * factor;
    const int32_t tie = (int32_t)(product >> 32) >> (drop - 1) | 1; /* twice the nearest one */
    const int64_t distance = product - (int64_t)((uint64_t)(int64_t)tie << (drop + 31));
    const uint32_t size = tie < 0 ? 0u - (uint32_t)tie : (uint32_t)tie;
    /* In units in which the leading bit of `size` tells how far a rounding moves; less one, so that the
     * bounds belong to the tie. */
    const uint64_t away = distance < 0 ? 0u - (uint64_t)distance : (uint64_t)distance;
    const uint32_t outside = away == 0 ? 0 : (uint32_t)((away - 1) >> (drop + 7));
    const int32_t below = tie >> 1;
    if (outside < size && outside < (outside ^ size)) {
        return below + (below & 1);
    }
    return below + (distance > 0);
}

/* Returns the product; `nudge` is 2^(drop - 1), plus 2^(drop - 17) from drop = 17 on.
 * 1 <= drop <= 30. */
static inline __attribute__((always_inline, unused)) int32_t
htvm_float_product(int32_t sum, int32_t factor, int32_t drop, int32_t nudge)
{
#if defined(__ARM_FEATURE_DSP) && defined(__thumb2__)
    int32_t nudged;
    __asm__("smmlar %0, %1, %2, %3" : "=r"(nudged) : "r"(sum), "r"(factor), "r"(nudge));
#else
    const int32_t nudged = htvm_rounded_high(sum, (uint32_t)factor) + nudge;
#endif
    /* What float32's rounding can move onto a tie of results below 256 has such a fraction. */
    if (__builtin_expect((uint32_t)nudged << (32 - drop) <= 1u << 16, 0)) {
        return htvm_beside_tie(sum, factor, drop);
    }
    return nudged >> drop;
}

#endif
