/* Depthwise convolutions in HWC; see htvm_channels.h, and for filters of 3 x 3 htvm_strips.h. */
#include "htvm_channels.h"

#include <stddef.h>

#include "htvm_pairs.h"
#include "htvm_patches.h"
#include "htvm_scale.h"
#include "htvm_squares.h"
#include "htvm_strips.h"
#include "htvm_transpose.h"


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

/* Sets the columns of blocks that are outside; nothing else writes there. */
static void make_borders(const htvm_columns_t *p, uint32_t columns, uint32_t blocks)
{
    const uint32_t zero = p->in_unsigned ? 0x80808080u : 0, left = left_of(p, columns);
    const uint32_t behind = left + inside_of(p, columns);
    uint8_t *plane = p->scratch;
    for (uint32_t j = 0; j < blocks * CHANNELS; j++, plane += 4u * columns) {
        for (uint32_t x = 0; x < left; x++) {
            htvm_store4(plane + 4u * x, zero);
        }
        for (uint32_t x = behind; x < columns; x++) {
            htvm_store4(plane + 4u * x, zero);
        }
    }
}

/* What blocks have in common. */
typedef struct {
    uint32_t pitch;          /* of the input's rows */
    uint32_t left;           /* columns before those of the input, in bytes of a block */
    uint32_t most;           /* number for which there is room */
    htvm_transposed_t order;
} blocks_t;

/* Makes a block of input rows y to y + 3, for the columns that are in the input. */
HTVM_INLINE void make_block(const htvm_columns_t *p, const blocks_t *b, const uint8_t *in, int32_t y,
                            uint8_t *block)
{
    const uint32_t pixel = p->in_pixel, pitch = b->pitch;
    const uint8_t *row = in + (uint32_t)y * pitch;
    htvm_rows_t rows = {
        {row, row + pitch, row + 2u * pitch, row + 3u * pitch}, {pixel, pixel, pixel, pixel},
    };
    if (y < 0 || (uint32_t)y + ROWS > p->iy) {
        HTVM_UNROLL(4)
        for (uint32_t i = 0; i < ROWS; i++) {
            if ((uint32_t)(y + (int32_t)i) >= p->iy) {
                rows.row[i] = (const uint8_t *)&nothing;
                rows.step[i] = 0;
            }
        }
    }
    htvm_transpose_here(&b->order, &rows, block + b->left);
}

/* ------------------------------------------------------------------ strips */

/* A strip with any requantization, in C, by way of its sums. */
HTVM_CALLED void strip_by_sums(const htvm_columns_t *p, const strip_t *strip, uint32_t rows)
{
    uint8_t *const sums = p->scratch + 32u * ((p->ox - 1u) * p->stride_x + SIDE);
    const uint8_t *sum = sums, *record = strip->records;
    strip_t raw = *strip;
    raw.out = sums;
    raw.next = 0;
    if (p->stride_y == 2 && rows == 1) {
        raw_far_1(&raw);
    } else if (p->stride_y == 2) {
        raw_far_2(&raw);
    } else if (rows == 1) {
        raw_near_1(&raw);
    } else if (rows == 2) {
        raw_near_2(&raw);
    } else if (rows == 3) {
        raw_near_3(&raw);
    } else {
        raw_near_4(&raw);
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

/* Fours of channels, from this one on, of rows y to end - 1 with stride 1: as many blocks at once as
 * there is room for. */
HTVM_CALLED void near_channels(const htvm_columns_t *p, const blocks_t *blocks, uint32_t channel,
                               uint32_t y, uint32_t end)
{
    const uint32_t row = p->ox * p->out_pixel, plane = 4u * (p->ox - 1u + SIDE);
    const uint32_t most = blocks->most, stack = most * plane;
    strip_t strip = {.row = row, .pixel = p->out_pixel, .low = p->low, .high = p->high};
    strip.times = p->ox / 3u;
    strip.rest = p->ox % 3u;
    while (y < end) {
        const uint32_t rows = end - y <= ROWS * most - 2u ? end - y : ROWS * (most - 1u);
        const uint32_t strips = rows / ROWS, rest = rows % ROWS, block = strips * plane;
        const uint8_t *records = p->records + channel * RECORD, *in = p->in + channel;
        uint8_t *out = p->out + y * row + channel;
        strip.strips = strips;
        for (uint32_t k = channel; k + CHANNELS <= p->c; k += CHANNELS) {
            int32_t from = (int32_t)y - (int32_t)p->pad_top;
            uint8_t *to = p->scratch;
            for (uint32_t at = 0; at < rows + 2u; at += ROWS, from += (int32_t)ROWS, to += plane) {
                make_block(p, blocks, in, from, to);
            }
            strip.records = records;
            strip.upper = p->scratch;
            strip.lower = p->scratch + plane;
            strip.out = out;
            if (strips != 0) {
                strip.next = 1u - ROWS * strips * row;
                strip.skip = stack - block;
                near_strips(&strip);
                strip.upper += block;
                strip.lower += block;
                strip.out += ROWS * strips * row;
            }
            if (rest != 0) {
                strip.next = 1u - row;
                strip.skip = stack - plane;
                near_strip(&strip, rest);
            }
            records += CHANNELS * RECORD;
            in += CHANNELS;
            out += CHANNELS;
        }
        y += rows;
    }
}

/* Four channels of rows y to end - 1. */
HTVM_CALLED void four_channels(const htvm_columns_t *p, const blocks_t *blocks, uint32_t channel,
                               uint32_t y, uint32_t end)
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
    make_block(p, blocks, in, from, upper);
    while (y < end) {
        const uint32_t rows = end - y < most ? end - y : most;
        from += (int32_t)ROWS;
        if ((rows - 1u) * stride + SIDE > ROWS) {
            make_block(p, blocks, in, from, lower);
        }
        strip.upper = upper;
        strip.lower = lower;
        if (p->scaling != HTVM_QUADS_NARROW) {
            strip_by_sums(p, &strip, rows);
        } else {
            far_strip(&strip, rows);
        }
        strip.out += rows * row;
        y += rows;
        uint8_t *const free = upper;
        upper = lower;
        lower = free;
    }
}

/* Fours of channels, from this one on, of rows y to end - 1.  Returns the first channel that is left. */
HTVM_CALLED uint32_t fours_of_channels(const htvm_columns_t *p, uint32_t channel, uint32_t y,
                                       uint32_t end)
{
    const uint32_t columns = (p->ox - 1u) * p->stride_x + SIDE, plane = 4u * columns;
    const bool is_near = p->stride_x == 1 && p->scaling == HTVM_QUADS_NARROW;
    const uint32_t room = htvm_columns_scratch(SIDE, p->ox, p->stride_x);
    const uint32_t most = is_near ? room / (CHANNELS * plane) : 2;
    const blocks_t blocks = {
        p->ix * p->in_pixel, 4u * left_of(p, columns), most,
        {inside_of(p, columns), is_near ? most * plane : plane, 4u,
         p->in_unsigned ? 0x80808080u : 0},
    };
    make_borders(p, columns, most);
    if (is_near) {
        near_channels(p, &blocks, channel, y, end);
        return channel + (p->c - channel) / CHANNELS * CHANNELS;
    }
    for (; channel + CHANNELS <= p->c; channel += CHANNELS) {
        four_channels(p, &blocks, channel, y, end);
    }
    return channel;
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
        if (what->stride_x == 1) {
            channel = htvm_squares_fit(what, y, end) ? htvm_squares(what) : 0;
        } else if (htvm_patches_fit(what, y, end)) {
            channel = htvm_patches(what);
        } else if (htvm_pairs_fit(what, end)) {
            channel = htvm_pairs(what, y, end);
        }
        if (what->c >= channel + CHANNELS) {
            channel = fours_of_channels(what, channel, y, end);
        }
    }
#endif
    for (; channel < what->c; channel++) {
        one_channel(what, channel, y, end);
    }
}
