/* Depthwise convolutions of 6 x 6 pixels with stride 2; see htvm_patches.h.
 *
 * A patch of 2 x 2 pixels of a channel is a word, column by column, so that each pixel is in one word
 * only; nine words of two channels each stay in registers.  The windows of neighbouring results overlap
 * by a row and a column, so a result is the sum of up to four products: of the patch at its place, that
 * beside it, that above or below, and that in the corner between them.  Their weights are the same for
 * all results; without a border above and on the left, other patches are below and on the right:
 *
 *   W0 = [w00 w10 w01 w11], W1 = [w02 w12 0 0], W2 = [w20 0 w21 0], W3 = [w22 0 0 0]
 *
 * and with a border of 1, they are above and on the left:
 *
 *   W0 = [w11 w21 w12 w22], W1 = [0 0 w10 w20], W2 = [0 w01 0 w02], W3 = [0 0 0 w00]
 *
 * Sums take the place of the patches that they begin with, in the order in which these are no longer
 * needed, and factors that of the weights. */
#include "htvm_patches.h"

#if HTVM_SIMD
#define SIDE 3u
#define PIXELS 36u

#define LOAD(r) "cv.lhu %[" r "], (%[in]), %[pixel]\n"
#define LOAD_LAST(r) "cv.lhu %[" r "], (%[in]), %[w3]\n"
#define PACK(r, upper, lower) "cv.pack %[" r "], %[" upper "], %[" lower "]\n"
/* The patches of two channels: their upper pixels are in x, their lower ones in y. */
#define PATCH(x, y, t)                                                                             \
    "mv %[" t "], %[" x "]\ncv.shuffle2.b %[" x "], %[" y "], %[even]\n"                           \
    "cv.shuffle2.b %[" y "], %[" t "], %[odd]\n"
/* Three patches side by side; `last` loads the last pixel. */
#define PATCHES(x0, x1, x2, y0, y1, y2, last)                                                      \
    LOAD(x0) LOAD("w0") LOAD(x1) LOAD("w1") LOAD(x2) LOAD("w2")                                    \
    PACK(x0, "w0", x0) PACK(x1, "w1", x1) PACK(x2, "w2", x2)                                       \
    LOAD(y0) LOAD("w0") LOAD(y1) LOAD("w1") LOAD(y2) last("w2")                                    \
    PACK(y0, "w0", y0) PACK(y1, "w1", y1) PACK(y2, "w2", y2)                                       \
    PATCH(x0, y0, "w0") PATCH(x1, y1, "w1") PATCH(x2, y2, "w2")

#define WORD(r, by) "cv.lw %[" r "], (%[record]), " by "\n"
#define AT(load, r, at) load " %[" r "], " at "(%[record])\n"
#define WEIGHTS_BEFORE                                                                             \
    WORD("w0", "4") WORD("w1", "4") WORD("w3", "8")                                                \
    "cv.pack.h %[w2], %[w1], %[w0]\n" PACK("w0", "w1", "w0")                                       \
    "cv.exthz %[w1], %[w3]\nsrli %[w3], %[w3], 16\n"
#define WEIGHTS_BEHIND                                                                             \
    AT("lhu", "w0", "5") AT("lhu", "w1", "9") AT("lbu", "w2", "4") PACK("w0", "w1", "w0")          \
    AT("lbu", "w3", "8") AT("lhu", "w1", "1") PACK("w2", "w3", "w2")                               \
    "cv.lbu %[w3], (%[record]), 16\nslli %[w1], %[w1], 16\n"                                       \
    "slli %[w2], %[w2], 8\nslli %[w3], %[w3], 24\n"
#define D(op, d, w, x) "cv." op ".b %[" d "], %[" x "], %[" w "]\n"
/* Sums of a row, whose patches overlap with those of another, n0 to n2, and of the last row. */
#define ROW(dot, sdot, d0, d1, d2, n0, n1, n2)                                                     \
    D(dot, d0, "w0", d0) D(sdot, d0, "w1", d1) D(sdot, d0, "w2", n0) D(sdot, d0, "w3", n1)         \
    D(dot, d1, "w0", d1) D(sdot, d1, "w1", d2) D(sdot, d1, "w2", n1) D(sdot, d1, "w3", n2)         \
    D(dot, d2, "w0", d2) D(sdot, d2, "w2", n2)
#define LAST_ROW(dot, sdot, d0, d1, d2)                                                            \
    D(dot, d0, "w0", d0) D(sdot, d0, "w1", d1) D(dot, d1, "w0", d1) D(sdot, d1, "w1", d2)          \
    D(dot, d2, "w0", d2)

/* The factors of a record, which is for data - 128 if they are unsigned. */
#define FACTORS WORD("w1", "4") WORD("w2", "4") WORD("w3", "4")
#define SIGNED FACTORS
#define UNSIGNED                                                                                   \
    "li %[w3], 0x01010101\nlw %[w0], -16(%[record])\nlw %[w1], -12(%[record])\n"                   \
    "lw %[w2], -8(%[record])\ncv.dotsp.b %[w0], %[w0], %[w3]\n"                                    \
    "cv.sdotsp.b %[w0], %[w1], %[w3]\ncv.sdotsp.b %[w0], %[w2], %[w3]\n"                           \
    FACTORS "mul %[w0], %[w0], %[w1]\nslli %[w0], %[w0], 7\nsub %[w2], %[w2], %[w0]\n"
#define CLIP_INT8(d) "cv.clip %[" d "], %[" d "], 8\n"
#define CLIP_RELU(d) "cv.clipu %[" d "], %[" d "], 8\n"
#define CLIP_UINT8(d) "cv.clipu %[" d "], %[" d "], 9\n"
#define SCALE(clip, d)                                                                             \
    "mul %[" d "], %[" d "], %[w1]\ncv.addnr %[" d "], %[w2], %[w3]\n" clip(d)
#define SUMS(dot, sdot, d0, d1, d2, d3, d4, d5, d6, d7, d8)                                        \
    ROW(dot, sdot, d0, d1, d2, d3, d4, d5) ROW(dot, sdot, d3, d4, d5, d6, d7, d8)                  \
    LAST_ROW(dot, sdot, d6, d7, d8)
#define BEFORE(dot, sdot, d0, d1, d2, d3, d4, d5, d6, d7, d8)                                      \
    WEIGHTS_BEFORE SUMS(dot, sdot, d0, d1, d2, d3, d4, d5, d6, d7, d8)
#define BEHIND(dot, sdot, d0, d1, d2, d3, d4, d5, d6, d7, d8)                                      \
    WEIGHTS_BEHIND SUMS(dot, sdot, d8, d7, d6, d5, d4, d3, d2, d1, d0)
#define CHANNEL(sums, dot, sdot, factors, clip, d0, d1, d2, d3, d4, d5, d6, d7, d8)                \
    sums(dot, sdot, d0, d1, d2, d3, d4, d5, d6, d7, d8) factors                                    \
    SCALE(clip, d0) SCALE(clip, d1) SCALE(clip, d2) SCALE(clip, d3) SCALE(clip, d4)                \
    SCALE(clip, d5) SCALE(clip, d6) SCALE(clip, d7) SCALE(clip, d8)
#define STORE(x, y, by) "cv.packlo.b %[" y "], %[" y "], %[" x "]\ncv.sh %[" y "], (%[out]), %[" by "]\n"

#define KERNEL(name, sums, dot, sdot, factors, clip)                                                     \
    HTVM_CALLED void name(const htvm_columns_t *p)                                                 \
    {                                                                                              \
        const uint32_t pixel = p->in_pixel, next_in = 2u - (PIXELS - 1u) * pixel;                  \
        const uint32_t next_out = 2u - (SIDE * SIDE - 1u) * pixel;                                 \
        const uint8_t *in = p->in, *record = p->records;                                           \
        uint8_t *out = p->out;                                                                     \
        uint32_t x0, x1, x2, x3, x4, x5, x6, x7, x8, y0, y1, y2, y3, y4, y5, y6, y7, y8;           \
        uint32_t w0 = p->c / 2u, w1, w2, w3;                                                       \
        __asm__ volatile(                                                                          \
            HTVM_LOOP ".insn r 0x2b, 4, 0, x10, %[w0], x0\n" /* cv.count 0 */                      \
            "3: " PATCHES("x0", "x1", "x2", "y0", "y1", "y2", LOAD)                                \
            PATCHES("x3", "x4", "x5", "y3", "y4", "y5", LOAD)                                      \
            "lw %[w3], %[next_in]\n"                                                               \
            PATCHES("x6", "x7", "x8", "y6", "y7", "y8", LOAD_LAST)                                 \
            CHANNEL(sums, dot, sdot, factors, clip, "x0", "x1", "x2", "x3", "x4", "x5", "x6",      \
                    "x7", "x8")                                                                    \
            CHANNEL(sums, dot, sdot, factors, clip, "y0", "y1", "y2", "y3", "y4", "y5", "y6",      \
                    "y7", "y8")                                                                    \
            "lw %[w0], %[next_out]\n"                                                              \
            STORE("x0", "y0", "pixel") STORE("x1", "y1", "pixel") STORE("x2", "y2", "pixel")       \
            STORE("x3", "y3", "pixel") STORE("x4", "y4", "pixel") STORE("x5", "y5", "pixel")       \
            STORE("x6", "y6", "pixel") STORE("x7", "y7", "pixel") STORE("x8", "y8", "w0")          \
            "4:\n.option pop\n"                                                                    \
            : [x0] "=&r"(x0), [x1] "=&r"(x1), [x2] "=&r"(x2), [x3] "=&r"(x3), [x4] "=&r"(x4),      \
              [x5] "=&r"(x5), [x6] "=&r"(x6), [x7] "=&r"(x7), [x8] "=&r"(x8), [y0] "=&r"(y0),      \
              [y1] "=&r"(y1), [y2] "=&r"(y2), [y3] "=&r"(y3), [y4] "=&r"(y4), [y5] "=&r"(y5),      \
              [y6] "=&r"(y6), [y7] "=&r"(y7), [y8] "=&r"(y8), [w0] "+&r"(w0), [w1] "=&r"(w1),      \
              [w2] "=&r"(w2), [w3] "=&r"(w3), [in] "+&r"(in), [record] "+&r"(record),              \
              [out] "+&r"(out)                                                                     \
            : [pixel] "r"(pixel), [even] "r"(0x06020400u), [odd] "r"(0x03070105u),                 \
              [next_in] "m"(next_in), [next_out] "m"(next_out)                                     \
            : "memory");                                                                           \
    }
/* The same for both borders. */
#define KERNELS(type, dot, sdot, factors, clip)                                                    \
    KERNEL(before_##type, BEFORE, dot, sdot, factors, clip)                                        \
    KERNEL(behind_##type, BEHIND, dot, sdot, factors, clip)                                        \
    HTVM_INLINE void patches_##type(const htvm_columns_t *p)                                       \
    {                                                                                              \
        if (p->pad_top != 0) {                                                                     \
            behind_##type(p);                                                                      \
        } else {                                                                                   \
            before_##type(p);                                                                      \
        }                                                                                          \
    }
KERNELS(int8, "dotsp", "sdotsp", SIGNED, CLIP_INT8)
KERNELS(relu, "dotsp", "sdotsp", SIGNED, CLIP_RELU)
KERNELS(uint8, "dotusp", "sdotusp", UNSIGNED, CLIP_UINT8)

bool htvm_patches_fit(const htvm_columns_t *p, uint32_t y, uint32_t end)
{
    /* First what other maps are refused for: cores wait for each other at every load. */
    if (y != 0 || end != SIDE || p->iy != 2u * SIDE || p->ix != 2u * SIDE) {
        return false;
    }
    const bool is_signed = !p->in_unsigned && (p->low == -128 || p->low == 0) && p->high == 127;
    const bool is_unsigned = p->in_unsigned && p->low == 0 && p->high == 255;
    return p->scaling == HTVM_QUADS_NARROW && (is_signed || is_unsigned) && p->c >= 2 &&
           p->stride_y == 2 && p->stride_x == 2 && p->in_pixel == p->out_pixel &&
           p->ox == SIDE && p->pad_top <= 1 && p->pad_left == p->pad_top;
}

uint32_t htvm_patches(const htvm_columns_t *p)
{
    if (p->in_unsigned) {
        patches_uint8(p);
    } else if (p->low == 0) {
        patches_relu(p);
    } else {
        patches_int8(p);
    }
    return p->c & ~1u;
}
#else
typedef int htvm_patches_are_for_simd;
#endif
