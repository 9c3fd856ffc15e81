/* Depthwise convolutions with stride 2, two channels at a time; see htvm_pairs.h.
 *
 * A word holds two neighbours of two channels, [x0 y0 x1 y1], which takes two loads of halfwords and no
 * transposition in memory.  The nine products of a result are five dot products: of columns a, b and c,
 * rows 0 and 1 of each, then row 2 of b and c, and row 2 of a.  Weights have zeros in the places of the
 * other channel.  Column c is column a of the next result; two rows of results share row 2 (of five). */
#include "htvm_pairs.h"

#if HTVM_SIMD
#define SIDE 3u
#define RECORD 28u /* bytes of a channel's record */

/* Distances in bytes, and numbers.  From the last row of column b to the first row of the next result's,
 * and from column a to column b: with 5, 4, 3 and 2 rows. */
typedef struct {
    uint32_t pixel, pitch, row; /* of the input, rows of the input, and rows of the result */
    uint32_t below;             /* from behind a result of the first row to the second */
    uint32_t times;             /* results of a row of which column c is inside */
    uint32_t left, right;       /* whether the first column a, the last column c is outside */
    bool usual;                 /* only the last column c and the last row are outside */
    uint32_t next5, next4, next3, next2, first5, first4, first3, first2;
    uint32_t after;             /* from behind a strip to the next one */
    uint32_t strips;            /* of two rows of results */
    uint32_t rest;              /* rows of the input behind the strips: 0, 3 or 4; if usual, 2 */
    uint32_t top, bottom;       /* whether the first, the last row has an edge of its own */
    uint32_t whole_in, last_in, whole_out, last_out; /* from the first rows to those */
    uint32_t next_in, next_out; /* from behind a usual pair to the next one */
} sizes_t;

#define D(op, sum, x, w) "cv." op ".b %[" sum "], %[" x "], %[" w "]\n"
#define TWO(op, x, w) D(op, "A0", x, w "0") D(op, "A1", x, w "1")
#define DOWN(r) "cv.lhu %[" r "], (%[p]), %[pitch]\n"     /* column b, then a row down */
#define NEXT(r) "cv.lhu %[" r "], (%[p]), %[t2]\n"        /* column b, then to the next result */
#define HERE(r) "lhu %[" r "], 0(%[p])\n"
#define BESIDE(r) "cv.lhu %[" r "], %[pixel](%[p])\n" /* column c */
#define PACK(r, upper, lower) "cv.pack %[" r "], %[" upper "], %[" lower "]\n"
#define LOAD(r, m) "lw %[" r "], %[" m "]\n"
#define SCALE(clip, shift0, shift1)                                                                \
    "mul %[A0], %[A0], %[mul0]\nmul %[A1], %[A1], %[mul1]\n"                                       \
    "cv.addnr %[A0], %[add0], %[" shift0 "]\ncv.addnr %[A1], %[add1], %[" shift1 "]\n"             \
    clip("A0") clip("A1") "cv.packlo.b %[A0], %[A1], %[A0]\n"
#define SAVE_A "cv.sh %[A0], (%[out]), %[pixel]\n"
/* All registers are in use: `last` is the second shift or, if both are equal, the distance `below`. */
#define A_EQUAL(clip) SCALE(clip, "shift", "shift") SAVE_A
#define B_EQUAL(clip) SCALE(clip, "shift", "shift") "cv.sh %[A0], %[last](%[out])\n"
#define A_TWO(clip) SCALE(clip, "shift", "last") SAVE_A
#define B_TWO(clip) LOAD("t0", "below") SCALE(clip, "shift", "last") "cv.sh %[A0], %[t0](%[out])\n"
#define CLIP_INT8(s) "cv.clip %[" s "], %[" s "], 8\n"
#define CLIP_RELU(s) "cv.clipu %[" s "], %[" s "], 8\n"
#define CLIP_UINT8(s) "cv.clipu %[" s "], %[" s "], 9\n"

/* Rows 0 and 1: K0 holds those of column a, and then of column c, whose products are still to come.  t2
 * is the step to the next result. */
#define ROWS_01(dot, sdot, fill0, fill1, next)                                                     \
    TWO(dot, "K0", "a") BESIDE("K0") DOWN("t0") BESIDE("t1") fill0 PACK("K0", "t1", "K0")          \
    next("t1") fill1 PACK("t0", "t1", "t0") TWO(sdot, "t0", "b")
/* The same if column c is outside. */
#define LAST_01(dot, sdot, fill, last)                                                             \
    TWO(dot, "K0", "a") DOWN("t0") last("t1") fill PACK("t0", "t1", "t0") TWO(sdot, "t0", "b")
/* Row 2, of which K2 has column a, and the first of two rows of results. */
#define ROWS_012(dot, sdot, A)                                                                     \
    ROWS_01(dot, sdot, D(sdot, "A0", "K2", "s0"), D(sdot, "A1", "K2", "s1"), DOWN)                 \
    BESIDE("t0") DOWN("t1") TWO(sdot, "K0", "c") PACK("t1", "t0", "t1") TWO(sdot, "t1", "h") A
#define LAST_012(dot, sdot, last, A)                                                               \
    LAST_01(dot, sdot, TWO(sdot, "K2", "s"), DOWN) DOWN("t0") last("t1") TWO(sdot, "t0", "h") A

/* Two rows of results, of five rows. */
#define FIVE(dot, sdot, A, B)                                                                      \
    ROWS_012(dot, sdot, A)                                                                         \
    TWO(dot, "K2", "a") BESIDE("K2") D(sdot, "A0", "K4", "s0") PACK("K2", "K2", "t0") DOWN("t0")   \
    D(sdot, "A1", "K4", "s1") PACK("t1", "t0", "t1") BESIDE("K4") NEXT("t0")                       \
    TWO(sdot, "t1", "b") TWO(sdot, "K2", "c") PACK("t0", "K4", "t0") TWO(sdot, "t0", "h") B
#define LAST_FIVE(dot, sdot, A, B)                                                                 \
    LAST_012(dot, sdot, DOWN, A) TWO(dot, "K2", "a") PACK("t1", "t1", "t0") HERE("t0")             \
    TWO(sdot, "t1", "b") TWO(sdot, "K4", "s") TWO(sdot, "t0", "h") B
#define FIRST_FIVE                                                                                 \
    DOWN("K0") DOWN("t0") DOWN("K2") DOWN("t1") NEXT("K4")                    \
    PACK("K0", "t0", "K0") PACK("K2", "t1", "K2") LOAD("t2", "next5")

/* The same if the second row of results lacks its last row. */
#define FOUR(dot, sdot, A, B)                                                                      \
    ROWS_012(dot, sdot, A)                                                                         \
    TWO(dot, "K2", "a") BESIDE("K2") NEXT("K4") PACK("K2", "K2", "t0") PACK("t1", "K4", "t1")      \
    TWO(sdot, "K2", "c") TWO(sdot, "t1", "b") B
#define LAST_FOUR(dot, sdot, A, B)                                                                 \
    LAST_012(dot, sdot, HERE, A) TWO(dot, "K2", "a") PACK("t1", "t1", "t0") TWO(sdot, "t1", "b") B
#define FIRST_FOUR                                                                                 \
    DOWN("K0") DOWN("t0") DOWN("K2") NEXT("t1")                               \
    PACK("K0", "t0", "K0") PACK("K2", "t1", "K2") LOAD("t2", "next4")

/* One row of results, of three rows. */
#define THREE(dot, sdot, A, B)                                                                     \
    ROWS_01(dot, sdot, D(sdot, "A0", "K2", "s0"), D(sdot, "A1", "K2", "s1"), DOWN)                 \
    BESIDE("K2") NEXT("t1") TWO(sdot, "K0", "c") PACK("t1", "K2", "t1") TWO(sdot, "t1", "h") A
#define LAST_THREE(dot, sdot, A, B)                                                                \
    LAST_01(dot, sdot, TWO(sdot, "K2", "s"), DOWN) HERE("t0") "nop\n" TWO(sdot, "t0", "h") A
#define FIRST_THREE                                                                                \
    DOWN("K0") DOWN("t0") NEXT("K2") PACK("K0", "t0", "K0")                   \
    LOAD("t2", "next3")

/* A row of results of which one row of the filter is outside. */
#define TWO_ROWS(dot, sdot, A, B) ROWS_01(dot, sdot, "nop\n", "nop\n", NEXT) TWO(sdot, "K0", "c") A
#define LAST_TWO_ROWS(dot, sdot, A, B) LAST_01(dot, sdot, "nop\n", HERE) A
#define FIRST_TWO_ROWS                                                                             \
    DOWN("K0") NEXT("t0") LOAD("t2", "next2") PACK("K0", "t0", "K0")

/* A row of strips of `rows` rows of the input: `first` makes column a, `again` is what ends it. */
#define STRIP(rows, first, body, last, again)                                                      \
    HTVM_LOOP                                                                                      \
    "5: lw %[t0], %[times]\nlw %[t1], %[left]\n"                                                   \
    ".insn r 0x2b, 4, 0, x10, %[t0], x0\n" /* cv.count 0 */                                        \
    "bnez %[t1], 6f\n" LOAD("t2", "first" rows) first "j 7f\n"                                    \
    "6: mv %[K0], x0\nmv %[K2], x0\nmv %[K4], x0\n" LOAD("t2", "next" rows)                       \
    "7:\n3: " body "4: lw %[t0], %[right]\nnop\nbeqz %[t0], 8f\n" last "8: " again ".option pop\n"
#define TO_NEXT_STRIP                                                                              \
    "lw %[t0], %[after]\nlw %[t1], %[row]\nadd %[p], %[p], %[t0]\nadd %[out], %[out], %[t1]\n"
#define AGAIN                                                                                      \
    "lw %[t2], %[strips]\n" TO_NEXT_STRIP                                                          \
    "addi %[t2], %[t2], -1\nsw %[t2], %[strips]\nbnez %[t2], 5b\n"
/* The same where only the last column c is outside. */
#define BEGIN(rows, first)                                                                         \
    "lw %[t0], %[times]\n" LOAD("t2", "first" rows)                                                \
    ".insn r 0x2b, 4, 0, x10, %[t0], x0\n" /* cv.count 0 */                                        \
    first
#define USUAL_STRIP(rows, first, body, last)                                                       \
    HTVM_LOOP BEGIN(rows, first) "3: " body "4: " last ".option pop\n"
/* As many rows of strips as t1 says. */
#define USUAL_STRIPS(rows, first, body, last)                                                      \
    HTVM_LOOPS                                                                                     \
    ".insn r 0x2b, 4, 0, x11, %[t1], x0\n" /* cv.count 1 */                                        \
    "2: " BEGIN(rows, first) "3: " body "4: " last TO_NEXT_STRIP "5:\n.option pop\n"

/* ------------------------------------------------------------------ weights */

#define WORD(r, at) "lw %[" r "], " #at "(%[t0])\n"
/* Records are for data - 128. */
#define SIGNED(a, b, c, add, mul) ""
#define UNSIGNED(a, b, c, add, mul)                                                                \
    "li %[t2], 0x01010101\ncv.dotsp.b %[A0], %[" a "], %[t2]\n"                                    \
    "cv.sdotsp.b %[A0], %[" b "], %[t2]\ncv.sdotsp.b %[A0], %[" c "], %[t2]\n"                     \
    "mul %[A0], %[A0], %[" mul "]\nslli %[A0], %[A0], 7\nsub %[" add "], %[" add "], %[A0]\n"
/* Weights of two rows in the places of a channel.  The last byte of a column in a record is 0. */
#define CHOOSE(to, from) "cv.shuffle.b %[" to "], %[" from "], %[t1]\n"
/* Of two records, at t0: weights a, b and c are rows 0 and 1 of each column, h is row 2 of b and c, s
 * of a.  The second shift is left in `last`. */
#define PREPARE(correct)                                                                           \
    LOAD("t1", "rows_01_of_0") WORD("a1", 0) WORD("b1", 4) WORD("c1", 8)                           \
    WORD("mul0", 16) WORD("add0", 20) WORD("shift", 24)                                            \
    CHOOSE("a0", "a1") CHOOSE("b0", "b1") CHOOSE("c0", "c1")                                       \
    "srli %[s0], %[a1], 16\ncv.pack.h %[h0], %[c1], %[b1]\n"                                       \
    correct("a1", "b1", "c1", "add0", "mul0")                                                      \
    LOAD("t1", "rows_01_of_1") WORD("K0", 28) WORD("K2", 32) WORD("K4", 36)                        \
    WORD("mul1", 44) WORD("add1", 48) WORD("last", 52)                                             \
    CHOOSE("a1", "K0") CHOOSE("b1", "K2") CHOOSE("c1", "K4")                                       \
    "srli %[s1], %[K0], 16\nslli %[s1], %[s1], 8\n"                                                \
    "cv.pack.h %[h1], %[K4], %[K2]\nslli %[h1], %[h1], 8\n"                                        \
    correct("K0", "K2", "K4", "add1", "mul1")
/* Rows 1 and 2 instead of 0 and 1. */
#define PREPARE_TOP                                                                                \
    "lw %[t0], %[record]\nli %[t1], 0x03020301\n"                                                  \
    WORD("K0", 0) WORD("K2", 4) WORD("K4", 8)                                                      \
    CHOOSE("a0", "K0") CHOOSE("b0", "K2") CHOOSE("c0", "K4")                                       \
    "li %[t1], 0x02030103\n" WORD("K0", 28) WORD("K2", 32) WORD("K4", 36)                          \
    CHOOSE("a1", "K0") CHOOSE("b1", "K2") CHOOSE("c1", "K4")

/* ------------------------------------------------------------------ all rows of two channels */

#define EDGE(dot, sdot, A)                                                                         \
    STRIP("2", FIRST_TWO_ROWS, TWO_ROWS(dot, sdot, A, ""), LAST_TWO_ROWS(dot, sdot, A, ""), "")
#define AT(in_by, out_by)                                                                          \
    LOAD("p", "in") LOAD("t1", in_by) LOAD("out", "to") LOAD("t2", out_by)                         \
    "add %[p], %[p], %[t1]\nadd %[out], %[out], %[t2]\n"

/* What all statements have in common. */
#define VARIABLES                                                                                  \
    uint32_t K0, K2, K4, A0, A1, t0, t1, t2, pixel, pitch, last;                                   \
    uint32_t a0, a1, b0, b1, c0, c1, h0, h1, s0, s1, mul0, mul1, add0, add1, shift;                \
    const uint32_t rows_01_of_0 = 0x03010300u, rows_01_of_1 = 0x01030003u
#define OUTPUTS                                                                                    \
    [K0] "=&r"(K0), [K2] "=&r"(K2), [K4] "=&r"(K4), [A0] "=&r"(A0), [A1] "=&r"(A1),                \
    [t0] "=&r"(t0), [t1] "=&r"(t1), [t2] "=&r"(t2), [a0] "=&r"(a0), [a1] "=&r"(a1),                \
    [b0] "=&r"(b0), [b1] "=&r"(b1), [c0] "=&r"(c0), [c1] "=&r"(c1), [h0] "=&r"(h0),                \
    [h1] "=&r"(h1), [s0] "=&r"(s0), [s1] "=&r"(s1), [mul0] "=&r"(mul0), [mul1] "=&r"(mul1),        \
    [add0] "=&r"(add0), [add1] "=&r"(add1), [shift] "=&r"(shift), [last] "=&r"(last),              \
    [pixel] "=&r"(pixel), [pitch] "=&r"(pitch)
#define INPUTS                                                                                     \
    [pixel_] "m"(z->pixel), [pitch_] "m"(z->pitch), [below] "m"(z->below), [times] "m"(z->times),  \
    [next5] "m"(z->next5), [next4] "m"(z->next4), [next3] "m"(z->next3), [next2] "m"(z->next2),    \
    [first5] "m"(z->first5), [first4] "m"(z->first4), [first3] "m"(z->first3),                     \
    [first2] "m"(z->first2), [after] "m"(z->after), [row] "m"(z->row), [rest] "m"(z->rest),        \
    [rows_01_of_0] "m"(rows_01_of_0), [rows_01_of_1] "m"(rows_01_of_1)

/* Two channels with any borders. */
#define PAIR(name, dot, sdot, correct, A, B)                                                       \
    HTVM_INLINE void name(const sizes_t *z, const uint8_t *record, const uint8_t *in, uint8_t *to) \
    {                                                                                              \
        VARIABLES;                                                                                 \
        uint32_t strips = z->strips, p, out;                                                       \
        __asm__ volatile(                                                                          \
            "lw %[t0], %[record]\n" PREPARE(correct)                                               \
            LOAD("pixel", "pixel_") LOAD("pitch", "pitch_")                                        \
            LOAD("t0", "strips") AT("whole_in", "whole_out") "beqz %[t0], 9f\n"                    \
            STRIP("5", FIRST_FIVE, FIVE(dot, sdot, A, B), LAST_FIVE(dot, sdot, A, B), AGAIN)       \
            "9: lw %[t1], %[rest]\nnop\naddi %[t1], %[t1], -3\nbltz %[t1], 11f\nbnez %[t1], 10f\n" \
            STRIP("3", FIRST_THREE, THREE(dot, sdot, A, B), LAST_THREE(dot, sdot, A, B), "")       \
            "j 11f\n10:\n"                                                                         \
            STRIP("4", FIRST_FOUR, FOUR(dot, sdot, A, B), LAST_FOUR(dot, sdot, A, B), "")          \
            "11: lw %[t0], %[bottom]\nnop\nbeqz %[t0], 12f\n"                                      \
            AT("last_in", "last_out") EDGE(dot, sdot, A)                                           \
            "12: lw %[t0], %[top]\nnop\nbeqz %[t0], 13f\n"                                         \
            PREPARE_TOP LOAD("p", "in") LOAD("out", "to") EDGE(dot, sdot, A) "13:\n"               \
            : OUTPUTS, [p] "=&r"(p), [out] "=&r"(out), [strips] "+m"(strips)                       \
            : INPUTS, [record] "m"(record), [in] "m"(in), [to] "m"(to), [left] "m"(z->left),       \
              [right] "m"(z->right), [top] "m"(z->top), [bottom] "m"(z->bottom),                   \
              [whole_in] "m"(z->whole_in), [whole_out] "m"(z->whole_out),                          \
              [last_in] "m"(z->last_in), [last_out] "m"(z->last_out)                               \
            : "memory");                                                                           \
    }

/* What follows the second shift of a pair: pairs of two different ones end the loop of those of one. */
#define IF_EQUAL "bne %[shift], %[last], 14f\n" LOAD("last", "below")
#define IN_ANY_CASE ""

/* Pairs from this record on, where only the last row and the last column c may be outside.  Returns
 * the record at which it ends. */
#define USUAL(name, dot, sdot, correct, which, A, B)                                               \
    HTVM_INLINE const uint8_t *name(const sizes_t *z, const uint8_t *record, const uint8_t *end,   \
                                    const uint8_t **in, uint8_t **to)                              \
    {                                                                                              \
        VARIABLES;                                                                                 \
        const uint8_t *p = *in;                                                                    \
        uint8_t *out = *to;                                                                        \
        __asm__ volatile(                                                                          \
            LOAD("pixel", "pixel_") LOAD("pitch", "pitch_") LOAD("t0", "record")                   \
            "9: " PREPARE(correct) which LOAD("t1", "strips")                                      \
            "addi %[t0], %[t0], 56\nsw %[t0], %[record]\n"                                         \
            USUAL_STRIPS("5", FIRST_FIVE, FIVE(dot, sdot, A, B), LAST_FIVE(dot, sdot, A, B))       \
            LOAD("t0", "rest") "li %[t1], 3\n"                                                     \
            "beqz %[t0], 13f\nbltu %[t0], %[t1], 12f\nbeq %[t0], %[t1], 11f\n"                     \
            USUAL_STRIP("4", FIRST_FOUR, FOUR(dot, sdot, A, B), LAST_FOUR(dot, sdot, A, B))        \
            "13: lw %[t0], %[record]\n"                                                            \
            LOAD("t1", "end") LOAD("t2", "next_in") LOAD("K0", "next_out")                         \
            "add %[p], %[p], %[t2]\nadd %[out], %[out], %[K0]\nbne %[t0], %[t1], 9b\nj 14f\n"      \
            "11:\n"                                                                                \
            USUAL_STRIP("3", FIRST_THREE, THREE(dot, sdot, A, B), LAST_THREE(dot, sdot, A, B))     \
            "j 13b\n12:\n"                                                                         \
            USUAL_STRIP("2", FIRST_TWO_ROWS, TWO_ROWS(dot, sdot, A, B),                            \
                        LAST_TWO_ROWS(dot, sdot, A, B))                                            \
            "j 13b\n14:\n"                                                                         \
            : OUTPUTS, [p] "+&r"(p), [out] "+&r"(out), [record] "+m"(record)                       \
            : INPUTS, [strips] "m"(z->strips), [end] "m"(end), [next_in] "m"(z->next_in),          \
              [next_out] "m"(z->next_out)                                                          \
            : "memory");                                                                           \
        *in = p;                                                                                   \
        *to = out;                                                                                 \
        return record;                                                                             \
    }

/* Field by field, as a structure is copied slowly. */
HTVM_CALLED void set_sizes(sizes_t *z, const htvm_columns_t *p, uint32_t y, uint32_t end)
{
    const bool right = 2u * (p->ox - 1u) + SIDE > p->ix + p->pad_left;
    const uint32_t pixel = p->in_pixel, pitch = p->ix * pixel, row = p->ox * pixel;
    const bool top = y == 0 && p->pad_top != 0;
    const bool bottom = 2u * (end - 1u) + SIDE > p->iy + p->pad_top;
    const uint32_t whole = end - y - top - bottom; /* rows of results */
    const uint32_t times = p->ox - right;
    z->pixel = pixel;
    z->pitch = pitch;
    z->row = row;
    z->below = row - pixel;
    z->times = times;
    z->next5 = 2u * pixel - 4u * pitch;
    z->next4 = 2u * pixel - 3u * pitch;
    z->next3 = 2u * pixel - 2u * pitch;
    z->next2 = 2u * pixel - pitch;
    z->first5 = pixel - 4u * pitch;
    z->first4 = pixel - 3u * pitch;
    z->first3 = pixel - 2u * pitch;
    z->first2 = pixel - pitch;
    z->after = (right ? 0 : 4u * pitch) - (2u * times + 1u - p->pad_left) * pixel;
    z->strips = whole / 2u;
    /* The last whole row is computed with that below, if it is not one of two. */
    z->rest = whole % 2u == 0 ? 0 : bottom ? 4u : 3u;
    z->top = top;
    z->bottom = bottom && whole % 2u == 0;
    z->usual = right && p->pad_left == 0 && !top && whole >= 2u;
    if (!z->usual) {
        z->left = p->pad_left;
        z->right = right;
        z->whole_in = top ? pitch : 0;
        z->last_in = (2u * (end - 1u - y) - (top ? 1u : 0)) * pitch;
        z->whole_out = top ? row : 0;
        z->last_out = (end - 1u - y) * row;
    } else {
        z->rest = z->bottom ? 2u : z->rest;
        z->next_in = 2u - 2u * (whole - whole % 2u) * pitch;
        z->next_out = 2u - (whole - whole % 2u) * row;
        if (z->rest != 0) {
            z->next_in -= (z->rest - 1u) * pitch + (2u * times + 1u) * pixel;
            z->next_out -= row;
        }
    }
}

/* All channels but a last odd one. */
#define KERNEL(type, dot, sdot, correct, clip)                                                     \
    PAIR(pair_##type, dot, sdot, correct, A_TWO(clip), B_TWO(clip))                                \
    USUAL(equal_##type, dot, sdot, correct, IF_EQUAL, A_EQUAL(clip), B_EQUAL(clip))                \
    USUAL(usual_##type, dot, sdot, correct, IN_ANY_CASE, A_TWO(clip), B_TWO(clip))                 \
    HTVM_CALLED void channels_##type(const htvm_columns_t *p, uint32_t y, uint32_t until)          \
    {                                                                                              \
        sizes_t z;                                                                                 \
        set_sizes(&z, p, y, until);                                                                \
        const uint8_t *in = p->in + (z.top ? 0 : 2u * y - p->pad_top) * z.pitch;                   \
        uint8_t *out = p->out + y * z.row;                                                         \
        const uint8_t *record = p->records, *const end = record + p->c / 2u * 2u * RECORD;         \
        /* Different shifts cost a cycle per column; going back to equal ones costs about 30. */   \
        const bool is_small = z.times * z.strips < 32u;                                            \
        while (z.usual && record != end) {                                                         \
            record = equal_##type(&z, record, end, &in, &out);                                     \
            if (record != end) {                                                                   \
                const uint8_t *const last = is_small ? end : record + 2u * RECORD;                 \
                record = usual_##type(&z, record, last, &in, &out);                                \
            }                                                                                      \
        }                                                                                          \
        for (; record != end; record += 2u * RECORD, in += 2, out += 2) {                          \
            pair_##type(&z, record, in, out);                                                      \
        }                                                                                          \
    }
KERNEL(int8, "dotsp", "sdotsp", SIGNED, CLIP_INT8)
KERNEL(relu, "dotsp", "sdotsp", SIGNED, CLIP_RELU)
KERNEL(uint8, "dotusp", "sdotusp", UNSIGNED, CLIP_UINT8)

bool htvm_pairs_fit(const htvm_columns_t *p, uint32_t end)
{
    const bool is_signed = !p->in_unsigned && (p->low == -128 || p->low == 0) && p->high == 127;
    const bool is_unsigned = p->in_unsigned && p->low == 0 && p->high == 255;
    /* How far the last windows go beyond the first byte that is outside. */
    const uint32_t rows = 2u * (end - 1u) + SIDE, columns = 2u * (p->ox - 1u) + SIDE;
    return p->scaling == HTVM_QUADS_NARROW && (is_signed || is_unsigned) && p->stride_y == 2 &&
           p->stride_x == 2 && p->in_pixel == p->out_pixel && p->ox >= 2 && p->iy >= 2 &&
           p->ix >= 2 && p->pad_top <= 1 && p->pad_left <= 1 && rows <= p->iy + p->pad_top + 1 &&
           columns <= p->ix + p->pad_left + 1 && (end > 1 || rows <= p->iy + p->pad_top);
}

uint32_t htvm_pairs(const htvm_columns_t *p, uint32_t y, uint32_t end)
{
    if (p->in_unsigned) {
        channels_uint8(p, y, end);
    } else if (p->low == 0) {
        channels_relu(p, y, end);
    } else {
        channels_int8(p, y, end);
    }
    return p->c & ~1u;
}
#else
typedef int htvm_pairs_are_for_simd;
#endif
