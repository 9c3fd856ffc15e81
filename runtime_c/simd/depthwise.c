/* Depthwise convolutions on planes; see htvm_planes.h.
 *
 * A word holds four neighbours of a row.  Instead of shifting the data, the three weights of a row
 * of taps are placed in a word at each of the four positions, once per channel:
 *
 *   output  bytes of this word   bytes of the next one
 *   0       w0 w1 w2 .
 *   1       .  w0 w1 w2
 *   2       .  .  w0 w1          w2 .  .  .
 *   3       .  .  .  w0          w1 w2 .  .
 *
 * So four outputs take six dot products per row of taps.  With stride 2, a word has outputs 0 and 2
 * only. */
#include "htvm_planes.h"
#include "htvm_requantize.h"

#define TAPS 3u
#define PLACES 6u

typedef struct {
    uint32_t at[TAPS][PLACES];
} placed_t;

HTVM_INLINE placed_t placed(const int8_t *weights)
{
    placed_t result;
    for (uint32_t row = 0; row < TAPS; row++, weights += TAPS) {
        const uint32_t w0 = (uint8_t)weights[0], w1 = (uint8_t)weights[1];
        const uint32_t w2 = (uint8_t)weights[2], all = w0 | w1 << 8 | w2 << 16;
        result.at[row][0] = all;
        result.at[row][1] = all << 8;
        result.at[row][2] = all << 16;
        result.at[row][3] = w2;
        result.at[row][4] = w0 << 24;
        result.at[row][5] = w1 | w2 << 8;
    }
    return result;
}

HTVM_INLINE int8_t done(const htvm_requant_t *r, int32_t sum, uint32_t k, htvm_scaling_t scaling)
{
    return (int8_t)htvm_requantize(r, sum, k, scaling);
}

/* A row of outputs, four at a time. */
HTVM_INLINE void row_of_stride_1(const int8_t *in, uint32_t pitch, const placed_t *w, int32_t bias,
                                 const htvm_requant_t *r, uint32_t k, int8_t *out, uint32_t count,
                                 htvm_scaling_t scaling)
{
    uint32_t x[TAPS];
    for (uint32_t i = 0; i < TAPS; i++) {
        x[i] = htvm_load4(in + i * pitch);
    }
    for (const int8_t *const end = out + count; out < end; out += 4) {
        int32_t s0 = bias, s1 = bias, s2 = bias, s3 = bias;
        in += 4;
#pragma GCC unroll 3
        for (uint32_t i = 0; i < TAPS; i++) {
            const uint32_t next = htvm_load4(in + i * pitch);
            s0 = htvm_dot4(x[i], w->at[i][0], s0);
            s1 = htvm_dot4(x[i], w->at[i][1], s1);
            s2 = htvm_dot4(x[i], w->at[i][2], s2);
            s3 = htvm_dot4(x[i], w->at[i][4], s3);
            s2 = htvm_dot4(next, w->at[i][3], s2);
            s3 = htvm_dot4(next, w->at[i][5], s3);
            x[i] = next;
        }
        out[0] = done(r, s0, k, scaling);
        out[1] = done(r, s1, k, scaling);
        out[2] = done(r, s2, k, scaling);
        out[3] = done(r, s3, k, scaling);
    }
}

/* A row of outputs, two at a time; the last may be one too many. */
HTVM_INLINE void row_of_stride_2(const int8_t *in, uint32_t pitch, const placed_t *w, int32_t bias,
                                 const htvm_requant_t *r, uint32_t k, int8_t *out, uint32_t count,
                                 htvm_scaling_t scaling)
{
    uint32_t x[TAPS];
    for (uint32_t i = 0; i < TAPS; i++) {
        x[i] = htvm_load4(in + i * pitch);
    }
    for (const int8_t *const end = out + count; out < end; out += 2) {
        int32_t s0 = bias, s1 = bias;
        in += 4;
#pragma GCC unroll 3
        for (uint32_t i = 0; i < TAPS; i++) {
            const uint32_t next = htvm_load4(in + i * pitch);
            s0 = htvm_dot4(x[i], w->at[i][0], s0);
            s1 = htvm_dot4(x[i], w->at[i][2], s1);
            s1 = htvm_dot4(next, w->at[i][3], s1);
            x[i] = next;
        }
        out[0] = done(r, s0, k, scaling);
        out[1] = done(r, s1, k, scaling);
    }
}

/* One output of any filter and stride. */
HTVM_INLINE int32_t window(const htvm_depthwise_t *p, const int8_t *in, const int8_t *weights,
                           int32_t sum)
{
    for (uint32_t fy = 0; fy < p->fy; fy++, in += p->in_planes.row, weights += p->fx) {
        for (uint32_t fx = 0; fx < p->fx; fx++) {
            sum += in[fx] * weights[fx];
        }
    }
    return sum;
}

HTVM_INLINE void depthwise(const htvm_depthwise_t *p, htvm_scaling_t scaling)
{
    const htvm_requant_t r = p->requant;
    const uint32_t pitch = p->in_planes.row, taps = p->fy * p->fx;
    const int32_t is_3x3 = p->fy == TAPS && p->fx == TAPS && p->stride <= 2;
    for (uint32_t k = 0; k < p->k; k++) {
        const int8_t *const weights = p->weights + k * taps;
        const int32_t bias = p->bias[k];
        const int8_t *in = p->in + k * p->in_planes.plane;
        int8_t *out = p->out + k * p->out_planes.plane;
        const placed_t w = placed(is_3x3 ? weights : p->weights);
        for (uint32_t y = 0; y < p->oy; y++, out += p->out_planes.row, in += p->stride * pitch) {
            if (is_3x3 && p->stride == 1) {
                row_of_stride_1(in, pitch, &w, bias, &r, k, out, p->ox, scaling);
            } else if (is_3x3) {
                row_of_stride_2(in, pitch, &w, bias, &r, k, out, p->ox, scaling);
            } else {
                for (uint32_t x = 0; x < p->ox; x++) {
                    const int32_t sum = window(p, in + x * p->stride, weights, bias);
                    out[x] = done(&r, sum, k, scaling);
                }
            }
        }
    }
}

void htvm_depthwise_shift(const htvm_depthwise_t *what) { depthwise(what, HTVM_SHIFT); }

void htvm_depthwise_multiply(const htvm_depthwise_t *what) { depthwise(what, HTVM_MULTIPLY); }

void htvm_depthwise_tflite(const htvm_depthwise_t *what) { depthwise(what, HTVM_TFLITE); }
