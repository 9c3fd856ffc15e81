/* Strips of depthwise convolutions with filters of 3 x 3, in assembly; private to htvm_channels.h.
 *
 * A block is four rows of four channels as words, of which each has four bytes of a column.  A block and
 * the next one give 4 rows of results with stride 1, 2 with stride 2: rows 0 and 1 are products with
 * [w0 w1 w2 .] and [. w0 w1 w2]; the lower half of a column and the upper half of the one above it, in
 * one word, give rows 2 and 3. */
#ifndef HTVM_STRIPS_H
#define HTVM_STRIPS_H

#include "htvm_simd.h"

#define SIDE 3u
#define ROWS 4u     /* of a block */
#define CHANNELS 4u /* computed together */
#define RECORD 28u  /* bytes */

#if HTVM_SIMD
/* A strip: rows of results of four channels, from a block and the next one. */
typedef struct {
    const uint8_t *upper, *lower;
    const uint8_t *records;
    uint8_t *out;
    uint32_t row, pixel; /* of the result, distances in bytes */
    uint32_t columns;    /* of the result: `rest`, then `times` rounds of the loop */
    uint32_t times, rest;
    uint32_t next;       /* from behind a channel's results to those of the next one */
    uint32_t skip;       /* the same of blocks */
    uint32_t strips;     /* of four rows */
    int32_t low, high;
} strip_t;

#define DOT(op, s, v, w) "cv." op "sp.b %[" s "], %[" v "], %[" w "]\n"
#define LOAD_V(v) "cv.lw %[" v "], (%[p0]), 4\n"
#define LOAD_H(h) "cv.lw %[" h "], (%[p1]), 4\n"
#define JOIN(h, v) "cv.shuffle2.h %[" h "], %[" v "], %[mask]\n" /* upper half of v, lower of h */
/* A column kept from the beginning. */
#define KEEP_1(v, h) LOAD_V(v)
#define KEEP_2(v, h) LOAD_V(v) LOAD_H(h) "nop\n" JOIN(h, v)
#define KEEP_1_1(v, h, w, i) LOAD_V(v) LOAD_V(w)
#define KEEP_2_2(v, h, w, i) LOAD_V(v) LOAD_H(h) LOAD_V(w) LOAD_H(i) JOIN(h, v) JOIN(i, w)

/* Sums of 1 to 4 rows of the columns a, b and c, of which c (with stride 2: b and c) is loaded. */
#define TOP(va, vb, vc) DOT("dot", "s0", va, "e0") DOT("sdot", "s0", vb, "e1")
#define SUMS_1(va, ha, vb, hb, vc, hc)                                                             \
    LOAD_V(vc) TOP(va, vb, vc) DOT("sdot", "s0", vc, "e2")
#define SUMS_2(va, ha, vb, hb, vc, hc)                                                             \
    LOAD_V(vc) TOP(va, vb, vc)                                                                     \
    DOT("dot", "s1", va, "o0") DOT("sdot", "s1", vb, "o1")                                         \
    DOT("sdot", "s0", vc, "e2") DOT("sdot", "s1", vc, "o2")
#define SUMS_3(va, ha, vb, hb, vc, hc)                                                             \
    LOAD_V(vc) LOAD_H(hc) TOP(va, vb, vc)                                                          \
    DOT("dot", "s1", va, "o0") DOT("sdot", "s1", vb, "o1") JOIN(hc, vc)                            \
    DOT("dot", "s2", ha, "e0") DOT("sdot", "s2", hb, "e1")                                         \
    DOT("sdot", "s0", vc, "e2") DOT("sdot", "s1", vc, "o2") DOT("sdot", "s2", hc, "e2")
#define SUMS_4(va, ha, vb, hb, vc, hc)                                                             \
    SUMS_3(va, ha, vb, hb, vc, hc)                                                                 \
    DOT("dot", "s3", ha, "o0") DOT("sdot", "s3", hb, "o1") DOT("sdot", "s3", hc, "o2")
#define FAR_1(va, ha, vb, hb, vc, hc)                                                              \
    LOAD_V(vb) LOAD_V(vc) TOP(va, vb, vc) DOT("sdot", "s0", vc, "e2")
#define FAR_2(va, ha, vb, hb, vc, hc)                                                              \
    LOAD_V(vb) LOAD_H(hb) LOAD_V(vc) LOAD_H(hc) JOIN(hb, vb) TOP(va, vb, vc) JOIN(hc, vc)          \
    DOT("dot", "s1", ha, "e0") DOT("sdot", "s1", hb, "e1")                                         \
    DOT("sdot", "s0", vc, "e2") DOT("sdot", "s1", hc, "e2")

#define CLIP_SIGNED(s) "cv.clipr %[" s "], %[" s "], %[high]\n"    /* -high - 1 to high */
#define CLIP_UNSIGNED(s) "cv.clipur %[" s "], %[" s "], %[high]\n" /* 0 to high */
#define CLIP_LIMITS(s)                                                                             \
    "cv.max %[" s "], %[" s "], %[low]\ncv.min %[" s "], %[" s "], %[high]\n"
#define SCALE(clip, s)                                                                             \
    "mul %[" s "], %[" s "], %[mul]\ncv.addnr %[" s "], %[add], %[shift]\n" clip(s)
#define DOWN(s) "cv.sb %[" s "], (%[out]), %[row]\n"
#define LAST(s) "cv.sb %[" s "], (%[out]), %[back]\n"
#define DONE_1(clip) SCALE(clip, "s0") LAST("s0")
#define DONE_2(clip) SCALE(clip, "s0") SCALE(clip, "s1") DOWN("s0") LAST("s1")
#define DONE_3(clip)                                                                               \
    SCALE(clip, "s0") SCALE(clip, "s1") SCALE(clip, "s2") DOWN("s0") DOWN("s1") LAST("s2")
#define DONE_4(clip)                                                                               \
    SCALE(clip, "s0") SCALE(clip, "s1") SCALE(clip, "s2") SCALE(clip, "s3")                        \
    DOWN("s0") DOWN("s1") DOWN("s2") LAST("s3")

/* The sums instead of results: words one after another, column by column. */
#define RAW(s) "cv.sw %[" s "], (%[out]), 4\n"
#define RAW_1(clip) RAW("s0")
#define RAW_2(clip) RAW("s0") RAW("s1")
#define RAW_3(clip) RAW("s0") RAW("s1") RAW("s2")
#define RAW_4(clip) RAW("s0") RAW("s1") RAW("s2") RAW("s3")

/* With stride 1, three columns of results, after which the same registers hold the same columns; one
 * or two of them come before the loop.  With stride 2, two columns. */
#define COLUMN_A(sums, done, clip) sums("v0", "h0", "v1", "h1", "v2", "h2") done(clip)
#define COLUMN_B(sums, done, clip) sums("v1", "h1", "v2", "h2", "v0", "h0") done(clip)
#define COLUMN_C(sums, done, clip) sums("v2", "h2", "v0", "h0", "v1", "h1") done(clip)
#define COLUMN_D(sums, done, clip) sums("v2", "h2", "v1", "h1", "v0", "h0") done(clip)

#define COLUMNS_NEAR(keep, sums, done, clip)                                                       \
    "beqz %[s1], 6f\naddi %[s1], %[s1], -1\nbeqz %[s1], 7f\n"                                      \
    keep("v1", "h1", "v2", "h2") COLUMN_B(sums, done, clip) "j 8f\n"                               \
    "7: " keep("v2", "h2", "v0", "h0")                                                             \
    "8: " COLUMN_C(sums, done, clip)                                                               \
    "lw %[s0], %[times]\nnop\nbnez %[s0], 3f\nj 4f\n"                                              \
    "6: " keep("v0", "h0", "v1", "h1")                                                             \
    "3: " COLUMN_A(sums, done, clip) COLUMN_B(sums, done, clip) COLUMN_C(sums, done, clip) "4: "
#define COLUMNS_FAR(keep, sums, done, clip)                                                        \
    "beqz %[s1], 6f\n"                                                                             \
    keep("v2", "h2") COLUMN_D(sums, done, clip)                                                    \
    "lw %[s0], %[times]\nnop\nbnez %[s0], 3f\nj 4f\n"                                              \
    "6: " keep("v0", "h0")                                                                         \
    "3: " COLUMN_A(sums, done, clip) COLUMN_D(sums, done, clip) "4: "

#define RECORD_OF_CHANNEL                                                                          \
    "cv.lw %[e0], (%[record]), 4\ncv.lw %[e1], (%[record]), 4\n"                                   \
    "cv.lw %[e2], (%[record]), 8\ncv.lw %[mul], (%[record]), 4\n"                                  \
    "cv.lw %[add], (%[record]), 4\ncv.lw %[shift], (%[record]), 4\n"                               \
    "slli %[o0], %[e0], 8\nslli %[o1], %[e1], 8\nslli %[o2], %[e2], 8\n"
#define NEXT_CHANNEL                                                                               \
    "lw %[s0], %[skip]\nlw %[s2], %[next]\nlw %[s1], %[end]\n"                                     \
    "add %[p0], %[p0], %[s0]\nadd %[p1], %[p1], %[s0]\n"                                           \
    "add %[out], %[out], %[s2]\nbne %[record], %[s1], 0b\n"

/* Four channels, one after another: behind a block's columns of one are those of the next. */
#define STRIP(name, columns_of, rows,           keep, sums, done, clip)                            \
    HTVM_INLINE void name(const strip_t *p)                                                        \
    {                                                                                              \
        const uint8_t *p0 = p->upper, *p1 = p->lower;                                              \
        uint8_t *out = p->out;                                                                     \
        const uint8_t *record = p->records, *const end = record + CHANNELS * RECORD;               \
        const uint32_t row = p->row, back = p->pixel - ((rows) - 1u) * row;                        \
        uint32_t v0, v1, v2, h0, h1, h2, e0, e1, e2, o0, o1, o2;                                   \
        int32_t s0, s1, s2, s3, mul, add, shift;                                                   \
        __asm__ volatile(                                                                          \
            HTVM_LOOP                                                                              \
            "0: lw %[s0], %[times]\nlw %[s1], %[rest]\n"                                           \
            ".insn r 0x2b, 4, 0, x10, %[s0], x0\n" /* cv.count 0 */                                \
            RECORD_OF_CHANNEL                                                                      \
            columns_of(keep, sums, done, clip)                                                     \
            NEXT_CHANNEL ".option pop\n"                                                         \
            : [v0] "=&r"(v0), [v1] "=&r"(v1), [v2] "=&r"(v2), [h0] "=&r"(h0), [h1] "=&r"(h1),      \
              [h2] "=&r"(h2), [e0] "=&r"(e0), [e1] "=&r"(e1), [e2] "=&r"(e2), [o0] "=&r"(o0),      \
              [o1] "=&r"(o1), [o2] "=&r"(o2), [s0] "=&r"(s0), [s1] "=&r"(s1), [s2] "=&r"(s2),      \
              [s3] "=&r"(s3), [mul] "=&r"(mul), [add] "=&r"(add), [shift] "=&r"(shift),            \
              [p0] "+&r"(p0), [p1] "+&r"(p1), [out] "+&r"(out), [record] "+&r"(record)             \
            : [high] "r"(p->high), [low] "r"(p->low), [mask] "r"(0x00000003u),                         \
              [row] "r"(row), [back] "r"(back), [times] "m"(p->times), [rest] "m"(p->rest),              \
              [next] "m"(p->next), [end] "m"(end), [skip] "m"(p->skip)                                                    \
            : "memory");                                                                           \
    }

/* The same, strips of four rows below each other in each channel. */
#define STRIPS(name, clip)                                                                         \
    HTVM_INLINE void name(const strip_t *p)                                                        \
    {                                                                                              \
        const uint8_t *p0 = p->upper, *p1 = p->lower;                                              \
        uint8_t *out = p->out;                                                                     \
        const uint8_t *record = p->records, *const end = record + CHANNELS * RECORD;               \
        const uint32_t row = p->row, back = p->pixel - 3u * row, down = 3u * row;                  \
        uint32_t v0, v1, v2, h0, h1, h2, e0, e1, e2, o0, o1, o2, left;                             \
        int32_t s0, s1, s2, s3, mul, add, shift;                                                   \
        __asm__ volatile(                                                                          \
            HTVM_LOOP                                                                              \
            "0: lw %[s0], %[strips]\n" RECORD_OF_CHANNEL "sw %[s0], %[left]\n"                     \
            "5: lw %[s0], %[times]\nlw %[s1], %[rest]\n"                                           \
            ".insn r 0x2b, 4, 0, x10, %[s0], x0\n" /* cv.count 0 */                                \
            COLUMNS_NEAR(KEEP_2_2, SUMS_4, DONE_4, clip)                                           \
            "lw %[s0], %[left]\nlw %[s1], %[down]\naddi %[s0], %[s0], -1\n"                        \
            "sw %[s0], %[left]\nadd %[out], %[out], %[s1]\nbnez %[s0], 5b\n"                       \
            NEXT_CHANNEL ".option pop\n"                                                           \
            : [v0] "=&r"(v0), [v1] "=&r"(v1), [v2] "=&r"(v2), [h0] "=&r"(h0), [h1] "=&r"(h1),      \
              [h2] "=&r"(h2), [e0] "=&r"(e0), [e1] "=&r"(e1), [e2] "=&r"(e2), [o0] "=&r"(o0),      \
              [o1] "=&r"(o1), [o2] "=&r"(o2), [s0] "=&r"(s0), [s1] "=&r"(s1), [s2] "=&r"(s2),      \
              [s3] "=&r"(s3), [mul] "=&r"(mul), [add] "=&r"(add), [shift] "=&r"(shift),            \
              [p0] "+&r"(p0), [p1] "+&r"(p1), [out] "+&r"(out), [record] "+&r"(record),            \
              [left] "=m"(left)                                                                    \
            : [high] "r"(p->high), [low] "r"(p->low), [mask] "r"(0x00000003u), [row] "r"(row),     \
              [back] "r"(back), [times] "m"(p->times), [rest] "m"(p->rest), [next] "m"(p->next),            \
              [end] "m"(end), [skip] "m"(p->skip), [down] "m"(down), [strips] "m"(p->strips)             \
            : "memory");                                                                           \
    }

STRIPS(strips_signed, CLIP_SIGNED)
STRIPS(strips_unsigned, CLIP_UNSIGNED)
STRIPS(strips_limits, CLIP_LIMITS)
STRIP(near_1, COLUMNS_NEAR, 1u, KEEP_1_1, SUMS_1, DONE_1, CLIP_LIMITS)
STRIP(near_2, COLUMNS_NEAR, 2u, KEEP_1_1, SUMS_2, DONE_2, CLIP_LIMITS)
STRIP(near_3, COLUMNS_NEAR, 3u, KEEP_2_2, SUMS_3, DONE_3, CLIP_LIMITS)
STRIP(far_1, COLUMNS_FAR, 1u, KEEP_1, FAR_1, DONE_1, CLIP_LIMITS)
STRIP(far_2, COLUMNS_FAR, 2u, KEEP_2, FAR_2, DONE_2, CLIP_LIMITS)
STRIP(far_2_signed, COLUMNS_FAR, 2u, KEEP_2, FAR_2, DONE_2, CLIP_SIGNED)
STRIP(far_2_unsigned, COLUMNS_FAR, 2u, KEEP_2, FAR_2, DONE_2, CLIP_UNSIGNED)

STRIP(raw_near_1, COLUMNS_NEAR, 1u, KEEP_1_1, SUMS_1, RAW_1, CLIP_LIMITS)
STRIP(raw_near_2, COLUMNS_NEAR, 2u, KEEP_1_1, SUMS_2, RAW_2, CLIP_LIMITS)
STRIP(raw_near_3, COLUMNS_NEAR, 3u, KEEP_2_2, SUMS_3, RAW_3, CLIP_LIMITS)
STRIP(raw_near_4, COLUMNS_NEAR, 4u, KEEP_2_2, SUMS_4, RAW_4, CLIP_LIMITS)
STRIP(raw_far_1, COLUMNS_FAR, 1u, KEEP_1, FAR_1, RAW_1, CLIP_LIMITS)
STRIP(raw_far_2, COLUMNS_FAR, 2u, KEEP_2, FAR_2, RAW_2, CLIP_LIMITS)

HTVM_INLINE void near_strips(const strip_t *strip)
{
    if (strip->low == -strip->high - 1) {
        strips_signed(strip);
    } else if (strip->low == 0) {
        strips_unsigned(strip);
    } else {
        strips_limits(strip);
    }
}

HTVM_INLINE void near_strip(const strip_t *strip, uint32_t rows)
{
    if (rows == 2) {
        near_2(strip);
    } else if (rows == 3) {
        near_3(strip);
    } else {
        near_1(strip);
    }
}

HTVM_INLINE void far_strip(const strip_t *strip, uint32_t rows)
{
    if (rows == 1) {
        far_1(strip);
    } else if (strip->low == -strip->high - 1) {
        far_2_signed(strip);
    } else if (strip->low == 0) {
        far_2_unsigned(strip);
    } else {
        far_2(strip);
    }
}

#endif

#endif
