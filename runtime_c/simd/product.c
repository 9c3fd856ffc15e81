/* Products of rows of int8 with packed weights; see htvm_product.h.
 *
 * The inner loop holds the sums of 4 channels of 4 pixels in registers: 8 loads and 16 dot products
 * for 64 MAC.  It needs up to 27 of the 28 registers there are, so it is a hardware loop in assembly:
 * a compiler would move some of the sums to memory. */
#include "htvm_requantize.h"

#define CHANNELS 4u
#define PIXELS 4u

#if HTVM_SIMD
/* sum[4 * pixel + channel] = bias[channel] + x[pixel] . w[channel] over all runs, in registers s0 to
 * s15.  Loop 0 goes through a run, loop 1 through the tap rows.  The pointer x goes from pixel to
 * pixel and back; what does not fit into registers is read from the stack. */
#define SUMS_4X4 \
    "lw %[s0], 0(%[g])\nlw %[s1], 4(%[g])\nlw %[s2], 8(%[g])\nlw %[s3], 12(%[g])\n" \
    "mv %[s4], %[s0]\nmv %[s5], %[s1]\nmv %[s6], %[s2]\nmv %[s7], %[s3]\n" \
    "mv %[s8], %[s0]\nmv %[s9], %[s1]\nmv %[s10], %[s2]\nmv %[s11], %[s3]\n" \
    "mv %[s12], %[s0]\nmv %[s13], %[s1]\nmv %[s14], %[s2]\nmv %[s15], %[s3]\n" \
    ".insn r 0x2b, 4, 0, x11, %[f], x0\n" /* cv.count 1, f */ \
    "lw %[f], %[words]\n" \
    "2: .insn r 0x2b, 4, 0, x10, %[f], x0\n" /* cv.count 0, f */ \
    "3: cv.lw %[a], (%[x]), %[step]\n" \
    "cv.lw %[f], (%[w]), 4\n" \
    "cv.lw %[b], (%[x]), %[step]\n" \
    "cv.lw %[c], (%[x]), %[step]\n" \
    "cv.lw %[d], (%[x]), %[back]\n" \
    "cv.lw %[g], (%[w]), 4\n" \
    "cv.sdotsp.b %[s0], %[a], %[f]\n" \
    "cv.sdotsp.b %[s4], %[b], %[f]\n" \
    "cv.sdotsp.b %[s8], %[c], %[f]\n" \
    "cv.sdotsp.b %[s12], %[d], %[f]\n" \
    "cv.lw %[f], (%[w]), 4\n" \
    "cv.sdotsp.b %[s1], %[a], %[g]\n" \
    "cv.sdotsp.b %[s5], %[b], %[g]\n" \
    "cv.sdotsp.b %[s9], %[c], %[g]\n" \
    "cv.sdotsp.b %[s13], %[d], %[g]\n" \
    "cv.lw %[g], (%[w]), 4\n" \
    "cv.sdotsp.b %[s2], %[a], %[f]\n" \
    "cv.sdotsp.b %[s6], %[b], %[f]\n" \
    "cv.sdotsp.b %[s10], %[c], %[f]\n" \
    "cv.sdotsp.b %[s14], %[d], %[f]\n" \
    "cv.sdotsp.b %[s3], %[a], %[g]\n" \
    "cv.sdotsp.b %[s7], %[b], %[g]\n" \
    "cv.sdotsp.b %[s11], %[c], %[g]\n" \
    "cv.sdotsp.b %[s15], %[d], %[g]\n" \
    "4: lw %[a], %[next]\n" \
    "lw %[f], %[words]\n" \
    "add %[x], %[x], %[a]\n" \
    "5:\n"

#define SUMS_OPERANDS                                                                              \
    [s0] "=&r"(sum[0]), [s1] "=&r"(sum[1]), [s2] "=&r"(sum[2]), [s3] "=&r"(sum[3]),                \
        [s4] "=&r"(sum[4]), [s5] "=&r"(sum[5]), [s6] "=&r"(sum[6]), [s7] "=&r"(sum[7]),            \
        [s8] "=&r"(sum[8]), [s9] "=&r"(sum[9]), [s10] "=&r"(sum[10]), [s11] "=&r"(sum[11]),        \
        [s12] "=&r"(sum[12]), [s13] "=&r"(sum[13]), [s14] "=&r"(sum[14]), [s15] "=&r"(sum[15]),    \
        [x] "+&r"(x), [w] "+&r"(w), [f] "+&r"(f), [g] "+&r"(g), [a] "=&r"(a), [b] "=&r"(b),        \
        [c] "=&r"(c), [d] "=&r"(d)

#define SUMS_INPUTS [step] "r"(step), [back] "r"(back), [words] "m"(words), [next] "m"(next)

/* What both statements begin with. */
#define SUMS_VARIABLES                                                                             \
    const uint32_t step = p->in_pixel, back = 4u - 3u * step;                                      \
    const uint32_t words = p->run / 4, next = p->in_tap - p->run;                                  \
    uint32_t a, b, c, d, f = p->taps;                                                              \
    const int32_t *g = bias

HTVM_INLINE void sums_4x4(int32_t *sum, const htvm_product_t *p, const int8_t *x, const int8_t *w,
                          const int32_t *bias)
{
    SUMS_VARIABLES;
    __asm__ volatile(HTVM_LOOPS SUMS_4X4 ".option pop\n" : SUMS_OPERANDS : SUMS_INPUTS : "memory");
}

/* The same for one pixel. */
HTVM_INLINE void sums_1x4(int32_t *sum, const htvm_product_t *p, const int8_t *x, const int8_t *w,
                          const int32_t *bias)
{
    const uint32_t words = p->run / 4, next = p->in_tap - p->run;
    uint32_t a, b, c, d, e, f = p->taps;
    __asm__ volatile(HTVM_LOOPS
                     "lw %[s0], 0(%[bias])\nlw %[s1], 4(%[bias])\n"
                     "lw %[s2], 8(%[bias])\nlw %[s3], 12(%[bias])\n"
                     ".insn r 0x2b, 4, 0, x11, %[f], x0\n" /* cv.count 1, f */
                     "2: .insn r 0x2b, 4, 0, x10, %[words], x0\n" /* cv.count 0, words */
                     "3: cv.lw %[e], (%[x]), 4\n"
                     "cv.lw %[a], (%[w]), 4\n"
                     "cv.lw %[b], (%[w]), 4\n"
                     "cv.lw %[c], (%[w]), 4\n"
                     "cv.lw %[d], (%[w]), 4\n"
                     "cv.sdotsp.b %[s0], %[e], %[a]\n"
                     "cv.sdotsp.b %[s1], %[e], %[b]\n"
                     "cv.sdotsp.b %[s2], %[e], %[c]\n"
                     "cv.sdotsp.b %[s3], %[e], %[d]\n"
                     "4: add %[x], %[x], %[next]\nnop\n"
                     "5:\n.option pop\n"
                     : [s0] "=&r"(sum[0]), [s1] "=&r"(sum[1]), [s2] "=&r"(sum[2]),
                       [s3] "=&r"(sum[3]), [x] "+&r"(x), [w] "+&r"(w), [f] "+&r"(f), [a] "=&r"(a),
                       [b] "=&r"(b), [c] "=&r"(c), [d] "=&r"(d), [e] "=&r"(e)
                     : [words] "r"(words), [next] "r"(next), [bias] "r"(bias)
                     : "memory");
}

#define SHIFT_AND_STORE(s)                                                                         \
    "sra %[" s "], %[" s "], %[f]\n"                                                               \
    "cv.max %[" s "], %[" s "], %[a]\n"                                                            \
    "cv.min %[" s "], %[" s "], %[b]\n"                                                            \
    "cv.sb %[" s "], (%[out]), 1\n"
#define SHIFT_PIXEL(s, t, u, v)                                                                    \
    SHIFT_AND_STORE(s) SHIFT_AND_STORE(t) SHIFT_AND_STORE(u) SHIFT_AND_STORE(v)                    \
    "add %[out], %[out], %[g]\n"

/* Four channels of `blocks` times four pixels, requantized by a shift and stored.  All in one
 * statement, because between two a compiler moves the sums to memory and back. */
HTVM_INLINE void shifted_blocks(const htvm_product_t *p, const int8_t *x, const int8_t *w,
                                const int32_t *bias, int8_t *out, uint32_t blocks)
{
    SUMS_VARIABLES;
    const uint32_t gap = p->out_pixel - CHANNELS, shift = p->requant.shift;
    const int32_t low = p->requant.low, high = p->requant.high;
    const uint32_t forth = PIXELS * p->in_pixel - p->taps * p->in_tap;
    const uint32_t again = 0u - CHANNELS * p->taps * p->run;
    const uint32_t taps = f;
    int32_t sum[CHANNELS * PIXELS];
    __asm__ volatile(
        HTVM_LOOPS
        "0: lw %[g], %[bias]\nlw %[f], %[taps]\n" SUMS_4X4
        "lw %[f], %[shift]\nlw %[a], %[low]\nlw %[b], %[high]\nlw %[g], %[gap]\n"
        SHIFT_PIXEL("s0", "s1", "s2", "s3") SHIFT_PIXEL("s4", "s5", "s6", "s7")
        SHIFT_PIXEL("s8", "s9", "s10", "s11") SHIFT_PIXEL("s12", "s13", "s14", "s15")
        "lw %[a], %[blocks]\nlw %[b], %[forth]\nlw %[c], %[again]\n"
        "addi %[a], %[a], -1\nadd %[x], %[x], %[b]\nadd %[w], %[w], %[c]\n"
        "sw %[a], %[blocks]\nbnez %[a], 0b\n"
        ".option pop\n"
        : SUMS_OPERANDS, [out] "+&r"(out), [blocks] "+m"(blocks)
        : SUMS_INPUTS, [shift] "m"(shift), [low] "m"(low), [high] "m"(high), [gap] "m"(gap),
          [bias] "m"(bias), [taps] "m"(taps), [forth] "m"(forth), [again] "m"(again)
        : "memory");
}
#else
HTVM_INLINE void sums_4x4(int32_t *sum, const htvm_product_t *p, const int8_t *x, const int8_t *w,
                          const int32_t *bias)
{
    for (uint32_t i = 0; i < CHANNELS * PIXELS; i++) {
        sum[i] = bias[i % CHANNELS];
    }
    for (uint32_t tap = 0; tap < p->taps; tap++) {
        for (uint32_t at = tap * p->in_tap; at < tap * p->in_tap + p->run; at += 4) {
            for (uint32_t j = 0; j < CHANNELS; j++, w += 4) {
                for (uint32_t i = 0; i < PIXELS; i++) {
                    const uint32_t in = htvm_load4(x + i * p->in_pixel + at);
                    sum[CHANNELS * i + j] = htvm_dot4(in, htvm_load4(w), sum[CHANNELS * i + j]);
                }
            }
        }
    }
}

HTVM_INLINE void sums_1x4(int32_t *sum, const htvm_product_t *p, const int8_t *x, const int8_t *w,
                          const int32_t *bias)
{
    for (uint32_t j = 0; j < CHANNELS; j++) {
        sum[j] = bias[j];
    }
    for (uint32_t tap = 0; tap < p->taps; tap++) {
        for (uint32_t at = tap * p->in_tap; at < tap * p->in_tap + p->run; at += 4) {
            for (uint32_t j = 0; j < CHANNELS; j++, w += 4) {
                sum[j] = htvm_dot4(htvm_load4(x + at), htvm_load4(w), sum[j]);
            }
        }
    }
}
#endif

/* Requantizes and stores the first `count` of four channels of a pixel.  Constant indices keep the
 * sums in registers. */
HTVM_INLINE void store(const htvm_requant_t *r, const int32_t *sum, int8_t *out, uint32_t k,
                       uint32_t count, htvm_scaling_t scaling)
{
    HTVM_UNROLL(4)
    for (uint32_t j = 0; j < CHANNELS; j++) {
        if (j < count) {
            out[j] = (int8_t)htvm_requantize(r, sum[j], k + j, scaling);
        }
    }
}

/* Four channels of four pixels beside each other. */
HTVM_INLINE void block_4x4(const htvm_product_t *p, const int8_t *in, const int8_t *w, int8_t *out,
                           uint32_t k, uint32_t count, htvm_scaling_t scaling)
{
    const htvm_requant_t r = p->requant; /* stores of bytes cannot change it */
    int32_t sum[CHANNELS * PIXELS];
    sums_4x4(sum, p, in, w, p->bias + k);
    HTVM_UNROLL(4)
    for (uint32_t i = 0; i < PIXELS; i++, out += p->out_pixel) {
        store(&r, sum + CHANNELS * i, out, k, count, scaling);
    }
}

/* Four channels of one pixel. */
HTVM_INLINE void block_1x4(const htvm_product_t *p, const int8_t *in, const int8_t *w, int8_t *out,
                           uint32_t k, uint32_t count, htvm_scaling_t scaling)
{
    const htvm_requant_t r = p->requant;
    int32_t sum[CHANNELS];
    sums_1x4(sum, p, in, w, p->bias + k);
    store(&r, sum, out, k, count, scaling);
}

/* Up to four channels of all pixels. */
HTVM_INLINE void channels(const htvm_product_t *p, const int8_t *w, uint32_t k, uint32_t count,
                          htvm_scaling_t scaling)
{
    for (uint32_t y = 0; y < p->rows; y++) {
        const int8_t *const in = p->in + y * p->in_row;
        int8_t *const out = p->out + y * p->out_row + k;
        if (p->pixels < PIXELS) {
            for (uint32_t x = 0; x < p->pixels; x++) {
                block_1x4(p, in + x * p->in_pixel, w, out + x * p->out_pixel, k, count, scaling);
            }
            continue;
        }
        uint32_t x = 0;
#if HTVM_SIMD
        if (scaling == HTVM_SHIFT && count == CHANNELS) {
            x = p->pixels & ~(PIXELS - 1u);
            shifted_blocks(p, in, w, p->bias + k, out, x / PIXELS);
        }
#endif
        for (; x < p->pixels; x += PIXELS) {
            /* The last four pixels may overlap the ones before. */
            const uint32_t at = x + PIXELS <= p->pixels ? x : p->pixels - PIXELS;
            block_4x4(p, in + at * p->in_pixel, w, out + at * p->out_pixel, k, count, scaling);
        }
    }
}

HTVM_INLINE void product(const htvm_product_t *p, htvm_scaling_t scaling)
{
    const uint32_t block = CHANNELS * p->taps * p->run, whole = p->k - p->k % CHANNELS;
    const int8_t *w = p->weights;
    for (uint32_t k = 0; k < whole; k += CHANNELS, w += block) {
        channels(p, w, k, CHANNELS, scaling);
    }
    if (whole != p->k) {
        channels(p, w, whole, p->k - whole, scaling);
    }
}

void htvm_product_shift(const htvm_product_t *what) { product(what, HTVM_SHIFT); }

void htvm_product_multiply(const htvm_product_t *what) { product(what, HTVM_MULTIPLY); }

void htvm_product_tflite(const htvm_product_t *what) { product(what, HTVM_TFLITE); }
