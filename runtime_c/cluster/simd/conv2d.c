/* cluster_conv2d for cores with SIMD.
 *
 * As pixels lie side by side, the taps of a row are one run of bytes, and windows are read where they
 * are.  The exceptions are those that leave the input, and filters whose rows are no multiple of
 * words: then the windows of four pixels are copied to scratch memory. */
#include "cluster_kernels.h"
#include "cluster_records.h"
#include "cluster_split.h"
#include "htvm_bytes.h"
#include "htvm_quads.h"

typedef struct {
    const cluster_conv_t *conv;
    htvm_quads_t direct, copied; /* on the input, and on windows in scratch memory */
    uint8_t *scratch;
    bool any_direct;
    /* Output rows and columns whose windows are inside the input: from begin to end - 1. */
    cluster_share_t rows, columns;
} convolution_t;

/* Returns which windows of one dimension are inside the input. */
static cluster_share_t inside(uint32_t out, uint32_t stride, uint32_t pad, uint32_t taps,
                              uint32_t size)
{
    cluster_share_t share = {(pad + stride - 1u) / stride, 0};
    if (pad + size >= taps) {
        const uint32_t count = (pad + size - taps) / stride + 1u;
        share.end = count < out ? count : out;
    }
    return share;
}

/* The taps of one output coordinate that are inside the input: where they begin in the filter and in
 * the input, and their number. */
typedef struct {
    uint32_t tap, at, count;
} window_t;

static window_t window_of(uint32_t start, uint32_t pad, uint32_t taps, uint32_t size)
{
    window_t window = {start < pad ? pad - start : 0, start < pad ? 0 : start - pad, 0};
    if (window.tap < taps && window.at < size) {
        const uint32_t left = taps - window.tap, there = size - window.at;
        window.count = left < there ? left : there;
    }
    return window;
}

/* Copies the window of output pixel (y, x). */
static void copy_window(const convolution_t *c, uint32_t y, uint32_t x, uint8_t *to)
{
    const cluster_conv_t *const v = c->conv;
    const window_t rows = window_of(y * v->stride_y, v->pad_top, v->fy, v->iy);
    const window_t columns = window_of(x * v->stride_x, v->pad_left, v->fx, v->ix);
    const uint32_t row = v->fx * v->c, in_row = v->ix * v->in_pitch;
    const uint8_t *from = (const uint8_t *)v->in + rows.at * in_row + columns.at * v->in_pitch;
    const bool whole = columns.count == v->fx;
    if (!whole || rows.count != v->fy) {
        htvm_fill_words(to, 0, c->copied.words);
    }
    to += rows.tap * row + columns.tap * v->c;
    for (uint32_t i = 0; i < rows.count; i++, from += in_row, to += row) {
        if (v->in_pitch != v->c) {
            for (uint32_t j = 0; j < columns.count; j++) {
                htvm_copy(to + j * v->c, from + j * v->in_pitch, v->c);
            }
        } else if (whole && rows.count == v->fy) {
            /* What is copied beyond the row is overwritten, or multiplied by 0. */
            htvm_copy_words(to, from, cluster_words(row));
        } else {
            htvm_copy(to, from, columns.count * v->c);
        }
    }
}

/* Returns how many pixels from (y, x) on, at most `most`, need no copies. */
static uint32_t direct_pixels(const convolution_t *c, uint32_t y, uint32_t x, uint32_t most)
{
    if (!c->any_direct || y < c->rows.begin || y >= c->rows.end || x < c->columns.begin ||
        x >= c->columns.end) {
        return 0;
    }
    const uint32_t left = c->columns.end - x;
    return left < most ? left : most;
}

static void pixels(const convolution_t *c, cluster_share_t part, uint8_t *out)
{
    const cluster_conv_t *const v = c->conv;
    const uint32_t out_pitch = v->out_pitch;
    uint32_t y = part.begin / v->ox, x = part.begin - y * v->ox, left = part.end - part.begin;
    while (left != 0) {
        uint32_t count = direct_pixels(c, y, x, left);
        if (count >= 4 || (count != 0 && count == left)) {
            count = count == left ? count : count & ~3u;
            const uint32_t row = y * v->stride_y - v->pad_top, column = x * v->stride_x - v->pad_left;
            htvm_quads(&c->direct,
                       (const uint8_t *)v->in + (row * v->ix + column) * v->in_pitch, out, count);
            x += count;
        } else {
            count = left < 4u ? left : 4u;
            for (uint32_t i = 0; i < count; i++) {
                copy_window(c, y, x, c->scratch + i * c->copied.in_pixel);
                if (++x == v->ox) {
                    x = 0;
                    y++;
                }
            }
            htvm_quads(&c->copied, c->scratch, out, count);
        }
        if (x == v->ox) {
            x = 0;
            y++;
        }
        out += count * out_pitch;
        left -= count;
    }
}

void cluster_conv2d(const void *args, uint32_t core, uint32_t cores)
{
    const cluster_conv_t *const v = args;
    const uint32_t row = v->fx * v->c, words = cluster_words(v->fy * row);
    const cluster_part_t part = cluster_split(v->oy * v->ox, cluster_words(v->k), core, cores);
    const uint32_t first = HTVM_QUAD * part.quads.begin, end = HTVM_QUAD * part.quads.end;
    if (part.pixels.begin >= part.pixels.end || first >= end) {
        return;
    }
    const htvm_quads_t copied = {
        .quads = (const uint8_t *)v->weights + part.quads.begin * htvm_quad_bytes(words),
        .k = (end < v->k ? end : v->k) - first,
        .taps = 1,
        .words = words,
        .in_tap = 4u * words,
        .in_pixel = 4u * words,
        .out_pixel = v->out_pitch,
        .out_channel = 1,
        .low = v->requant.low,
        .high = v->requant.high,
        .scaling = (v->flags & CLUSTER_WIDE) != 0 ? HTVM_QUADS_WIDE : HTVM_QUADS_NARROW,
        .in_unsigned = (v->flags & CLUSTER_IN_UNSIGNED) != 0,
    };
    convolution_t c = {
        .conv = v,
        .direct = copied,
        .copied = copied,
        .scratch = (uint8_t *)v->scratch + core * cluster_conv2d_scratch(v->fy * row),
        .any_direct = (v->fx == 1 || v->in_pitch == v->c) && (v->fy == 1 || row % 4u == 0),
        .rows = inside(v->oy, v->stride_y, v->pad_top, v->fy, v->iy),
        .columns = inside(v->ox, v->stride_x, v->pad_left, v->fx, v->ix),
    };
    c.direct.taps = v->fy;
    c.direct.words = cluster_words(row);
    c.direct.in_tap = v->ix * v->in_pitch;
    c.direct.in_pixel = v->stride_x * v->in_pitch;
    uint8_t *const out = (uint8_t *)v->out + part.pixels.begin * v->out_pitch + first;
    const bool is_matrix = v->fy == 1 && v->fx == 1 && v->stride_y == 1 && v->stride_x == 1 &&
                           v->pad_top == 0 && v->pad_left == 0 && v->ox == v->ix && v->oy <= v->iy;
    if (is_matrix) {
        htvm_quads(&c.direct, (const uint8_t *)v->in + part.pixels.begin * v->in_pitch, out,
                   part.pixels.end - part.pixels.begin);
    } else {
        pixels(&c, part.pixels, out);
    }
}
