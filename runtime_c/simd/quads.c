/* Products with quads; see htvm_quads.h.
 *
 * The inner loop holds the sums of 4 channels of 4 pixels in registers: 8 loads and 16 dot products
 * for 64 MAC.  It needs 27 of the 28 registers there are, so everything from the bias to the stored
 * bytes is one statement in assembly: a compiler would move some of the sums to memory. */
#include "htvm_quads.h"

#include <stddef.h>

#include "htvm_bytes.h"
#include "htvm_scale.h"

#define PIXELS 4u

/* The constants of one channel, behind the weights. */
typedef struct {
    int32_t mul, add, shift;
} factors_t;

#define FACTORS_BYTES 64u /* with the biases */

HTVM_INLINE uint32_t quad_bytes(const htvm_quads_t *p)
{
    return p->before + 4u * HTVM_QUAD * p->taps * p->words + p->after + FACTORS_BYTES;
}

#if HTVM_SIMD
#define DOTS(op, w, t0, t1, t2, t3)                                                                \
    op " %[" t0 "], %[a], %[" w "]\n" op " %[" t1 "], %[b], %[" w "]\n"                             \
    op " %[" t2 "], %[c], %[" w "]\n" op " %[" t3 "], %[d], %[" w "]\n"

/* The products of one word of four pixels with those of four channels. */
#define BODY_4X4(op)                                                                               \
    "cv.lw %[a], (%[x]), %[step]\n"                                                                \
    "cv.lw %[f], (%[w]), 4\n"                                                                       \
    "cv.lw %[b], (%[x]), %[step]\n"                                                                \
    "cv.lw %[c], (%[x]), %[step]\n"                                                                \
    "cv.lw %[d], (%[x]), %[back]\n"                                                                \
    "cv.lw %[g], (%[w]), 4\n" DOTS(op, "f", "s0", "s4", "s8", "s12")                                \
    "cv.lw %[f], (%[w]), 4\n" DOTS(op, "g", "s1", "s5", "s9", "s13")                                \
    "cv.lw %[g], (%[w]), 4\n" DOTS(op, "f", "s2", "s6", "s10", "s14")                               \
    DOTS(op, "g", "s3", "s7", "s11", "s15")

/* s[4 * pixel + channel] = x[pixel] . w[channel], of at least two words: the first one sets the sums.
 * Loop 0 goes through a run, loop 1 through the taps.  The pointer x goes from pixel to pixel and
 * back; what does not fit into registers is read from the stack. */
#define SUMS_4X4(kind)                                                                             \
    "lw %[a], %[taps]\nnop\n"                                                                      \
    ".insn r 0x2b, 4, 0, x11, %[a], x0\n" /* cv.count 1, a */                                      \
    BODY_4X4("cv.dot" kind ".b")                                                                   \
    "lw %[f], %[first]\nnop\n"                                                                     \
    "2: .insn r 0x2b, 4, 0, x10, %[f], x0\n" /* cv.count 0, f */                                   \
    "3:\n" BODY_4X4("cv.sdot" kind ".b")                                                           \
    "4: lw %[a], %[next]\n"                                                                        \
    "lw %[f], %[words]\n"                                                                           \
    "add %[x], %[x], %[a]\n"                                                                       \
    "5:\n"

#define CLIP_SIGNED(s) "cv.clipr %[" s "], %[" s "], %[c]\n"    /* -c - 1 to c */
#define CLIP_UNSIGNED(s) "cv.clipur %[" s "], %[" s "], %[c]\n" /* 0 to c */
#define CLIP_LIMITS(s) "cv.max %[" s "], %[" s "], %[f]\ncv.min %[" s "], %[" s "], %[c]\n"

/* Requantizes one channel of four pixels. */
#define REQUANTIZE(clip, s, t, u, v)                                                               \
    "cv.lw %[a], (%[w]), 4\ncv.lw %[b], (%[w]), 4\ncv.lw %[d], (%[w]), 4\n"                          \
    "mul %[" s "], %[" s "], %[a]\nmul %[" t "], %[" t "], %[a]\n"                                  \
    "mul %[" u "], %[" u "], %[a]\nmul %[" v "], %[" v "], %[a]\n"                                  \
    "cv.addnr %[" s "], %[b], %[d]\ncv.addnr %[" t "], %[b], %[d]\n"                               \
    "cv.addnr %[" u "], %[b], %[d]\ncv.addnr %[" v "], %[b], %[d]\n"                               \
    clip(s) clip(t) clip(u) clip(v)
#define REQUANTIZE_2(s, t)                                                                         \
    "cv.lw %[a], (%[w]), 4\ncv.lw %[b], (%[w]), 4\ncv.lw %[d], (%[w]), 4\n"                        \
    "mul %[" s "], %[" s "], %[a]\nmul %[" t "], %[" t "], %[a]\n"                                 \
    "cv.addnr %[" s "], %[b], %[d]\ncv.addnr %[" t "], %[b], %[d]\n" CLIP_LIMITS(s) CLIP_LIMITS(t)
#define REQUANTIZE_1(s)                                                                            \
    "cv.lw %[a], (%[w]), 4\ncv.lw %[b], (%[w]), 4\ncv.lw %[d], (%[w]), 4\n"                        \
    "mul %[" s "], %[" s "], %[a]\ncv.addnr %[" s "], %[b], %[d]\n" CLIP_LIMITS(s)
/* The lowest bytes of four words become one word. */
#define PACK(s, t, u, v)                                                                           \
    "cv.packlo.b %[" s "], %[" t "], %[" s "]\ncv.packhi.b %[" s "], %[" v "], %[" u "]\n"

/* What the statements below need, mostly in memory. */
#define VARIABLES(pixels)                                                                          \
    const uint32_t step = p->in_pixel, taps = p->taps, words = p->words;                           \
    const uint32_t next = p->in_tap - 4u * words, rewind = 0u - taps * p->in_tap;                  \
    const uint32_t after = p->after, again = p->before + 16u, row = pixel;                         \
    const uint32_t in_next = (pixels) * step, out_next = (pixels) * row - HTVM_QUAD * quads;       \
    const int32_t low = p->low, high = p->high;                                                    \
    const uint8_t *w = first_quad + p->before, *const begin = w;                                   \
    const uint8_t *const end = w + quads * quad_bytes(p);                                          \
    uint32_t a, b, c, d, f, g
#define TEMPORARIES                                                                                \
    [x] "+&r"(x), [w] "+&r"(w), [out] "+&r"(out), [a] "=&r"(a), [b] "=&r"(b), [c] "=&r"(c),        \
        [d] "=&r"(d), [f] "=&r"(f), [g] "=&r"(g), [blocks] "+m"(blocks)
#define INPUTS                                                                                     \
    [taps] "m"(taps), [words] "m"(words), [next] "m"(next), [rewind] "m"(rewind),                  \
        [after] "m"(after), [again] "m"(again), [row] "m"(row), [low] "m"(low), [high] "m"(high),  \
        [end] "m"(end), [begin] "m"(begin), [in_next] "m"(in_next), [out_next] "m"(out_next)
/* From the weights of a quad to its factors; to the next quad, or to the next pixels. */
#define TO_FACTORS "lw %[a], %[after]\nlw %[c], %[high]\nlw %[f], %[low]\nadd %[w], %[w], %[a]\n"
#define TO_NEXT                                                                                    \
    "lw %[g], %[again]\nadd %[x], %[x], %[d]\nadd %[w], %[w], %[g]\nbne %[w], %[c], 0b\n"          \
    "lw %[c], %[blocks]\nlw %[a], %[in_next]\nlw %[b], %[out_next]\nlw %[w], %[begin]\n"           \
    "addi %[c], %[c], -1\nadd %[x], %[x], %[a]\nadd %[out], %[out], %[b]\n"                        \
    "sw %[c], %[blocks]\nbnez %[c], 0b\n"                                                          \
    ".option pop\n"

/* Four pixels of `quads` quads.  All in one statement, because between two a compiler moves the sums
 * to memory and back. */
#define FOUR_PIXELS(name, kind, clip)                                                              \
    HTVM_CALLED void name(const htvm_quads_t *p, const uint8_t *x, uint8_t *out,                   \
                          const uint8_t *first_quad, uint32_t quads, uint32_t blocks,              \
                          uint32_t pixel)                                                          \
    {                                                                                              \
        VARIABLES(4u);                                                                                 \
        const uint32_t back = 4u - 3u * step, first = words - 1u, forth = 4u - 3u * row;           \
        int32_t s[4 * HTVM_QUAD];                                                                  \
        __asm__ volatile(                                                                          \
            HTVM_LOOPS "0:\n" SUMS_4X4(kind) TO_FACTORS                                            \
            REQUANTIZE(clip, "s0", "s4", "s8", "s12") REQUANTIZE(clip, "s1", "s5", "s9", "s13")    \
            REQUANTIZE(clip, "s2", "s6", "s10", "s14") REQUANTIZE(clip, "s3", "s7", "s11", "s15")  \
            "lw %[a], %[row]\nlw %[b], %[forth]\nlw %[c], %[end]\nlw %[d], %[rewind]\n"            \
            PACK("s0", "s1", "s2", "s3") PACK("s4", "s5", "s6", "s7")                              \
            PACK("s8", "s9", "s10", "s11") PACK("s12", "s13", "s14", "s15")                        \
            "cv.sw %[s0], (%[out]), %[a]\ncv.sw %[s4], (%[out]), %[a]\n"                           \
            "cv.sw %[s8], (%[out]), %[a]\ncv.sw %[s12], (%[out]), %[b]\n" TO_NEXT                  \
            : [s0] "=&r"(s[0]), [s1] "=&r"(s[1]), [s2] "=&r"(s[2]), [s3] "=&r"(s[3]),              \
              [s4] "=&r"(s[4]), [s5] "=&r"(s[5]), [s6] "=&r"(s[6]), [s7] "=&r"(s[7]),              \
              [s8] "=&r"(s[8]), [s9] "=&r"(s[9]), [s10] "=&r"(s[10]), [s11] "=&r"(s[11]),          \
              [s12] "=&r"(s[12]), [s13] "=&r"(s[13]), [s14] "=&r"(s[14]), [s15] "=&r"(s[15]),      \
              TEMPORARIES                                                                          \
            : INPUTS, [step] "r"(step), [back] "r"(back), [first] "m"(first), [forth] "m"(forth)   \
            : "memory");                                                                           \
    }

/* Two pixels, in runs of at least one word. */
#define TWO_PIXELS(name, kind)                                                                     \
    HTVM_CALLED void name(const htvm_quads_t *p, const uint8_t *x, uint8_t *out,                   \
                          const uint8_t *first_quad, uint32_t quads, uint32_t blocks,              \
                          uint32_t pixel)                                                          \
    {                                                                                              \
        VARIABLES(2u);                                                                                 \
        const uint32_t back = 4u - step, forth = 4u - row;                                         \
        int32_t s[2 * HTVM_QUAD];                                                                  \
        __asm__ volatile(                                                                          \
            HTVM_LOOPS "0: lw %[a], %[taps]\nlw %[b], %[words]\n"                                  \
            "mv %[s0], x0\nmv %[s1], x0\nmv %[s2], x0\nmv %[s3], x0\n"                             \
            "mv %[s4], x0\nmv %[s5], x0\nmv %[s6], x0\nmv %[s7], x0\n"                             \
            ".insn r 0x2b, 4, 0, x11, %[a], x0\n"    /* cv.count 1 */                              \
            "2: .insn r 0x2b, 4, 0, x10, %[b], x0\n" /* cv.count 0 */                              \
            "3: cv.lw %[a], (%[x]), %[step]\ncv.lw %[c], (%[w]), 4\n"                              \
            "cv.lw %[b], (%[x]), %[back]\ncv.lw %[d], (%[w]), 4\n"                                 \
            "cv.lw %[f], (%[w]), 4\ncv.lw %[g], (%[w]), 4\n"                                       \
            "cv.sdot" kind ".b %[s0], %[a], %[c]\ncv.sdot" kind ".b %[s4], %[b], %[c]\n"           \
            "cv.sdot" kind ".b %[s1], %[a], %[d]\ncv.sdot" kind ".b %[s5], %[b], %[d]\n"           \
            "cv.sdot" kind ".b %[s2], %[a], %[f]\ncv.sdot" kind ".b %[s6], %[b], %[f]\n"           \
            "cv.sdot" kind ".b %[s3], %[a], %[g]\ncv.sdot" kind ".b %[s7], %[b], %[g]\n"           \
            "4: lw %[a], %[next]\nlw %[b], %[words]\nadd %[x], %[x], %[a]\n"                       \
            "5:\n" TO_FACTORS                                                                      \
            REQUANTIZE_2("s0", "s4") REQUANTIZE_2("s1", "s5")                                      \
            REQUANTIZE_2("s2", "s6") REQUANTIZE_2("s3", "s7")                                      \
            "lw %[a], %[row]\nlw %[b], %[forth]\nlw %[c], %[end]\nlw %[d], %[rewind]\n"            \
            PACK("s0", "s1", "s2", "s3") PACK("s4", "s5", "s6", "s7")                              \
            "cv.sw %[s0], (%[out]), %[a]\ncv.sw %[s4], (%[out]), %[b]\n" TO_NEXT                   \
            : [s0] "=&r"(s[0]), [s1] "=&r"(s[1]), [s2] "=&r"(s[2]), [s3] "=&r"(s[3]),              \
              [s4] "=&r"(s[4]), [s5] "=&r"(s[5]), [s6] "=&r"(s[6]), [s7] "=&r"(s[7]), TEMPORARIES  \
            : INPUTS, [step] "r"(step), [back] "r"(back), [forth] "m"(forth)                       \
            : "memory");                                                                           \
    }

/* One pixel. */
#define ONE_PIXEL(name, kind)                                                                      \
    HTVM_CALLED void name(const htvm_quads_t *p, const uint8_t *x, uint8_t *out,                   \
                          const uint8_t *first_quad, uint32_t quads, uint32_t blocks,              \
                          uint32_t pixel)                                                          \
    {                                                                                              \
        VARIABLES(1u);                                                                                 \
        int32_t s[HTVM_QUAD];                                                                      \
        (void)step;                                                                                \
        __asm__ volatile(                                                                          \
            HTVM_LOOPS "0: lw %[a], %[taps]\nlw %[b], %[words]\n"                                  \
            "mv %[s0], x0\nmv %[s1], x0\nmv %[s2], x0\nmv %[s3], x0\n"                             \
            ".insn r 0x2b, 4, 0, x11, %[a], x0\n"                                                  \
            "2: .insn r 0x2b, 4, 0, x10, %[b], x0\n"                                               \
            "3: cv.lw %[a], (%[x]), 4\ncv.lw %[c], (%[w]), 4\ncv.lw %[d], (%[w]), 4\n"             \
            "cv.lw %[f], (%[w]), 4\ncv.lw %[g], (%[w]), 4\n"                                       \
            "cv.sdot" kind ".b %[s0], %[a], %[c]\ncv.sdot" kind ".b %[s1], %[a], %[d]\n"           \
            "cv.sdot" kind ".b %[s2], %[a], %[f]\ncv.sdot" kind ".b %[s3], %[a], %[g]\n"           \
            "4: lw %[a], %[next]\nlw %[b], %[words]\nadd %[x], %[x], %[a]\n"                       \
            "5:\n" TO_FACTORS                                                                      \
            REQUANTIZE_1("s0") REQUANTIZE_1("s1") REQUANTIZE_1("s2") REQUANTIZE_1("s3")            \
            "lw %[c], %[end]\nlw %[d], %[rewind]\n" PACK("s0", "s1", "s2", "s3")                   \
            "cv.sw %[s0], (%[out]), 4\n" TO_NEXT                                                   \
            : [s0] "=&r"(s[0]), [s1] "=&r"(s[1]), [s2] "=&r"(s[2]), [s3] "=&r"(s[3]), TEMPORARIES  \
            : INPUTS                                                                               \
            : "memory");                                                                           \
    }

FOUR_PIXELS(signed_to_signed, "sp", CLIP_SIGNED)
FOUR_PIXELS(signed_to_unsigned, "sp", CLIP_UNSIGNED)
FOUR_PIXELS(signed_to_limits, "sp", CLIP_LIMITS)
FOUR_PIXELS(unsigned_to_signed, "usp", CLIP_SIGNED)
FOUR_PIXELS(unsigned_to_unsigned, "usp", CLIP_UNSIGNED)
FOUR_PIXELS(unsigned_to_limits, "usp", CLIP_LIMITS)
TWO_PIXELS(two_signed, "sp")
TWO_PIXELS(two_unsigned, "usp")
ONE_PIXEL(one_signed, "sp")
ONE_PIXEL(one_unsigned, "usp")

typedef void block_t(const htvm_quads_t *, const uint8_t *in, uint8_t *out, const uint8_t *quad,
                     uint32_t quads, uint32_t blocks, uint32_t pixel);

/* Returns the function for blocks of this number of pixels, with results `pixel` bytes apart. */
HTVM_INLINE block_t *block_of(const htvm_quads_t *p, uint32_t pixels)
{
    if (pixels == 1) {
        return p->in_unsigned ? one_unsigned : one_signed;
    }
    if (pixels == 2) {
        return p->in_unsigned ? two_unsigned : two_signed;
    }
    if (p->low == -p->high - 1) {
        return p->in_unsigned ? unsigned_to_signed : signed_to_signed;
    }
    if (p->low == 0) {
        return p->in_unsigned ? unsigned_to_unsigned : signed_to_unsigned;
    }
    return p->in_unsigned ? unsigned_to_limits : signed_to_limits;
}

/* The channels from k on of blocks of pixels, by a copy of each quad's results: there are fewer than
 * four channels, or each has its own place. */
HTVM_CALLED void scattered(const htvm_quads_t *p, const uint8_t *in, uint8_t *out, uint32_t pixels,
                           uint32_t blocks, uint32_t k)
{
    block_t *const block = block_of(p, pixels);
    const uint8_t *quad = p->quads + k / HTVM_QUAD * quad_bytes(p);
    uint32_t copy[PIXELS];
    for (; k < p->k; k += HTVM_QUAD, quad += quad_bytes(p)) {
        const uint32_t count = p->k - k < HTVM_QUAD ? p->k - k : HTVM_QUAD;
        uint8_t *at = out + k * p->out_channel;
        for (uint32_t n = 0; n < blocks; n++) {
            block(p, in + n * pixels * p->in_pixel, (uint8_t *)copy, quad, 1, 1, HTVM_QUAD);
            for (uint32_t i = 0; i < pixels; i++, at += p->out_pixel) {
                uint8_t *channel = at;
                for (uint32_t j = 0; j < count; j++, channel += p->out_channel) {
                    const uint8_t byte = (uint8_t)(copy[i] >> (8 * j));
                    *channel = p->table != NULL ? p->table[byte] : byte;
                }
            }
        }
    }
}

/* Looks up k channels of pixels. */
HTVM_CALLED void look_up(const htvm_quads_t *p, uint8_t *out, uint32_t pixels, uint32_t k)
{
    for (uint32_t i = 0; i < pixels; i++, out += p->out_pixel) {
        htvm_look_up(out, out, p->table, k);
    }
}

enum { FEW = 64 }; /* channels */

/* One pixel of at most FEW channels beside each other, the last quad incomplete: by a copy of all. */
HTVM_CALLED void incomplete(const htvm_quads_t *p, const uint8_t *in, uint8_t *out)
{
    uint32_t copy[FEW / HTVM_QUAD];
    const uint32_t *from = copy, *const last = copy + p->k / HTVM_QUAD;
    block_of(p, 1)(p, in, (uint8_t *)copy, p->quads, p->k / HTVM_QUAD + 1u, 1, 0);
    if (p->table != NULL) {
        htvm_look_up((const uint8_t *)copy, (uint8_t *)copy, p->table, p->k);
    }
    for (; from != last; from++, out += HTVM_QUAD) {
        htvm_store4(out, *from);
    }
    for (uint32_t rest = *last, count = p->k % HTVM_QUAD; count != 0; count--, rest >>= 8) {
        *out++ = (uint8_t)rest;
    }
}

/* Blocks of 1, 2 or 4 pixels that are requantized in 32 bits. */
HTVM_INLINE void narrow(const htvm_quads_t *p, const uint8_t *in, uint8_t *out, uint32_t pixels,
                        uint32_t blocks)
{
    const uint32_t k = p->out_channel == 1 ? p->k & ~(HTVM_QUAD - 1u) : 0;
    if (k != 0) {
        block_of(p, pixels)(p, in, out, p->quads, k / HTVM_QUAD, blocks, p->out_pixel);
        if (p->table != NULL) {
            look_up(p, out, pixels * blocks, k);
        }
    }
    if (k != p->k) {
        scattered(p, in, out, pixels, blocks, k);
    }
}

/* sum[4 * pixel + channel] of two pixels. */
#define TWO_SUMS(op)                                                                               \
    __asm__ volatile(                                                                              \
        HTVM_LOOPS                                                                                 \
        "lw %[s0], 0(%[bias])\nlw %[s1], 4(%[bias])\n"                                             \
        "lw %[s2], 8(%[bias])\nlw %[s3], 12(%[bias])\n"                                            \
        "mv %[s4], %[s0]\nmv %[s5], %[s1]\nmv %[s6], %[s2]\nmv %[s7], %[s3]\n"                      \
        ".insn r 0x2b, 4, 0, x11, %[taps], x0\n"     /* cv.count 1 */                              \
        "2: .insn r 0x2b, 4, 0, x10, %[words], x0\n" /* cv.count 0 */                              \
        "3: cv.lw %[a], (%[x]), %[step]\ncv.lw %[b], (%[x]), %[back]\n"                            \
        "cv.lw %[c], (%[w]), 4\ncv.lw %[d], (%[w]), 4\n"                                            \
        "cv.lw %[f], (%[w]), 4\ncv.lw %[g], (%[w]), 4\n"                                            \
        op " %[s0], %[a], %[c]\n" op " %[s4], %[b], %[c]\n"                                        \
        op " %[s1], %[a], %[d]\n" op " %[s5], %[b], %[d]\n"                                        \
        op " %[s2], %[a], %[f]\n" op " %[s6], %[b], %[f]\n"                                        \
        op " %[s3], %[a], %[g]\n" op " %[s7], %[b], %[g]\n"                                        \
        "4: add %[x], %[x], %[next]\nnop\n"                                                        \
        "5:\n.option pop\n"                                                                        \
        : [s0] "=&r"(sum[0]), [s1] "=&r"(sum[1]), [s2] "=&r"(sum[2]), [s3] "=&r"(sum[3]),          \
          [s4] "=&r"(sum[4]), [s5] "=&r"(sum[5]), [s6] "=&r"(sum[6]), [s7] "=&r"(sum[7]),          \
          [x] "+&r"(x), [w] "+&r"(w), [a] "=&r"(a), [b] "=&r"(b), [c] "=&r"(c), [d] "=&r"(d),      \
          [f] "=&r"(f), [g] "=&r"(g)                                                               \
        : [words] "r"(words), [next] "r"(next), [step] "r"(step), [back] "r"(back),                \
          [taps] "r"(p->taps), [bias] "r"(bias)                                                                      \
        : "memory")

/* The same of one pixel. */
#define ONE_SUM(op)                                                                                \
    __asm__ volatile(                                                                              \
        HTVM_LOOPS                                                                                 \
        "lw %[s0], 0(%[bias])\nlw %[s1], 4(%[bias])\n"                                             \
        "lw %[s2], 8(%[bias])\nlw %[s3], 12(%[bias])\n"                                            \
        ".insn r 0x2b, 4, 0, x11, %[taps], x0\n"                                                   \
        "2: .insn r 0x2b, 4, 0, x10, %[words], x0\n"                                               \
        "3: cv.lw %[a], (%[x]), 4\n"                                                               \
        "cv.lw %[c], (%[w]), 4\ncv.lw %[d], (%[w]), 4\n"                                            \
        "cv.lw %[f], (%[w]), 4\ncv.lw %[g], (%[w]), 4\n"                                            \
        op " %[s0], %[a], %[c]\n" op " %[s1], %[a], %[d]\n"                                        \
        op " %[s2], %[a], %[f]\n" op " %[s3], %[a], %[g]\n"                                        \
        "4: add %[x], %[x], %[next]\nnop\n"                                                        \
        "5:\n.option pop\n"                                                                        \
        : [s0] "=&r"(sum[0]), [s1] "=&r"(sum[1]), [s2] "=&r"(sum[2]), [s3] "=&r"(sum[3]),          \
          [x] "+&r"(x), [w] "+&r"(w), [a] "=&r"(a), [c] "=&r"(c), [d] "=&r"(d), [f] "=&r"(f),      \
          [g] "=&r"(g)                                                                             \
        : [words] "r"(words), [next] "r"(next), [taps] "r"(p->taps), [bias] "r"(bias)                                \
        : "memory")

/* Sums of one or two pixels with the quad at w. */
HTVM_INLINE void sums_of(const htvm_quads_t *p, const uint8_t *x, const uint8_t *w,
                         const uint8_t *bias, uint32_t pixels, int32_t *sum)
{
    const uint32_t step = p->in_pixel, back = 4u - step;
    const uint32_t words = p->words, next = p->in_tap - 4u * words;
    uint32_t a, b, c, d, f, g;
    if (pixels == 2 && p->in_unsigned) {
        TWO_SUMS("cv.sdotusp.b");
    } else if (pixels == 2) {
        TWO_SUMS("cv.sdotsp.b");
    } else if (p->in_unsigned) {
        ONE_SUM("cv.sdotusp.b");
    } else {
        ONE_SUM("cv.sdotsp.b");
    }
}
#else
HTVM_INLINE void sums_of(const htvm_quads_t *p, const uint8_t *x, const uint8_t *w,
                         const uint8_t *bias, uint32_t pixels, int32_t *sum)
{
    const uint32_t run = 4u * p->words;
    for (uint32_t at = 0; at < HTVM_QUAD * pixels; at++) {
        sum[at] = (int32_t)htvm_load4(bias + 4u * (at % HTVM_QUAD));
    }
    for (uint32_t tap = 0; tap < p->taps; tap++, x += p->in_tap) {
        for (uint32_t at = 0; at < run; at += 4) {
            for (uint32_t j = 0; j < HTVM_QUAD; j++, w += 4) {
                for (uint32_t i = 0; i < pixels; i++) {
                    int32_t *const s = sum + HTVM_QUAD * i + j;
                    const uint32_t in = htvm_load4(x + i * p->in_pixel + at);
                    *s = p->in_unsigned ? htvm_dot4_unsigned(in, htvm_load4(w), *s)
                                        : htvm_dot4(in, htvm_load4(w), *s);
                }
            }
        }
    }
}
#endif

HTVM_INLINE int32_t scaled(const htvm_quads_t *p, int32_t sum, const factors_t *f)
{
    if (p->scaling == HTVM_QUADS_NARROW) {
        return htvm_limit(htvm_scale(sum, f->mul, f->add, (uint32_t)f->shift), p->low, p->high);
    }
    if (p->scaling == HTVM_QUADS_WIDE) {
        return htvm_scale_wide(sum, f->mul, f->add, (uint32_t)f->shift, p->low, p->high);
    }
    sum = htvm_scale_tflite(sum, f->mul, f->shift);
    return htvm_limit((int32_t)((uint32_t)sum + (uint32_t)f->add), p->low, p->high);
}

/* Computes one or two pixels, with any requantization and order of results. */
HTVM_INLINE void few(const htvm_quads_t *p, const uint8_t *in, uint8_t *out, uint32_t pixels)
{
    const uint32_t bytes = quad_bytes(p);
    const uint8_t *quad = p->quads;
    for (uint32_t k = 0; k < p->k; k += HTVM_QUAD, quad += bytes) {
        const uint8_t *at = quad + bytes - FACTORS_BYTES;
        const uint32_t count = p->k - k < HTVM_QUAD ? p->k - k : HTVM_QUAD;
        int32_t sum[2 * HTVM_QUAD];
        sums_of(p, in, quad + p->before, at + 12u * HTVM_QUAD, pixels, sum);
        for (uint32_t j = 0; j < count; j++, at += 12) {
            const factors_t f = {
                (int32_t)htvm_load4(at), (int32_t)htvm_load4(at + 4), (int32_t)htvm_load4(at + 8),
            };
            uint8_t *const to = out + (k + j) * p->out_channel;
            for (uint32_t i = 0; i < pixels; i++) {
                const uint8_t byte = (uint8_t)scaled(p, sum[HTVM_QUAD * i + j], &f);
                to[i * p->out_pixel] = p->table != NULL ? p->table[byte] : byte;
            }
        }
    }
}

HTVM_CALLED void two(const htvm_quads_t *p, const uint8_t *in, uint8_t *out) { few(p, in, out, 2); }

HTVM_CALLED void one(const htvm_quads_t *p, const uint8_t *in, uint8_t *out) { few(p, in, out, 1); }

/* Any number of pixels. */
HTVM_CALLED void any(const htvm_quads_t *p, const uint8_t *in, uint8_t *out, uint32_t pixels)
{
    for (; pixels >= 2; pixels -= 2) {
        two(p, in, out);
        in += 2 * p->in_pixel;
        out += 2 * p->out_pixel;
    }
    if (pixels != 0) {
        one(p, in, out);
    }
}

#if HTVM_SIMD
void htvm_quads(const htvm_quads_t *what, const uint8_t *in, uint8_t *out, uint32_t pixels)
{
    const uint32_t in_pixel = what->in_pixel, out_pixel = what->out_pixel;
    if (what->scaling != HTVM_QUADS_NARROW) {
        any(what, in, out, pixels);
        return;
    }
    const uint32_t fours = what->words >= 2 ? pixels / 4u : 0, done = 4u * fours;
    const uint32_t twos = (pixels - done) / 2u;
    if (fours != 0) {
        narrow(what, in, out, 4, fours);
        in += done * in_pixel;
        out += done * out_pixel;
    }
    if (twos != 0) {
        narrow(what, in, out, 2, twos);
        in += 2u * twos * in_pixel;
        out += 2u * twos * out_pixel;
    }
    if (pixels % 2u == 0) {
        return;
    }
    if (what->k % HTVM_QUAD != 0 && what->k < FEW && what->out_channel == 1) {
        incomplete(what, in, out);
    } else {
        narrow(what, in, out, 1, 1);
    }
}
#else
void htvm_quads(const htvm_quads_t *what, const uint8_t *in, uint8_t *out, uint32_t pixels)
{
    any(what, in, out, pixels);
}
#endif
