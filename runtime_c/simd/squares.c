/* Depthwise convolutions of 3 x 3 pixels; see htvm_squares.h.
 *
 * All nine pixels of two channels are in registers.  They become six words, a column of a channel each,
 * [r0 r1 r2 0].  Rows of results are products with a column's weights, [w0 w1 w2 0], moved by a row:
 * [w1 w2 0 0], [w0 w1 w2 0], [0 w0 w1 w2]. */
#include "htvm_squares.h"

#if HTVM_SIMD
#define SIDE 3u
#define RECORD 28u /* bytes of a channel's record */

#define D(op, s, x, w) "cv." op ".b %[" s "], %[" x "], %[" w "]\n"
#define PIXEL(r) "cv.lhu %[" r "], (%[in]), %[pixel]\n"
/* A column of channel 0, in its first pixel's register, and of channel 1, in its last one's. */
#define COLUMN(a, b, c)                                                                            \
    "cv.pack %[" a "], %[" c "], %[" a "]\nmv %[" c "], %[" a "]\n"                                \
    "cv.shuffle2.b %[" a "], %[" b "], %[even]\ncv.shuffle2.b %[" c "], %[" b "], %[odd]\n"
#define WORD(r, by) "cv.lw %[" r "], (%[record]), " by "\n"
#define SIGNED ""
#define UNSIGNED /* records are for data - 128 */                                                  \
    "cv.dotsp.b %[s0], %[e0], %[ones]\ncv.sdotsp.b %[s0], %[e1], %[ones]\n"                        \
    "cv.sdotsp.b %[s0], %[e2], %[ones]\nmul %[s0], %[s0], %[mul]\n"                                \
    "slli %[s0], %[s0], 7\nsub %[add], %[add], %[s0]\n"
/* Weights of a row above or below, in place of the middle pixels. */
#define MOVE(how) how " %[x3], %[e0], 8\n" how " %[x4], %[e1], 8\n" how " %[x5], %[e2], 8\n"
#define CLIP_INT8(s) "cv.clip %[" s "], %[" s "], 8\n"
#define CLIP_RELU(s) "cv.clipu %[" s "], %[" s "], 8\n"
#define CLIP_UINT8(s) "cv.clipu %[" s "], %[" s "], 9\n"
#define SCALE(s) "mul %[" s "], %[" s "], %[mul]\n"
#define SHIFT(s) "cv.addnr %[" s "], %[add], %[shift]\n"
#define STORE(s) "cv.sb %[" s "], (%[out]), %[to]\n"
/* A row of results of columns a, b and c. */
#define ROW(dot, sdot, clip, a, b, c, w0, w1, w2)                                                  \
    D(dot, "s0", a, w1) D(dot, "s1", a, w0) D(dot, "s2", b, w0)                                    \
    D(sdot, "s0", b, w2) D(sdot, "s1", b, w1) D(sdot, "s2", c, w1) D(sdot, "s1", c, w2)            \
    SCALE("s0") SCALE("s1") SCALE("s2") SHIFT("s0") SHIFT("s1") SHIFT("s2")                        \
    clip("s0") clip("s1") clip("s2") STORE("s0") STORE("s1") STORE("s2")
#define CHANNEL(dot, sdot, correct, clip, a, b, c)                                                 \
    WORD("e0", "4") WORD("e1", "4") WORD("e2", "8")                                                \
    WORD("mul", "4") WORD("add", "4") WORD("shift", "4") correct                                   \
    MOVE("srli") ROW(dot, sdot, clip, a, b, c, "x3", "x4", "x5")                                   \
    ROW(dot, sdot, clip, a, b, c, "e0", "e1", "e2")                                                \
    MOVE("slli") ROW(dot, sdot, clip, a, b, c, "x3", "x4", "x5")                                   \
    "add %[out], %[out], %[back]\n"

#define WITHOUT_ONES
#define WITH_ONES , [ones] "r"(0x01010101u)
#define SQUARES(name, dot, sdot, correct, clip, constants)                                              \
    HTVM_CALLED void name(const htvm_columns_t *p)                                                 \
    {                                                                                              \
        const uint32_t pixel = p->in_pixel, to = p->out_pixel;                                    \
        const uint32_t next = 2u - SIDE * SIDE * pixel, back = 1u - SIDE * SIDE * to;              \
        const uint8_t *in = p->in, *record = p->records;                                           \
        uint8_t *out = p->out;                                                                     \
        uint32_t x0, x1, x2, x3, x4, x5, x6, x7, x8, e0 = p->c / 2u, e1, e2, s0, s1, s2, mul, add, shift;\
        __asm__ volatile(                                                                          \
            HTVM_LOOP ".insn r 0x2b, 4, 0, x10, %[e0], x0\n" /* cv.count 0 */                   \
            "3: " PIXEL("x0") PIXEL("x1") PIXEL("x2") PIXEL("x3") PIXEL("x4") PIXEL("x5")          \
            PIXEL("x6") PIXEL("x7") PIXEL("x8") "add %[in], %[in], %[next]\n"                      \
            COLUMN("x0", "x3", "x6") COLUMN("x1", "x4", "x7") COLUMN("x2", "x5", "x8")             \
            CHANNEL(dot, sdot, correct, clip, "x0", "x1", "x2")                                    \
            CHANNEL(dot, sdot, correct, clip, "x6", "x7", "x8")                                    \
            "4:\n.option pop\n"                                                                    \
            : [x0] "=&r"(x0), [x1] "=&r"(x1), [x2] "=&r"(x2), [x3] "=&r"(x3), [x4] "=&r"(x4),      \
              [x5] "=&r"(x5), [x6] "=&r"(x6), [x7] "=&r"(x7), [x8] "=&r"(x8), [e0] "+&r"(e0),      \
              [e1] "=&r"(e1), [e2] "=&r"(e2), [s0] "=&r"(s0), [s1] "=&r"(s1), [s2] "=&r"(s2),      \
              [mul] "=&r"(mul), [add] "=&r"(add), [shift] "=&r"(shift), [in] "+&r"(in),            \
              [record] "+&r"(record), [out] "+&r"(out)                                             \
            : [pixel] "r"(pixel), [to] "r"(to), [next] "r"(next), [back] "r"(back),                \
              [even] "r"(0x06020400u), [odd] "r"(0x06030501u) constants                            \
            : "memory");                                                                           \
    }
SQUARES(squares_int8, "dotsp", "sdotsp", SIGNED, CLIP_INT8, WITHOUT_ONES)
SQUARES(squares_relu, "dotsp", "sdotsp", SIGNED, CLIP_RELU, WITHOUT_ONES)
SQUARES(squares_uint8, "dotusp", "sdotusp", UNSIGNED, CLIP_UINT8, WITH_ONES)

bool htvm_squares_fit(const htvm_columns_t *p, uint32_t y, uint32_t end)
{
    if (y != 0 || end != SIDE || p->iy != SIDE || p->ix != SIDE) {
        return false;
    }
    const bool is_signed = !p->in_unsigned && (p->low == -128 || p->low == 0) && p->high == 127;
    const bool is_unsigned = p->in_unsigned && p->low == 0 && p->high == 255;
    return p->scaling == HTVM_QUADS_NARROW && (is_signed || is_unsigned) && p->c >= 2 &&
           p->stride_y == 1 && p->stride_x == 1 && p->ox == SIDE && p->pad_top == 1 &&
           p->pad_left == 1;
}

uint32_t htvm_squares(const htvm_columns_t *p)
{
    if (p->in_unsigned) {
        squares_uint8(p);
    } else if (p->low == 0) {
        squares_relu(p);
    } else {
        squares_int8(p);
    }
    return p->c & ~1u;
}
#else
typedef int htvm_squares_are_for_simd;
#endif
