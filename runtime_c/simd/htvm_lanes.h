/* Four int32 numbers at once: element-wise kernels on cores with vectors (Helium, MVE).
 *
 * With MVE, a function is one to five instructions (arm_mve.h); elsewhere it is plain C with the same
 * results.  Sums, differences, products and left shifts wrap around.
 */
#ifndef HTVM_LANES_H
#define HTVM_LANES_H

#include <stdint.h>

#include "htvm_float_product.h"
#include "htvm_simd.h"

#if defined(__ARM_FEATURE_MVE)
#define HTVM_MVE 1
#include <arm_mve.h>
#else
#define HTVM_MVE 0
#endif

#if HTVM_MVE
typedef int32x4_t htvm_lanes_t;
#else
typedef struct {
    int32_t lane[4];
} htvm_lanes_t;

/* One statement for each lane `i`, which sets it to an expression. */
#define HTVM_EACH_LANE(expression)                                                                 \
    htvm_lanes_t result;                                                                           \
    for (uint32_t i = 0; i < 4; i++) {                                                             \
        result.lane[i] = (expression);                                                             \
    }                                                                                              \
    return result
#endif

/* The same number in all lanes. */
HTVM_INLINE htvm_lanes_t htvm_lanes_all(int32_t value)
{
#if HTVM_MVE
    return vdupq_n_s32(value);
#else
    HTVM_EACH_LANE(value);
#endif
}

/* Four neighbouring elements of int32, int8 or uint8. */
HTVM_INLINE htvm_lanes_t htvm_lanes_load32(const int32_t *at)
{
#if HTVM_MVE
    return vldrwq_s32(at);
#else
    HTVM_EACH_LANE(at[i]);
#endif
}

HTVM_INLINE htvm_lanes_t htvm_lanes_load8(const int8_t *at)
{
#if HTVM_MVE
    return vldrbq_s32(at);
#else
    HTVM_EACH_LANE(at[i]);
#endif
}

HTVM_INLINE htvm_lanes_t htvm_lanes_load8u(const uint8_t *at)
{
#if HTVM_MVE
    return vreinterpretq_s32_u32(vldrbq_u32(at));
#else
    HTVM_EACH_LANE(at[i]);
#endif
}

/* Stores the lanes, or their lowest bytes. */
HTVM_INLINE void htvm_lanes_store32(int32_t *at, htvm_lanes_t v)
{
#if HTVM_MVE
    vstrwq_s32(at, v);
#else
    for (uint32_t i = 0; i < 4; i++) {
        at[i] = v.lane[i];
    }
#endif
}

HTVM_INLINE void htvm_lanes_store8(int8_t *at, htvm_lanes_t v)
{
#if HTVM_MVE
    vstrbq_s32(at, v);
#else
    for (uint32_t i = 0; i < 4; i++) {
        at[i] = (int8_t)(uint8_t)(uint32_t)v.lane[i];
    }
#endif
}

/* The same, each lane `stride` elements from its neighbour. */
HTVM_INLINE void htvm_lanes_scatter32(int32_t *at, uint32_t stride, htvm_lanes_t v)
{
#if HTVM_MVE
    vstrwq_scatter_shifted_offset_s32(at, vmulq_n_u32(vidupq_n_u32(0, 1), stride), v);
#else
    for (uint32_t i = 0; i < 4; i++) {
        at[stride * i] = v.lane[i];
    }
#endif
}

HTVM_INLINE void htvm_lanes_scatter8(int8_t *at, uint32_t stride, htvm_lanes_t v)
{
#if HTVM_MVE
    vstrbq_scatter_offset_s32(at, vmulq_n_u32(vidupq_n_u32(0, 1), stride), v);
#else
    for (uint32_t i = 0; i < 4; i++) {
        at[stride * i] = (int8_t)(uint8_t)(uint32_t)v.lane[i];
    }
#endif
}

/* With the same number for all lanes, which stays in a scalar register. */
HTVM_INLINE htvm_lanes_t htvm_lanes_add_x(htvm_lanes_t a, int32_t b)
{
#if HTVM_MVE
    return vaddq_n_s32(a, b);
#else
    HTVM_EACH_LANE((int32_t)((uint32_t)a.lane[i] + (uint32_t)b));
#endif
}

HTVM_INLINE htvm_lanes_t htvm_lanes_sub_x(htvm_lanes_t a, int32_t b)
{
#if HTVM_MVE
    return vsubq_n_s32(a, b);
#else
    HTVM_EACH_LANE((int32_t)((uint32_t)a.lane[i] - (uint32_t)b));
#endif
}

HTVM_INLINE htvm_lanes_t htvm_lanes_mul_x(htvm_lanes_t a, int32_t b)
{
#if HTVM_MVE
    return vmulq_n_s32(a, b);
#else
    HTVM_EACH_LANE((int32_t)((uint32_t)a.lane[i] * (uint32_t)b));
#endif
}

/* Arithmetic shift to the right by 0 to 31. */
HTVM_INLINE htvm_lanes_t htvm_lanes_right_x(htvm_lanes_t a, int32_t shift)
{
#if HTVM_MVE
    return vshlq_r_s32(a, -shift);
#else
    HTVM_EACH_LANE(a.lane[i] >> shift);
#endif
}

/* a / divisor, rounded towards 0: the high half of the product with `magic` (plus a, if that is
 * negative), 2^shift times the quotient or less than that below it. */
HTVM_INLINE htvm_lanes_t htvm_lanes_divide(htvm_lanes_t a, int32_t divisor, int32_t magic,
                                           int32_t shift)
{
    (void)divisor;
    (void)magic;
    (void)shift;
#if HTVM_MVE
    int32x4_t high = vmulhq_s32(a, vdupq_n_s32(magic));
    if (magic < 0) {
        high = vaddq_s32(high, a);
    }
    high = vshlq_r_s32(high, -shift);
    return vsubq_s32(high, vshrq_n_s32(a, 31));
#else
    HTVM_EACH_LANE(a.lane[i] / divisor);
#endif
}

/* `plus` where a number is not negative, else `minus`. */
HTVM_INLINE htvm_lanes_t htvm_lanes_by_sign(htvm_lanes_t a, int32_t plus, int32_t minus)
{
#if HTVM_MVE
    return vpselq_s32(vdupq_n_s32(minus), vdupq_n_s32(plus), vcmpltq_n_s32(a, 0));
#else
    HTVM_EACH_LANE(a.lane[i] < 0 ? minus : plus);
#endif
}

HTVM_INLINE htvm_lanes_t htvm_lanes_add(htvm_lanes_t a, htvm_lanes_t b)
{
#if HTVM_MVE
    return vaddq_s32(a, b);
#else
    HTVM_EACH_LANE((int32_t)((uint32_t)a.lane[i] + (uint32_t)b.lane[i]));
#endif
}

HTVM_INLINE htvm_lanes_t htvm_lanes_sub(htvm_lanes_t a, htvm_lanes_t b)
{
#if HTVM_MVE
    return vsubq_s32(a, b);
#else
    HTVM_EACH_LANE((int32_t)((uint32_t)a.lane[i] - (uint32_t)b.lane[i]));
#endif
}

HTVM_INLINE htvm_lanes_t htvm_lanes_mul(htvm_lanes_t a, htvm_lanes_t b)
{
#if HTVM_MVE
    return vmulq_s32(a, b);
#else
    HTVM_EACH_LANE((int32_t)((uint32_t)a.lane[i] * (uint32_t)b.lane[i]));
#endif
}

/* Arithmetic shift to the right, and shift to the left, by 0 to 31. */
HTVM_INLINE htvm_lanes_t htvm_lanes_right(htvm_lanes_t a, htvm_lanes_t shift)
{
#if HTVM_MVE
    return vshlq_s32(a, vnegq_s32(shift));
#else
    HTVM_EACH_LANE(a.lane[i] >> shift.lane[i]);
#endif
}

HTVM_INLINE htvm_lanes_t htvm_lanes_left(htvm_lanes_t a, htvm_lanes_t shift)
{
#if HTVM_MVE
    return vshlq_s32(a, shift);
#else
    HTVM_EACH_LANE((int32_t)((uint32_t)a.lane[i] << shift.lane[i]));
#endif
}

HTVM_INLINE htvm_lanes_t htvm_lanes_max(htvm_lanes_t a, htvm_lanes_t b)
{
#if HTVM_MVE
    return vmaxq_s32(a, b);
#else
    HTVM_EACH_LANE(htvm_max(a.lane[i], b.lane[i]));
#endif
}

HTVM_INLINE htvm_lanes_t htvm_lanes_min(htvm_lanes_t a, htvm_lanes_t b)
{
#if HTVM_MVE
    return vminq_s32(a, b);
#else
    HTVM_EACH_LANE(htvm_min(a.lane[i], b.lane[i]));
#endif
}

/* The numbers limited to low..high. */
HTVM_INLINE htvm_lanes_t htvm_lanes_clip(htvm_lanes_t a, htvm_lanes_t low, htvm_lanes_t high)
{
    return htvm_lanes_min(htvm_lanes_max(a, low), high);
}

#if HTVM_MVE
/* The result with the lanes replaced that may be ties, four bits of `near` for each. */
HTVM_SHARED int32x4_t htvm_lanes_beside_tie(int32x4_t sum, int32x4_t factor, int32x4_t drop,
                                            int32x4_t result, mve_pred16_t near)
{
    int32_t sums[4], factors[4], drops[4], results[4];
    vstrwq_s32(sums, sum);
    vstrwq_s32(factors, factor);
    vstrwq_s32(drops, drop);
    vstrwq_s32(results, result);
    for (uint32_t i = 0; i < 4; i++) {
        if ((near >> (4 * i) & 1u) != 0) {
            results[i] = htvm_beside_tie(sums[i], factors[i], drops[i]);
        }
    }
    return vldrwq_s32(results);
}
#endif

/* htvm_float_product of each lane. */
HTVM_INLINE htvm_lanes_t htvm_lanes_float_product(htvm_lanes_t sum, htvm_lanes_t factor,
                                                  htvm_lanes_t drop, htvm_lanes_t nudge)
{
#if HTVM_MVE
    const int32x4_t nudged = vaddq_s32(vrmulhq_s32(sum, factor), nudge);
    const int32x4_t left = vsubq_s32(vdupq_n_s32(32), drop);
    const uint32x4_t fraction = vshlq_u32(vreinterpretq_u32_s32(nudged), left);
    const mve_pred16_t near = vcmpcsq_u32(vdupq_n_u32(1u << 16), fraction);
    const int32x4_t result = vshlq_s32(nudged, vnegq_s32(drop));
    return near == 0 ? result : htvm_lanes_beside_tie(sum, factor, drop, result, near);
#else
    HTVM_EACH_LANE(
        htvm_float_product(sum.lane[i], factor.lane[i], drop.lane[i], nudge.lane[i]));
#endif
}

#endif
