/* Depthwise convolutions on planes; see htvm_planes.h.
 *
 * A word holds four neighbours of a row.  The three weights of a row of taps are placed in two words,
 * [w0 w1 w2 .] and [. w0 w1 w2], which give outputs 0 and 1 of a word of the input; the same with its
 * upper half and the lower half of the next word gives outputs 2 and 3.  With stride 2, only outputs
 * 0 and 2 are needed. */
#include "htvm_planes.h"
#include "htvm_requantize.h"

#define SIDE 3u

/* The filter of a channel. */
typedef struct {
    uint32_t even[SIDE], odd[SIDE];
} placed_t;

HTVM_INLINE placed_t placed(const int8_t *weights)
{
    placed_t result;
    for (uint32_t row = 0; row < SIDE; row++, weights += SIDE) {
        const uint32_t w0 = (uint8_t)weights[0], w1 = (uint8_t)weights[1];
        result.even[row] = w0 | w1 << 8 | (uint32_t)(uint8_t)weights[2] << 16;
        result.odd[row] = result.even[row] << 8;
    }
    return result;
}

HTVM_INLINE int8_t done(const htvm_requant_t *r, int32_t sum, uint32_t k, htvm_scaling_t scaling)
{
    return (int8_t)htvm_requantize(r, sum, k, scaling);
}

/* Four outputs of stride 1: x are words of the three rows, and become the next ones. */
HTVM_INLINE void four(const int8_t *in, uint32_t pitch, uint32_t *x, const placed_t *w,
                      int32_t bias, const htvm_requant_t *r, uint32_t k, int8_t *out,
                      htvm_scaling_t scaling)
{
    int32_t s0 = bias, s1 = bias, s2 = bias, s3 = bias;
    HTVM_UNROLL(3)
    for (uint32_t i = 0; i < SIDE; i++) {
        const uint32_t next = htvm_load4(in + i * pitch);
        s0 = htvm_dot4(x[i], w->even[i], s0);
        s1 = htvm_dot4(x[i], w->odd[i], s1);
        const uint32_t middle = htvm_halves(x[i], next);
        s2 = htvm_dot4(middle, w->even[i], s2);
        s3 = htvm_dot4(middle, w->odd[i], s3);
        x[i] = next;
    }
    out[0] = done(r, s0, k, scaling);
    out[1] = done(r, s1, k, scaling);
    out[2] = done(r, s2, k, scaling);
    out[3] = done(r, s3, k, scaling);
}

#if HTVM_SIMD
#define DOTS(s, t, a, b, c)                                                                        \
    "cv.sdotsp.b %[" s "], %[" a "], %[e0]\ncv.sdotsp.b %[" t "], %[" a "], %[o0]\n"               \
    "cv.sdotsp.b %[" s "], %[" b "], %[e1]\ncv.sdotsp.b %[" t "], %[" b "], %[o1]\n"               \
    "cv.sdotsp.b %[" s "], %[" c "], %[e2]\ncv.sdotsp.b %[" t "], %[" c "], %[o2]\n"
#define SHIFT_LIMIT_STORE(s)                                                                       \
    "sra %[" s "], %[" s "], %[shift]\ncv.max %[" s "], %[" s "], %[low]\n"                        \
    "cv.min %[" s "], %[" s "], %[high]\ncv.sb %[" s "], (%[out]), 1\n"
/* The same if the limits are those of int8. */
#define SHIFT_CLIP_STORE(s)                                                                        \
    "sra %[" s "], %[" s "], %[shift]\ncv.clip %[" s "], %[" s "], 8\n"                            \
    "cv.sb %[" s "], (%[out]), 1\n"
/* Four outputs of the words a, b and c and the next ones, which are left in d, e and f. */
#define FOUR(store, a, b, c, d, e, f)                                                              \
    "cv.lw %[" d "], (%[p0]), 4\ncv.lw %[" e "], (%[p1]), 4\ncv.lw %[" f "], (%[p2]), 4\n"        \
    "mv %[s0], %[bias]\nmv %[s1], %[bias]\nmv %[s2], %[bias]\nmv %[s3], %[bias]\n"                \
    DOTS("s0", "s1", a, b, c)                                                                      \
    "cv.shuffle2.h %[" a "], %[" d "], %[mask]\ncv.shuffle2.h %[" b "], %[" e "], %[mask]\n"       \
    "cv.shuffle2.h %[" c "], %[" f "], %[mask]\n" DOTS("s2", "s3", a, b, c)                        \
    store("s0") store("s1") store("s2") store("s3")

/* The assembly of eights(). */
#define EIGHTS(store)                                                                              \
    __asm__ volatile(                                                                              \
        HTVM_LOOPS                                                                                 \
        ".insn r 0x2b, 4, 0, x11, %[s0], x0\n"     /* cv.count 1 */                                \
        "2: lw %[s0], %[times]\n"                                                                  \
        "cv.lw %[x0], (%[p0]), 4\ncv.lw %[x1], (%[p1]), 4\ncv.lw %[x2], (%[p2]), 4\n"              \
        ".insn r 0x2b, 4, 0, x10, %[s0], x0\n" /* cv.count 0 */                                    \
        "3:\n" FOUR(store, "x0", "x1", "x2", "y0", "y1", "y2")                                     \
        FOUR(store, "y0", "y1", "y2", "x0", "x1", "x2")          \
        "4: lw %[y0], %[in_next]\nlw %[y1], %[out_next]\n"                                         \
        "add %[p0], %[p0], %[y0]\nadd %[p1], %[p1], %[y0]\nadd %[p2], %[p2], %[y0]\n"              \
        "add %[out], %[out], %[y1]\n"                                                              \
        "5:\n.option pop\n"                                                                        \
        : [s0] "+&r"(s0), [s1] "=&r"(s1), [s2] "=&r"(s2), [s3] "=&r"(s3), [x0] "=&r"(x0),           \
          [x1] "=&r"(x1), [x2] "=&r"(x2), [y0] "=&r"(y0), [y1] "=&r"(y1), [y2] "=&r"(y2),          \
          [p0] "+&r"(p0), [p1] "+&r"(p1), [p2] "+&r"(p2), [out] "+&r"(out)                         \
        : [e0] "r"(w->even[0]), [e1] "r"(w->even[1]), [e2] "r"(w->even[2]), [o0] "r"(w->odd[0]),   \
          [o1] "r"(w->odd[1]), [o2] "r"(w->odd[2]), [bias] "r"(bias), [shift] "r"(r->shift),       \
          [low] "r"(r->low), [high] "r"(r->high), [mask] "r"(0x00020001u), [times] "m"(times),     \
          [in_next] "m"(in_next), [out_next] "m"(out_next)                                         \
        : "memory")

/* Computes `rows` rows of 8 * `times` outputs; both are at least 1.  In assembly, because compilers
 * keep some of the weights in memory. */
HTVM_INLINE void eights(const int8_t *in, uint32_t pitch, const placed_t *w, int32_t bias,
                        const htvm_requant_t *r, int8_t *out, uint32_t out_pitch, uint32_t times,
                        uint32_t rows)
{
    const int8_t *p0 = in, *p1 = p0 + pitch, *p2 = p1 + pitch;
    const uint32_t in_next = pitch - 8u * times - 4u, out_next = out_pitch - 8u * times;
    uint32_t x0, x1, x2, y0, y1, y2, s0 = rows, s1, s2, s3;
    if (r->low == -128 && r->high == 127) {
        EIGHTS(SHIFT_CLIP_STORE);
    } else {
        EIGHTS(SHIFT_LIMIT_STORE);
    }
}
#endif

HTVM_INLINE void row_of_stride_1(const int8_t *in, uint32_t pitch, const placed_t *w, int32_t bias,
                                 const htvm_requant_t *r, uint32_t k, int8_t *out, uint32_t count,
                                 htvm_scaling_t scaling)
{
    const int8_t *const end = out + count;
    uint32_t x[SIDE];
    for (uint32_t i = 0; i < SIDE; i++) {
        x[i] = htvm_load4(in + i * pitch);
    }
    for (; out < end; out += 4) {
        in += 4;
        four(in, pitch, x, w, bias, r, k, out, scaling);
    }
}

/* A row of outputs, two at a time; the last may be one too many. */
HTVM_INLINE void row_of_stride_2(const int8_t *in, uint32_t pitch, const placed_t *w, int32_t bias,
                                 const htvm_requant_t *r, uint32_t k, int8_t *out, uint32_t count,
                                 htvm_scaling_t scaling)
{
    uint32_t x[SIDE];
    for (uint32_t i = 0; i < SIDE; i++) {
        x[i] = htvm_load4(in + i * pitch);
    }
    for (const int8_t *const end = out + count; out < end; out += 2) {
        int32_t s0 = bias, s1 = bias;
        in += 4;
        HTVM_UNROLL(3)
        for (uint32_t i = 0; i < SIDE; i++) {
            const uint32_t next = htvm_load4(in + i * pitch);
            s0 = htvm_dot4(x[i], w->even[i], s0);
            s1 = htvm_dot4(htvm_halves(x[i], next), w->even[i], s1);
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
            sum = (int32_t)((uint32_t)sum + (uint32_t)(in[fx] * weights[fx]));
        }
    }
    return sum;
}

HTVM_INLINE void depthwise(const htvm_depthwise_t *p, htvm_scaling_t scaling)
{
    const htvm_requant_t r = p->requant;
    const uint32_t pitch = p->in_planes.row, filter_bytes = p->fy * p->fx;
    const int is_3x3 = p->fy == SIDE && p->fx == SIDE && p->stride <= 2;
    for (uint32_t k = 0; k < p->k; k++) {
        const int8_t *const weights = p->weights + k * filter_bytes;
        const int32_t bias = p->bias[k];
        const int8_t *in = p->in + k * p->in_planes.plane;
        int8_t *out = p->out + k * p->out_planes.plane;
        placed_t w = {{0}, {0}};
        if (is_3x3) {
            w = placed(weights);
        }
        uint32_t first = 0; /* column */
#if HTVM_SIMD
        if (scaling == HTVM_SHIFT && is_3x3 && p->stride == 1 && p->oy != 0 && p->ox > 4) {
            const uint32_t times = (p->ox + 3) / 8;
            eights(in, pitch, &w, bias, &r, out, p->out_planes.row, times, p->oy);
            first = 8 * times;
        }
        if (first >= p->ox) {
            continue;
        }
#endif
        for (uint32_t y = 0; y < p->oy; y++, out += p->out_planes.row, in += p->stride * pitch) {
            if (is_3x3 && p->stride == 1) {
                row_of_stride_1(in + first, pitch, &w, bias, &r, k, out + first,
                                p->ox - first, scaling);
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
