/* Up to 16 int32 numbers at once: element-wise kernels on RISC-V cores with vectors.
 *
 * `n`, 1 to 16, is how many elements count.  With vectors of at least 128 bits (RVV 1.0: V, or Zve32x
 * with Zvl128b) a function is one to ten instructions (riscv_vector.h), whatever their length;
 * elsewhere it is plain C with the same results.  Sums, differences, products and left shifts wrap
 * around.
 */
#ifndef HTVM_MANY_H
#define HTVM_MANY_H

#include <stdint.h>

#include "htvm_float_product.h"
#include "htvm_intrinsics.h"

enum { HTVM_MANY = 16 };

#if HTVM_RVV
typedef vint32m4_t htvm_many_t;

/* One instruction of the unit for all elements. */
#define HTVM_EACH_OF(instruction, expression) return (instruction)
#else
typedef struct {
    int32_t lane[HTVM_MANY];
} htvm_many_t;

/* One statement for each element `i`, which sets it to an expression. */
#define HTVM_EACH_OF(instruction, expression)                                                      \
    htvm_many_t result = {{0}};                                                                    \
    for (uint32_t i = 0; i < n; i++) {                                                             \
        result.lane[i] = (expression);                                                             \
    }                                                                                              \
    return result
#endif

/* The same number everywhere. */
HTVM_INLINE htvm_many_t htvm_many_all(int32_t value, uint32_t n)
{
    HTVM_EACH_OF(__riscv_vmv_v_x_i32m4(value, n), value);
}

/* Neighbouring elements of int32, int8 or uint8. */
HTVM_INLINE htvm_many_t htvm_many_load32(const int32_t *at, uint32_t n)
{
    HTVM_EACH_OF(__riscv_vle32_v_i32m4(at, n), at[i]);
}

HTVM_INLINE htvm_many_t htvm_many_load8(const int8_t *at, uint32_t n)
{
    HTVM_EACH_OF(__riscv_vsext_vf4_i32m4(__riscv_vle8_v_i8m1(at, n), n), at[i]);
}

HTVM_INLINE htvm_many_t htvm_many_load8u(const uint8_t *at, uint32_t n)
{
    HTVM_EACH_OF(__riscv_vreinterpret_v_u32m4_i32m4(
                     __riscv_vzext_vf4_u32m4(__riscv_vle8_v_u8m1(at, n), n)),
                 at[i]);
}

#if HTVM_RVV
/* The lowest byte of each element. */
HTVM_INLINE vint8m1_t htvm_many_bytes(htvm_many_t v, uint32_t n)
{
    return __riscv_vncvt_x_x_w_i8m1(__riscv_vncvt_x_x_w_i16m2(v, n), n);
}
#endif

/* Stores the elements, or their lowest bytes. */
HTVM_INLINE void htvm_many_store32(int32_t *at, htvm_many_t v, uint32_t n)
{
#if HTVM_RVV
    __riscv_vse32_v_i32m4(at, v, n);
#else
    for (uint32_t i = 0; i < n; i++) {
        at[i] = v.lane[i];
    }
#endif
}

HTVM_INLINE void htvm_many_store8(int8_t *at, htvm_many_t v, uint32_t n)
{
#if HTVM_RVV
    __riscv_vse8_v_i8m1(at, htvm_many_bytes(v, n), n);
#else
    for (uint32_t i = 0; i < n; i++) {
        at[i] = (int8_t)(uint8_t)(uint32_t)v.lane[i];
    }
#endif
}

/* The same, each element `stride` elements from its neighbour. */
HTVM_INLINE void htvm_many_scatter32(int32_t *at, uint32_t stride, htvm_many_t v, uint32_t n)
{
#if HTVM_RVV
    __riscv_vsse32_v_i32m4(at, (ptrdiff_t)(4 * stride), v, n);
#else
    for (uint32_t i = 0; i < n; i++) {
        at[stride * i] = v.lane[i];
    }
#endif
}

HTVM_INLINE void htvm_many_scatter8(int8_t *at, uint32_t stride, htvm_many_t v, uint32_t n)
{
#if HTVM_RVV
    __riscv_vsse8_v_i8m1(at, (ptrdiff_t)stride, htvm_many_bytes(v, n), n);
#else
    for (uint32_t i = 0; i < n; i++) {
        at[stride * i] = (int8_t)(uint8_t)(uint32_t)v.lane[i];
    }
#endif
}

#if HTVM_RVV
/* The elements as numbers without a sign, as the second operand of shifts. */
HTVM_INLINE vuint32m4_t htvm_many_unsigned(htvm_many_t v)
{
    return __riscv_vreinterpret_v_i32m4_u32m4(v);
}
#endif

/* Each operation is of two vectors, or (with _x) of a vector and one number. */
HTVM_INLINE htvm_many_t htvm_many_add(htvm_many_t a, htvm_many_t b, uint32_t n)
{
    HTVM_EACH_OF(__riscv_vadd_vv_i32m4(a, b, n),
                 (int32_t)((uint32_t)a.lane[i] + (uint32_t)b.lane[i]));
}

HTVM_INLINE htvm_many_t htvm_many_add_x(htvm_many_t a, int32_t b, uint32_t n)
{
    HTVM_EACH_OF(__riscv_vadd_vx_i32m4(a, b, n), (int32_t)((uint32_t)a.lane[i] + (uint32_t)b));
}

HTVM_INLINE htvm_many_t htvm_many_sub(htvm_many_t a, htvm_many_t b, uint32_t n)
{
    HTVM_EACH_OF(__riscv_vsub_vv_i32m4(a, b, n),
                 (int32_t)((uint32_t)a.lane[i] - (uint32_t)b.lane[i]));
}

HTVM_INLINE htvm_many_t htvm_many_sub_x(htvm_many_t a, int32_t b, uint32_t n)
{
    HTVM_EACH_OF(__riscv_vsub_vx_i32m4(a, b, n), (int32_t)((uint32_t)a.lane[i] - (uint32_t)b));
}

HTVM_INLINE htvm_many_t htvm_many_mul(htvm_many_t a, htvm_many_t b, uint32_t n)
{
    HTVM_EACH_OF(__riscv_vmul_vv_i32m4(a, b, n),
                 (int32_t)((uint32_t)a.lane[i] * (uint32_t)b.lane[i]));
}

HTVM_INLINE htvm_many_t htvm_many_mul_x(htvm_many_t a, int32_t b, uint32_t n)
{
    HTVM_EACH_OF(__riscv_vmul_vx_i32m4(a, b, n), (int32_t)((uint32_t)a.lane[i] * (uint32_t)b));
}

/* Arithmetic shift to the right, and shift to the left, by 0 to 31. */
HTVM_INLINE htvm_many_t htvm_many_right(htvm_many_t a, htvm_many_t shift, uint32_t n)
{
    HTVM_EACH_OF(__riscv_vsra_vv_i32m4(a, htvm_many_unsigned(shift), n),
                 a.lane[i] >> shift.lane[i]);
}

HTVM_INLINE htvm_many_t htvm_many_right_x(htvm_many_t a, int32_t shift, uint32_t n)
{
    HTVM_EACH_OF(__riscv_vsra_vx_i32m4(a, (size_t)shift, n), a.lane[i] >> shift);
}

HTVM_INLINE htvm_many_t htvm_many_left(htvm_many_t a, htvm_many_t shift, uint32_t n)
{
    HTVM_EACH_OF(__riscv_vsll_vv_i32m4(a, htvm_many_unsigned(shift), n),
                 (int32_t)((uint32_t)a.lane[i] << shift.lane[i]));
}

HTVM_INLINE htvm_many_t htvm_many_left_x(htvm_many_t a, int32_t shift, uint32_t n)
{
    HTVM_EACH_OF(__riscv_vsll_vx_i32m4(a, (size_t)shift, n),
                 (int32_t)((uint32_t)a.lane[i] << shift));
}

HTVM_INLINE htvm_many_t htvm_many_max(htvm_many_t a, htvm_many_t b, uint32_t n)
{
    HTVM_EACH_OF(__riscv_vmax_vv_i32m4(a, b, n), htvm_max(a.lane[i], b.lane[i]));
}

HTVM_INLINE htvm_many_t htvm_many_max_x(htvm_many_t a, int32_t b, uint32_t n)
{
    HTVM_EACH_OF(__riscv_vmax_vx_i32m4(a, b, n), htvm_max(a.lane[i], b));
}

HTVM_INLINE htvm_many_t htvm_many_min(htvm_many_t a, htvm_many_t b, uint32_t n)
{
    HTVM_EACH_OF(__riscv_vmin_vv_i32m4(a, b, n), htvm_min(a.lane[i], b.lane[i]));
}

HTVM_INLINE htvm_many_t htvm_many_min_x(htvm_many_t a, int32_t b, uint32_t n)
{
    HTVM_EACH_OF(__riscv_vmin_vx_i32m4(a, b, n), htvm_min(a.lane[i], b));
}

/* The numbers limited to low..high. */
HTVM_INLINE htvm_many_t htvm_many_clip(htvm_many_t a, htvm_many_t low, htvm_many_t high, uint32_t n)
{
    return htvm_many_min(htvm_many_max(a, low, n), high, n);
}

HTVM_INLINE htvm_many_t htvm_many_clip_x(htvm_many_t a, int32_t low, int32_t high, uint32_t n)
{
    return htvm_many_min_x(htvm_many_max_x(a, low, n), high, n);
}

/* htvm_rescale of each element.  The fractional product, rounded to the nearest with halves up, is the
 * first result; the shift rounds halves up, too, so negative numbers are diminished before it. */
HTVM_INLINE htvm_many_t htvm_many_rescale(htvm_many_t sum, htvm_many_t multiplier, htvm_many_t left,
                                          uint32_t n)
{
#if HTVM_RVV
    const htvm_many_t first = __riscv_vsmul_vv_i32m4(sum, multiplier, __RISCV_VXRM_RNU, n);
    const htvm_many_t below = __riscv_vadd_vv_i32m4(first, __riscv_vsra_vx_i32m4(first, 31, n), n);
    const vuint32m4_t right = htvm_many_unsigned(__riscv_vneg_v_i32m4(left, n));
    return __riscv_vssra_vv_i32m4(below, right, __RISCV_VXRM_RNU, n);
#else
    HTVM_EACH_OF(0, htvm_rescale(sum.lane[i], multiplier.lane[i], left.lane[i]));
#endif
}

HTVM_INLINE htvm_many_t htvm_many_rescale_x(htvm_many_t sum, int32_t multiplier, int32_t left,
                                            uint32_t n)
{
#if HTVM_RVV
    const htvm_many_t first = __riscv_vsmul_vx_i32m4(sum, multiplier, __RISCV_VXRM_RNU, n);
    const htvm_many_t below = __riscv_vadd_vv_i32m4(first, __riscv_vsra_vx_i32m4(first, 31, n), n);
    return __riscv_vssra_vx_i32m4(below, (size_t)-left, __RISCV_VXRM_RNU, n);
#else
    HTVM_EACH_OF(0, htvm_rescale(sum.lane[i], multiplier, left));
#endif
}

#if HTVM_RVV
/* The result with the elements replaced that may be ties. */
HTVM_SHARED htvm_many_t htvm_many_beside_tie(htvm_many_t sum, htvm_many_t factor, htvm_many_t drop,
                                             htvm_many_t result, vbool8_t near, uint32_t n)
{
    int32_t sums[HTVM_MANY], factors[HTVM_MANY], drops[HTVM_MANY], results[HTVM_MANY];
    uint8_t places[HTVM_MANY / 8];
    __riscv_vse32_v_i32m4(sums, sum, n);
    __riscv_vse32_v_i32m4(factors, factor, n);
    __riscv_vse32_v_i32m4(drops, drop, n);
    __riscv_vse32_v_i32m4(results, result, n);
    __riscv_vsm_v_b8(places, near, n);
    for (uint32_t i = 0; i < n; i++) {
        if ((places[i / 8] >> i % 8 & 1u) != 0) {
            results[i] = htvm_beside_tie(sums[i], factors[i], drops[i]);
        }
    }
    return __riscv_vle32_v_i32m4(results, n);
}

/* htvm_float_product of each element. */
HTVM_INLINE htvm_many_t htvm_many_float_product(htvm_many_t sum, htvm_many_t factor,
                                                htvm_many_t drop, htvm_many_t nudge, uint32_t n)
{
    const vuint32m4_t low = htvm_many_unsigned(__riscv_vmul_vv_i32m4(sum, factor, n));
    const htvm_many_t half = __riscv_vreinterpret_v_u32m4_i32m4(__riscv_vsrl_vx_u32m4(low, 31, n));
    const htvm_many_t high =
        __riscv_vadd_vv_i32m4(__riscv_vmulh_vv_i32m4(sum, factor, n), half, n);
    const htvm_many_t nudged = __riscv_vadd_vv_i32m4(high, nudge, n);
    const vuint32m4_t left = htvm_many_unsigned(__riscv_vrsub_vx_i32m4(drop, 32, n));
    const vuint32m4_t fraction = __riscv_vsll_vv_u32m4(htvm_many_unsigned(nudged), left, n);
    const vbool8_t near = __riscv_vmsleu_vx_u32m4_b8(fraction, 1u << 16, n);
    const htvm_many_t result = htvm_many_right(nudged, drop, n);
    return __riscv_vcpop_m_b8(near, n) == 0
               ? result
               : htvm_many_beside_tie(sum, factor, drop, result, near, n);
}
#else
HTVM_INLINE htvm_many_t htvm_many_float_product(htvm_many_t sum, htvm_many_t factor,
                                                htvm_many_t drop, htvm_many_t nudge, uint32_t n)
{
    HTVM_EACH_OF(0, htvm_float_product(sum.lane[i], factor.lane[i], drop.lane[i], nudge.lane[i]));
}
#endif

#endif
