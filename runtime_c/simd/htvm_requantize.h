/* Requantization of int32 sums to int8; private to the kernels. */
#ifndef HTVM_REQUANTIZE_H
#define HTVM_REQUANTIZE_H

#include "htvm_product.h"
#include "htvm_simd.h"

typedef enum { HTVM_SHIFT, HTVM_MULTIPLY, HTVM_TFLITE } htvm_scaling_t;

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

HTVM_INLINE int32_t htvm_requantize(const htvm_requant_t *r, int32_t sum, uint32_t channel,
                                    htvm_scaling_t scaling)
{
    if (scaling == HTVM_SHIFT) {
        sum >>= r->shift;
    } else if (scaling == HTVM_MULTIPLY) {
        sum = (int32_t)((uint32_t)sum * (uint32_t)r->mul + (uint32_t)r->add) >> r->shift;
    } else {
        sum = htvm_scale_tflite(sum, r->multipliers[channel], r->exponents[channel]);
        sum = (int32_t)((uint32_t)sum + (uint32_t)r->zero_point);
    }
    return htvm_min(htvm_max(sum, r->low), r->high);
}

#endif
