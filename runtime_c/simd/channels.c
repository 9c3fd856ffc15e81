/* Depthwise convolutions in HWC; see htvm_channels.h.
 *
 * With filters of 3 x 3, a block is four rows of four channels as words, of which each has four bytes
 * of a column.  A block and the next one give 4 rows of results with stride 1, 2 with stride 2: rows 0
 * and 1 are products with [w0 w1 w2 .] and [. w0 w1 w2]; the lower half of a column and the upper half
 * of the one above it, in one word, give rows 2 and 3. */
#include "htvm_channels.h"

#include <stddef.h>

#include "htvm_scale.h"
#include "htvm_transpose.h"

#define SIDE 3u
#define ROWS 4u     /* of a block */
#define CHANNELS 4u /* computed together */
#define RECORD 28u  /* bytes */

/* Requantizes a sum by the factors of a record. */
HTVM_INLINE int32_t scaled(const htvm_columns_t *p, int32_t sum, const uint8_t *factors)
{
    const int32_t mul = (int32_t)htvm_load4(factors), add = (int32_t)htvm_load4(factors + 4);
    const int32_t shift = (int32_t)htvm_load4(factors + 8);
    if (p->scaling == HTVM_QUADS_NARROW) {
        return htvm_limit(htvm_scale(sum, mul, add, (uint32_t)shift), p->low, p->high);
    }
    if (p->scaling == HTVM_QUADS_WIDE) {
        return htvm_scale_wide(sum, mul, add, (uint32_t)shift, p->low, p->high);
    }
    sum = htvm_scale_tflite(sum, mul, shift);
    return htvm_limit((int32_t)((uint32_t)sum + (uint32_t)add), p->low, p->high);
}

#if HTVM_SIMD
/* ------------------------------------------------------------------ four rows to columns */

static const uint32_t nothing = 0;

/* Of the columns that blocks have, how many are before those of the input, and how many in it. */
HTVM_INLINE uint32_t left_of(const htvm_columns_t *p, uint32_t columns)
{
    return p->pad_left < columns ? p->pad_left : columns;
}

HTVM_INLINE uint32_t inside_of(const htvm_columns_t *p, uint32_t columns)
{
    const uint32_t rest = columns - left_of(p, columns);
    return rest < p->ix ? rest : p->ix;
}

/* Sets the columns of both blocks that are outside; nothing else writes there. */
static void make_borders(const htvm_columns_t *p, uint32_t columns)
{
    const uint32_t zero = p->in_unsigned ? 0x80808080u : 0, left = left_of(p, columns);
    const uint32_t behind = left + inside_of(p, columns);
    uint8_t *plane = p->scratch;
    for (uint32_t j = 0; j < 2u * CHANNELS; j++, plane += 4u * columns) {
        for (uint32_t x = 0; x < left; x++) {
            htvm_store4(plane + 4u * x, zero);
        }
        for (uint32_t x = behind; x < columns; x++) {
            htvm_store4(plane + 4u * x, zero);
        }
    }
}

/* Makes a block of input rows y to y + 3, for the columns that are in the input. */
static void make_block(const htvm_columns_t *p, const uint8_t *in, int32_t y, uint32_t columns,
                       uint8_t *block)
{
    const uint32_t left = left_of(p, columns), inside = inside_of(p, columns);
    htvm_rows_t rows;
#pragma GCC unroll 4
    for (uint32_t i = 0; i < ROWS; i++) {
        const uint32_t at = (uint32_t)(y + (int32_t)i);
        const bool there = at < p->iy;
        rows.row[i] = there ? in + at * p->ix * p->in_pixel : (const uint8_t *)&nothing;
        rows.step[i] = there ? p->in_pixel : 0;
    }
    const htvm_transposed_t transposed = {
        inside, 4u * columns, 4u, p->in_unsigned ? 0x80808080u : 0,
    };
    htvm_transpose(&transposed, &rows, block + 4u * left);
}

/* ------------------------------------------------------------------ products */

/* A strip: rows of results of four channels, from a block and the next one. */
typedef struct {
    const uint8_t *upper, *lower;
    const uint8_t *records;
    uint8_t *out;
    uint32_t row, pixel; /* of the result, distances in bytes */
    uint32_t columns;    /* of the result: `rest`, then `times` rounds of the loop */
    uint32_t times, rest;
    uint32_t next;       /* from behind a channel's results to those of the next one */
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

/* Four channels, one after another: behind a block's columns of one are those of the next. */
#define STRIP(name, columns_of, rows,           keep, sums, done, clip)                            \
    HTVM_CALLED void name(const strip_t *p)                                                        \
    {                                                                                              \
        const uint8_t *p0 = p->upper, *p1 = p->lower;                                              \
        uint8_t *out = p->out;                                                                     \
        const uint8_t *record = p->records, *const end = record + CHANNELS * RECORD;               \
        const uint32_t row = p->row, back = p->pixel - ((rows) - 1u) * row;                        \
        const uint32_t times = p->times, rest = p->rest;                                           \
        const uint32_t next = p->next;                                                             \
        uint32_t v0, v1, v2, h0, h1, h2, e0, e1, e2, o0, o1, o2;                                   \
        int32_t s0, s1, s2, s3, mul, add, shift;                                                   \
        __asm__ volatile(                                                                          \
            HTVM_LOOP                                                                              \
            "0: lw %[s0], %[times]\nlw %[s1], %[rest]\n"                                           \
            ".insn r 0x2b, 4, 0, x10, %[s0], x0\n" /* cv.count 0 */                                \
            "lw %[s0], %[record]\nnop\n"                                                           \
            "lw %[e0], 0(%[s0])\nlw %[e1], 4(%[s0])\nlw %[e2], 8(%[s0])\n"                         \
            "lw %[mul], 16(%[s0])\nlw %[add], 20(%[s0])\nlw %[shift], 24(%[s0])\n"                 \
            "addi %[s0], %[s0], 28\nsw %[s0], %[record]\n"                                         \
            "slli %[o0], %[e0], 8\nslli %[o1], %[e1], 8\nslli %[o2], %[e2], 8\n"                   \
            columns_of(keep, sums, done, clip)                                                     \
            "lw %[s0], %[record]\nlw %[s1], %[end]\nlw %[s2], %[next]\n"                           \
            "nop\nadd %[out], %[out], %[s2]\nbne %[s0], %[s1], 0b\n"                               \
            ".option pop\n"                                                                        \
            : [v0] "=&r"(v0), [v1] "=&r"(v1), [v2] "=&r"(v2), [h0] "=&r"(h0), [h1] "=&r"(h1),      \
              [h2] "=&r"(h2), [e0] "=&r"(e0), [e1] "=&r"(e1), [e2] "=&r"(e2), [o0] "=&r"(o0),      \
              [o1] "=&r"(o1), [o2] "=&r"(o2), [s0] "=&r"(s0), [s1] "=&r"(s1), [s2] "=&r"(s2),      \
              [s3] "=&r"(s3), [mul] "=&r"(mul), [add] "=&r"(add), [shift] "=&r"(shift),            \
              [p0] "+&r"(p0), [p1] "+&r"(p1), [out] "+&r"(out), [record] "+m"(record)              \
            : [high] "r"(p->high), [low] "r"(p->low), [mask] "r"(0x00000003u),                         \
              [row] "r"(row), [back] "r"(back), [times] "m"(times), [rest] "m"(rest),              \
              [next] "m"(next), [end] "m"(end)                                                     \
            : "memory");                                                                           \
    }

STRIP(near_1, COLUMNS_NEAR, 1u, KEEP_1_1, SUMS_1, DONE_1, CLIP_LIMITS)
STRIP(near_2, COLUMNS_NEAR, 2u, KEEP_1_1, SUMS_2, DONE_2, CLIP_LIMITS)
STRIP(near_3, COLUMNS_NEAR, 3u, KEEP_2_2, SUMS_3, DONE_3, CLIP_LIMITS)
STRIP(near_4, COLUMNS_NEAR, 4u, KEEP_2_2, SUMS_4, DONE_4, CLIP_LIMITS)
STRIP(near_4_signed, COLUMNS_NEAR, 4u, KEEP_2_2, SUMS_4, DONE_4, CLIP_SIGNED)
STRIP(near_4_unsigned, COLUMNS_NEAR, 4u, KEEP_2_2, SUMS_4, DONE_4, CLIP_UNSIGNED)
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

static void strip_of(const strip_t *strip, uint32_t rows, uint32_t stride)
{
    const bool is_signed = strip->low == -strip->high - 1, is_unsigned = strip->low == 0;
    if (stride == 1 && rows == 4) {
        (is_signed ? near_4_signed : is_unsigned ? near_4_unsigned : near_4)(strip);
    } else if (stride == 1) {
        (rows == 1 ? near_1 : rows == 2 ? near_2 : near_3)(strip);
    } else if (rows == 2) {
        (is_signed ? far_2_signed : is_unsigned ? far_2_unsigned : far_2)(strip);
    } else {
        far_1(strip);
    }
}

/* A strip with any requantization, in C, by way of its sums. */
HTVM_CALLED void strip_by_sums(const htvm_columns_t *p, const strip_t *strip, uint32_t rows)
{
    uint8_t *const sums = p->scratch + 32u * ((p->ox - 1u) * p->stride_x + SIDE);
    const uint8_t *sum = sums, *record = strip->records;
    strip_t raw = *strip;
    raw.out = sums;
    raw.next = 0;
    if (p->stride_y == 2) {
        (rows == 1 ? raw_far_1 : raw_far_2)(&raw);
    } else {
        (rows == 1 ? raw_near_1 : rows == 2 ? raw_near_2 : rows == 3 ? raw_near_3 : raw_near_4)(&raw);
    }
    for (uint32_t j = 0; j < CHANNELS; j++, record += RECORD) {
        const int32_t bias = (int32_t)htvm_load4(record + 12);
        uint8_t *out = strip->out + j;
        for (uint32_t x = 0; x < p->ox; x++, out += strip->pixel) {
            for (uint32_t i = 0; i < rows; i++, sum += 4) {
                const int32_t whole = (int32_t)(htvm_load4(sum) + (uint32_t)bias);
                out[i * strip->row] = (uint8_t)scaled(p, whole, record + 16);
            }
        }
    }
}

/* Four channels of rows y to end - 1. */
static void four_channels(const htvm_columns_t *p, uint32_t channel, uint32_t y, uint32_t end)
{
    const uint32_t stride = p->stride_y, row = p->ox * p->out_pixel;
    const uint32_t columns = (p->ox - 1u) * stride + SIDE, most = stride == 1 ? ROWS : 2u;
    const uint8_t *const in = p->in + channel;
    uint8_t *upper = p->scratch, *lower = upper + 16u * columns;
    int32_t from = (int32_t)(y * stride) - (int32_t)p->pad_top;
    strip_t strip = {
        .records = p->records + channel * RECORD,
        .out = p->out + y * row + channel,
        .row = row,
        .pixel = p->out_pixel,
        .columns = p->ox,
        .times = stride == 1 ? p->ox / 3u : p->ox / 2u,
        .rest = stride == 1 ? p->ox % 3u : p->ox % 2u,
        .next = 1u - row,
        .low = p->low,
        .high = p->high,
    };
    make_block(p, in, from, columns, upper);
    while (y < end) {
        const uint32_t rows = end - y < most ? end - y : most;
        from += (int32_t)ROWS;
        if ((rows - 1u) * stride + SIDE > ROWS) {
            make_block(p, in, from, columns, lower);
        }
        strip.upper = upper;
        strip.lower = lower;
        if (p->scaling == HTVM_QUADS_NARROW) {
            strip_of(&strip, rows, stride);
        } else {
            strip_by_sums(p, &strip, rows);
        }
        strip.out += rows * row;
        y += rows;
        uint8_t *const free = upper;
        upper = lower;
        lower = free;
    }
}
#endif

/* ------------------------------------------------------------------ any filter */

/* The taps of one output coordinate that are inside: where they begin, and behind the last one. */
typedef struct {
    uint32_t begin, end;
} taps_t;

HTVM_INLINE taps_t taps_of(uint32_t start, uint32_t pad, uint32_t taps, uint32_t size)
{
    const uint32_t end = pad + size > start ? pad + size - start : 0;
    const taps_t inside = {start < pad ? pad - start : 0, end < taps ? end : taps};
    return inside;
}

HTVM_CALLED void one_channel(const htvm_columns_t *p, uint32_t channel, uint32_t y, uint32_t end)
{
    const uint32_t bytes = htvm_column_bytes(p->fy, p->fx), height = (p->fy + 3u) & ~3u;
    const uint8_t *const record = p->records + channel * bytes, *const bias = record + bytes - 16;
    const uint8_t *const in = p->in + channel;
    const uint32_t pixel = p->in_pixel, row = p->ix * pixel;
    /* Data are x - 128 if unsigned, and so are the zeros outside. */
    const int32_t zero = p->in_unsigned ? 128 : 0;
    uint32_t all = htvm_load4(bias);
    for (uint32_t at = 0; p->in_unsigned && at < height * p->fx; at++) {
        all -= (uint32_t)(128 * (int8_t)record[at]);
    }
    for (; y < end; y++) {
        const taps_t rows = taps_of(y * p->stride_y, p->pad_top, p->fy, p->iy);
        uint8_t *out = p->out + y * p->ox * p->out_pixel + channel;
        for (uint32_t x = 0; x < p->ox; x++, out += p->out_pixel) {
            const taps_t columns = taps_of(x * p->stride_x, p->pad_left, p->fx, p->ix);
            uint32_t sum = all;
            for (uint32_t j = columns.begin; rows.begin < rows.end && j < columns.end; j++) {
                const uint32_t first = y * p->stride_y + rows.begin - p->pad_top;
                const uint8_t *from = in + first * row + (x * p->stride_x + j - p->pad_left) * pixel;
                const uint8_t *w = record + j * height + rows.begin;
                const uint8_t *const last = record + j * height + rows.end;
                for (; w != last; w++, from += row) {
                    const int32_t data = zero != 0 ? (int32_t)*from : (int32_t)(int8_t)*from;
                    sum += (uint32_t)(data * (int8_t)*w);
                }
            }
            *out = (uint8_t)scaled(p, (int32_t)sum, bias + 4);
        }
    }
}

void htvm_columns(const htvm_columns_t *what, uint32_t y, uint32_t end)
{
    uint32_t channel = 0;
    if (y >= end || what->ox == 0) {
        return;
    }
#if HTVM_SIMD
    if (what->fy == SIDE && what->fx == SIDE && what->stride_x == what->stride_y &&
        what->stride_x <= 2) {
        if (what->c >= CHANNELS) {
            make_borders(what, (what->ox - 1u) * what->stride_x + SIDE);
        }
        for (; channel + CHANNELS <= what->c; channel += CHANNELS) {
            four_channels(what, channel, y, end);
        }
    }
#endif
    for (; channel < what->c; channel++) {
        one_channel(what, channel, y, end);
    }
}
