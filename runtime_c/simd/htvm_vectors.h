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
#define HTVM_STORE(lanes, s)                                                                       \
    __riscv_vse32_v_i32##lanes(sums, s, vl);                                                       \
    sums += next
#define HTVM_WINDOW(p) const int8_t *const x##p = at + places[p]

/* sums[p * channels + k] of sixes of pixels, for vl channels from k on: with the sums of six pixels in
 * registers. */
HTVM_CALLED void htvm_vectors_sixes(int32_t *sums, const int32_t *places, const htvm_windows_t *in,
                                    uint32_t k, size_t vl, uint32_t sixes)
{
    const size_t next = in->channels;
    const int32_t *const from = in->bias == NULL ? NULL : in->bias + k;
    sums += k;
    for (; sixes > 0; sixes--, places += 6) {
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
        HTVM_STORE(m4, s0);
        HTVM_STORE(m4, s1);
        HTVM_STORE(m4, s2);
        HTVM_STORE(m4, s3);
        HTVM_STORE(m4, s4);
        HTVM_STORE(m4, s5);
    }
}

/* The same of one, two or three pixels at a time, with vectors that are twice as long. */
HTVM_INLINE void htvm_vectors_some(int32_t *sums, const int32_t *places, const htvm_windows_t *in,
                                   uint32_t k, size_t vl, uint32_t pixels, uint32_t times)
{
    const size_t next = in->channels;
    const int32_t *const from = in->bias == NULL ? NULL : in->bias + k;
    sums += k;
    for (; times > 0; times--, places += pixels) {
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
        HTVM_STORE(m8, s0);
        if (pixels > 1) {
            HTVM_STORE(m8, s1);
        }
        if (pixels > 2) {
            HTVM_STORE(m8, s2);
        }
    }
}

HTVM_CALLED void htvm_vectors_threes(int32_t *sums, const int32_t *places, const htvm_windows_t *in,
                                     uint32_t k, size_t vl, uint32_t threes)
{
    htvm_vectors_some(sums, places, in, k, vl, 3, threes);
}

HTVM_CALLED void htvm_vectors_two(int32_t *sums, const int32_t *places, const htvm_windows_t *in,
                                  uint32_t k, size_t vl)
{
    htvm_vectors_some(sums, places, in, k, vl, 2, 1);
}

HTVM_CALLED void htvm_vectors_one(int32_t *sums, const int32_t *places, const htvm_windows_t *in,
                                  uint32_t k, size_t vl)
{
    htvm_vectors_some(sums, places, in, k, vl, 1, 1);
}

HTVM_CALLED void htvm_vectors_windows(int32_t *sums, const int32_t *places, const htvm_windows_t *in,
                                      uint32_t pixels)
{
    const size_t next = in->channels, short_vector = __riscv_vsetvlmax_e32m4();
    for (uint32_t k = 0; k < in->channels;) {
        const size_t rest = next - k, vl = __riscv_vsetvl_e32m8(rest);
        /* Six pixels with short vectors where the channels fill no longer one. */
        const uint32_t sixes = rest <= short_vector ? pixels / 6 : 0;
        const uint32_t threes = (pixels - 6 * sixes) / 3, done = 6 * sixes + 3 * threes;
        if (sixes > 0) {
            htvm_vectors_sixes(sums, places, in, k, rest, sixes);
        }
        if (threes > 0) {
            htvm_vectors_threes(sums + 6 * sixes * next, places + 6 * sixes, in, k, vl, threes);
        }
        if (pixels - done == 2) {
            htvm_vectors_two(sums + done * next, places + done, in, k, vl);
        } else if (pixels - done == 1) {
            htvm_vectors_one(sums + done * next, places + done, in, k, vl);
        }
        k += (uint32_t)vl;
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

#if HTVM_RVV
/* A vector of weights or of data, as int16. */
HTVM_INLINE vint16m4_t htvm_vectors_wide(const int8_t *at, size_t vl)
{
    return __riscv_vsext_vf2_i16m4(__riscv_vle8_v_i8m2(at, vl), vl);
}

/* Pixels whose data are neighbours, in one vector: the weights of a tap are repeated for each. */
HTVM_CALLED void htvm_vectors_repeated(int32_t *sums, const int8_t *x, const int32_t *places,
                                       const int8_t *weights, const int32_t *bias, uint32_t taps,
                                       size_t channels, size_t elements, size_t most)
{
    const vuint16m4_t which =
        __riscv_vremu_vx_u16m4(__riscv_vid_v_u16m4(most), (uint16_t)channels, most);
    const vint32m8_t first =
        __riscv_vrgatherei16_vv_i32m8(__riscv_vle32_v_i32m8(bias, channels), which, most);
    const vuint8m2_t place = __riscv_vncvt_x_x_w_u8m2(which, most);
    for (size_t at = 0; at < elements; at += most) {
        const size_t vl = elements - at < most ? elements - at : most;
        const int8_t *weight = weights;
        vint32m8_t sum = first;
        for (uint32_t t = 0; t < taps; t++, weight += channels) {
            const vint8m2_t own = __riscv_vle8_v_i8m2(weight, channels);
            const vint16m4_t w =
                __riscv_vsext_vf2_i16m4(__riscv_vrgather_vv_i8m2(own, place, vl), vl);
            sum = __riscv_vwmacc_vv_i32m8(sum, htvm_vectors_wide(x + at + places[t], vl), w, vl);
        }
        __riscv_vse32_v_i32m8(sums + at, sum, vl);
    }
}
#endif

/* sums[p * channels + c] = bias[c] + the products of channel c of the elements at
 * x + p * step + places[t], depthwise, with weights [taps][channels]. */
HTVM_SHARED void htvm_vectors_sums(int32_t *sums, const int8_t *x, const int32_t *places,
                                   const int8_t *weights, const int32_t *bias, uint32_t taps,
                                   uint32_t pixels, uint32_t step, uint32_t channels)
{
#if HTVM_RVV
    const size_t longest = __riscv_vsetvlmax_e32m8();
    /* Indices of channels are bytes. */
    if (step == channels && pixels > 1 && 2 * channels <= longest && longest <= 256) {
        htvm_vectors_repeated(sums, x, places, weights, bias, taps, channels,
                              (size_t)pixels * channels, longest / channels * channels);
        return;
    }
    for (size_t c = 0, vl; c < channels; c += vl) {
        vl = __riscv_vsetvl_e32m8(channels - c);
        const int8_t *at = x + c;
        int32_t *to = sums + c;
        uint32_t p = 0;
        /* The weights of a tap are for two pixels. */
        for (; p + 2 <= pixels; p += 2, at += 2 * step, to += 2 * channels) {
            const int8_t *weight = weights + c;
            vint32m8_t one = __riscv_vle32_v_i32m8(bias + c, vl), two = one;
            HTVM_UNROLL(3)
            for (uint32_t t = 0; t < taps; t++, weight += channels) {
                const vint16m4_t w = htvm_vectors_wide(weight, vl);
                const int8_t *const from = at + places[t];
                one = __riscv_vwmacc_vv_i32m8(one, htvm_vectors_wide(from, vl), w, vl);
                two = __riscv_vwmacc_vv_i32m8(two, htvm_vectors_wide(from + step, vl), w, vl);
            }
            __riscv_vse32_v_i32m8(to, one, vl);
            __riscv_vse32_v_i32m8(to + channels, two, vl);
        }
        if (p < pixels) {
            const int8_t *weight = weights + c;
            vint32m8_t one = __riscv_vle32_v_i32m8(bias + c, vl);
            for (uint32_t t = 0; t < taps; t++, weight += channels) {
                one = __riscv_vwmacc_vv_i32m8(one, htvm_vectors_wide(at + places[t], vl),
                                              htvm_vectors_wide(weight, vl), vl);
            }
            __riscv_vse32_v_i32m8(to, one, vl);
        }
    }
#else
    for (uint32_t p = 0; p < pixels; p++, x += step) {
        for (uint32_t c = 0; c < channels; c++) {
            uint32_t sum = (uint32_t)bias[c];
            for (uint32_t t = 0; t < taps; t++) {
                sum += (uint32_t)(x[places[t] + (int32_t)c] * weights[t * channels + c]);
            }
            *sums++ = (int32_t)sum;
        }
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
