/* Products of int8 on RISC-V cores with vectors: output channels side by side in a vector.
 *
 * Operands stay in place, weights are [elements of a window][channels].  The loops do not depend on
 * the length of a vector, which may be any from 128 bits on.  Elsewhere everything is plain C with the
 * same results.  Sums wrap around.
 */
#ifndef HTVM_VECTORS_H
#define HTVM_VECTORS_H

#include <stddef.h>
#include <stdint.h>

#include "htvm_intrinsics.h"
#include "htvm_many.h"

/* The operands of the sums of some pixels: pixel p's window has `runs` runs of `run` elements, which
 * begin at x[places[p] + starts[r]].  Sums begin with a bias; NULL: with 0. */
typedef struct {
    const int8_t *x, *weights;
    const int32_t *starts, *bias;
    uint32_t runs, run, channels;
} htvm_windows_t;

#if HTVM_RVV
/* What a vector of sums begins with, and the product of pixel `p` with a vector of weights. */
#define HTVM_SUM(lanes) from == NULL ? __riscv_vmv_v_x_i32##lanes(0, vl) : __riscv_vle32_v_i32##lanes(from, vl)
#define HTVM_PRODUCT(lanes, p) s##p = __riscv_vwmacc_vx_i32##lanes(s##p, x##p[i], w, vl)
#define HTVM_WINDOW(p) const int8_t *const x##p = at + places[p]

/* sums[p * channels + k] of six pixels, or of one to three with vectors that are twice as long, for vl
 * channels from k on: with all of their sums in registers. */
HTVM_CALLED void htvm_vectors_six(int32_t *sums, const int32_t *places, const htvm_windows_t *in,
                                  uint32_t k, size_t vl)
{
    const size_t next = in->channels;
    const int32_t *const from = in->bias == NULL ? NULL : in->bias + k;
    const int8_t *weights = in->weights + k;
    vint32m4_t s0 = HTVM_SUM(m4), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0;
    for (uint32_t r = 0; r < in->runs; r++) {
        const int8_t *const at = in->x + in->starts[r];
        HTVM_WINDOW(0);
        HTVM_WINDOW(1);
        HTVM_WINDOW(2);
        HTVM_WINDOW(3);
        HTVM_WINDOW(4);
        HTVM_WINDOW(5);
        HTVM_UNROLL(4)
        for (uint32_t i = 0; i < in->run; i++) {
            const vint16m2_t w = __riscv_vsext_vf2_i16m2(__riscv_vle8_v_i8m1(weights, vl), vl);
            weights += next;
            HTVM_PRODUCT(m4, 0);
            HTVM_PRODUCT(m4, 1);
            HTVM_PRODUCT(m4, 2);
            HTVM_PRODUCT(m4, 3);
            HTVM_PRODUCT(m4, 4);
            HTVM_PRODUCT(m4, 5);
        }
    }
    sums += k;
    __riscv_vse32_v_i32m4(sums, s0, vl);
    __riscv_vse32_v_i32m4(sums + next, s1, vl);
    __riscv_vse32_v_i32m4(sums + 2 * next, s2, vl);
    __riscv_vse32_v_i32m4(sums + 3 * next, s3, vl);
    __riscv_vse32_v_i32m4(sums + 4 * next, s4, vl);
    __riscv_vse32_v_i32m4(sums + 5 * next, s5, vl);
}

HTVM_INLINE void htvm_vectors_some(int32_t *sums, const int32_t *places, const htvm_windows_t *in,
                                   uint32_t k, size_t vl, uint32_t pixels)
{
    const size_t next = in->channels;
    const int32_t *const from = in->bias == NULL ? NULL : in->bias + k;
    const int8_t *weights = in->weights + k;
    vint32m8_t s0 = HTVM_SUM(m8), s1 = s0, s2 = s0;
    for (uint32_t r = 0; r < in->runs; r++) {
        const int8_t *const at = in->x + in->starts[r];
        const int8_t *const x0 = at + places[0];
        const int8_t *const x1 = pixels > 1 ? at + places[1] : x0;
        const int8_t *const x2 = pixels > 2 ? at + places[2] : x0;
        HTVM_UNROLL(4)
        for (uint32_t i = 0; i < in->run; i++) {
            const vint16m4_t w = __riscv_vsext_vf2_i16m4(__riscv_vle8_v_i8m2(weights, vl), vl);
            weights += next;
            HTVM_PRODUCT(m8, 0);
            if (pixels > 1) {
                HTVM_PRODUCT(m8, 1);
            }
            if (pixels > 2) {
                HTVM_PRODUCT(m8, 2);
            }
        }
    }
    sums += k;
    __riscv_vse32_v_i32m8(sums, s0, vl);
    if (pixels > 1) {
        __riscv_vse32_v_i32m8(sums + next, s1, vl);
    }
    if (pixels > 2) {
        __riscv_vse32_v_i32m8(sums + 2 * next, s2, vl);
    }
}

HTVM_CALLED void htvm_vectors_three(int32_t *sums, const int32_t *places, const htvm_windows_t *in,
                                    uint32_t k, size_t vl)
{
    htvm_vectors_some(sums, places, in, k, vl, 3);
}

HTVM_CALLED void htvm_vectors_two(int32_t *sums, const int32_t *places, const htvm_windows_t *in,
                                  uint32_t k, size_t vl)
{
    htvm_vectors_some(sums, places, in, k, vl, 2);
}

HTVM_CALLED void htvm_vectors_one(int32_t *sums, const int32_t *places, const htvm_windows_t *in,
                                  uint32_t k, size_t vl)
{
    htvm_vectors_some(sums, places, in, k, vl, 1);
}

HTVM_CALLED void htvm_vectors_windows(int32_t *sums, const int32_t *places, const htvm_windows_t *in,
                                      uint32_t pixels)
{
    const size_t short_vector = __riscv_vsetvlmax_e32m4();
    for (uint32_t p = 0; p < pixels;) {
        const uint32_t left = pixels - p;
        int32_t *const to = sums + (size_t)p * in->channels;
        /* Six pixels with short vectors where the channels fill no longer one. */
        uint32_t done = left >= 6 ? 6 : left >= 3 ? 3 : left;
        for (uint32_t k = 0; k < in->channels;) {
            const size_t rest = in->channels - k;
            if (done == 6 && rest <= short_vector) {
                htvm_vectors_six(to, places + p, in, k, rest);
                break;
            }
            const size_t vl = __riscv_vsetvl_e32m8(rest);
            if (done >= 3) {
                htvm_vectors_three(to, places + p, in, k, vl);
            }
            if (done == 6) {
                htvm_vectors_three(to + 3 * (size_t)in->channels, places + p + 3, in, k, vl);
            }
            if (done == 2) {
                htvm_vectors_two(to, places + p, in, k, vl);
            }
            if (done == 1) {
                htvm_vectors_one(to, places + p, in, k, vl);
            }
            k += (uint32_t)vl;
        }
        p += done;
    }
}
#else
HTVM_SHARED void htvm_vectors_windows(int32_t *sums, const int32_t *places, const htvm_windows_t *in,
                                      uint32_t pixels)
{
    for (uint32_t p = 0; p < pixels; p++) {
        for (uint32_t k = 0; k < in->channels; k++) {
            const int8_t *weight = in->weights + k;
            uint32_t sum = in->bias == NULL ? 0 : (uint32_t)in->bias[k];
            for (uint32_t r = 0; r < in->runs; r++) {
                const int8_t *const x = in->x + places[p] + in->starts[r];
                for (uint32_t i = 0; i < in->run; i++, weight += in->channels) {
                    sum += (uint32_t)(x[i] * *weight);
                }
            }
            *sums++ = (int32_t)sum;
        }
    }
}
#endif

/* sums[p * channels + k] = bias[k] + the products of the window of pixel p with channel k. */
HTVM_INLINE void htvm_vectors_products(int32_t *sums, const int8_t *x, const int32_t *places,
                                       const int8_t *weights, const int32_t *starts,
                                       const int32_t *bias, uint32_t runs, uint32_t run,
                                       uint32_t pixels, uint32_t channels)
{
    const htvm_windows_t in = {x, weights, starts, bias, runs, run, channels};
    htvm_vectors_windows(sums, places, &in, pixels);
}

/* The same without a bias. */
HTVM_INLINE void htvm_vectors_only_products(int32_t *sums, const int8_t *x, const int32_t *places,
                                            const int8_t *weights, const int32_t *starts,
                                            uint32_t runs, uint32_t run, uint32_t pixels,
                                            uint32_t channels)
{
    const htvm_windows_t in = {x, weights, starts, NULL, runs, run, channels};
    htvm_vectors_windows(sums, places, &in, pixels);
}

/* sums[c] = bias[c] + the products of channel c of the elements at x + places[t], depthwise, with
 * weights [taps][channels]. */
HTVM_SHARED void htvm_vectors_sum(int32_t *sums, const int8_t *x, const int32_t *places,
                                  const int8_t *weights, const int32_t *bias, uint32_t taps,
                                  uint32_t channels)
{
#if HTVM_RVV
    for (size_t c = 0, vl; c < channels; c += vl) {
        vl = __riscv_vsetvl_e32m8(channels - c);
        const int8_t *weight = weights + c;
        vint32m8_t sum = __riscv_vle32_v_i32m8(bias + c, vl);
        HTVM_UNROLL(3)
        for (uint32_t t = 0; t < taps; t++, weight += channels) {
            const vint8m2_t data = __riscv_vle8_v_i8m2(x + c + places[t], vl);
            const vint16m4_t w = __riscv_vsext_vf2_i16m4(__riscv_vle8_v_i8m2(weight, vl), vl);
            sum = __riscv_vwmacc_vv_i32m8(sum, __riscv_vsext_vf2_i16m4(data, vl), w, vl);
        }
        __riscv_vse32_v_i32m8(sums + c, sum, vl);
    }
#else
    for (uint32_t c = 0; c < channels; c++) {
        uint32_t sum = (uint32_t)bias[c];
        for (uint32_t t = 0; t < taps; t++) {
            sum += (uint32_t)(x[places[t] + (int32_t)c] * weights[t * channels + c]);
        }
        sums[c] = (int32_t)sum;
    }
#endif
}

/* out[p * channels + k] = sums[p * channels + k] requantized (htvm_rescale.h), plus `zero`, limited to
 * low..high, which are those of int8 or within. */
HTVM_SHARED void htvm_vectors_rescale(int8_t *out, const int32_t *sums, const int32_t *multipliers,
                                      const int8_t *left, uint32_t pixels, uint32_t channels,
                                      int32_t zero, int32_t low, int32_t high)
{
#if HTVM_RVV
    for (size_t k = 0, vl; k < channels; k += vl) {
        vl = __riscv_vsetvl_e32m4(channels - k);
        const vint32m4_t factor = __riscv_vle32_v_i32m4(multipliers + k, vl);
        const vint32m4_t shift = __riscv_vsext_vf4_i32m4(__riscv_vle8_v_i8m1(left + k, vl), vl);
        const vuint32m4_t right = htvm_many_unsigned(__riscv_vneg_v_i32m4(shift, vl));
        const int32_t *from = sums + k;
        int8_t *to = out + k;
        for (uint32_t p = 0; p < pixels; p++, from += channels, to += channels) {
            const vint32m4_t first = __riscv_vsmul_vv_i32m4(__riscv_vle32_v_i32m4(from, vl), factor,
                                                            __RISCV_VXRM_RNU, vl);
            const vint32m4_t below =
                __riscv_vadd_vv_i32m4(first, __riscv_vsra_vx_i32m4(first, 31, vl), vl);
            const vint32m4_t made = __riscv_vssra_vv_i32m4(below, right, __RISCV_VXRM_RNU, vl);
            /* Narrowing limits to the range of int16, then to that of int8. */
            const vint16m2_t wide = __riscv_vnclip_wx_i16m2(__riscv_vadd_vx_i32m4(made, zero, vl), 0,
                                                            __RISCV_VXRM_RNU, vl);
            const vint8m1_t byte = __riscv_vnclip_wx_i8m1(wide, 0, __RISCV_VXRM_RNU, vl);
            const vint8m1_t most = __riscv_vmin_vx_i8m1(byte, (int8_t)high, vl);
            __riscv_vse8_v_i8m1(to, __riscv_vmax_vx_i8m1(most, (int8_t)low, vl), vl);
        }
    }
#else
    for (uint32_t p = 0; p < pixels; p++) {
        for (uint32_t k = 0; k < channels; k++) {
            const uint32_t made = (uint32_t)htvm_rescale(*sums++, multipliers[k], left[k]);
            *out++ = (int8_t)htvm_min(htvm_max((int32_t)(made + (uint32_t)zero), low), high);
        }
    }
#endif
}

#endif
