/* Scaling of int32 sums; private to the kernels. */
#ifndef HTVM_SCALE_H
#define HTVM_SCALE_H

#include "htvm_simd.h"

HTVM_INLINE int32_t htvm_limit(int32_t value, int32_t low, int32_t high)
{
    return htvm_min(htvm_max(value, low), high);
}

/* (sum * mul + add) >> shift; product and sum wrap around. */
HTVM_INLINE int32_t htvm_scale(int32_t sum, int32_t mul, int32_t add, uint32_t shift)
{
    return htvm_add_shift((int32_t)((uint32_t)sum * (uint32_t)mul), add, shift);
}

/* The same in 64 bits, then limited; shift is 0 to 63. */
HTVM_INLINE int32_t htvm_scale_wide(int32_t sum, int32_t mul, int32_t add, uint32_t shift,
                                    int32_t low, int32_t high)
{
    const int64_t value = ((int64_t)sum * mul + add) >> shift;
    return value < low ? low : value > high ? high : (int32_t)value;
}

/* TFLite's: the high half of twice the product, rounded to the nearest with halves up, then a right
 * shift that rounds halves away from zero.  A left shift wraps around. */
HTVM_INLINE int32_t htvm_scale_tflite(int32_t sum, int32_t multiplier, int32_t exponent)
{
    const uint32_t left = exponent > 0 ? (uint32_t)exponent : 0;
    const uint32_t right = exponent < 0 ? (uint32_t)-exponent : 0;
    const int32_t shifted = (int32_t)((uint32_t)sum << left);
    /* Multipliers are positive, so that nothing saturates. */
    const int32_t high = (int32_t)(((int64_t)shifted * multiplier + (1 << 30)) >> 31);
    const int32_t mask = (int32_t)((1u << right) - 1u);
    const int32_t remainder = high & mask, threshold = (mask >> 1) + (high < 0 ? 1 : 0);
    return (high >> right) + (remainder > threshold ? 1 : 0);
}

#endif
