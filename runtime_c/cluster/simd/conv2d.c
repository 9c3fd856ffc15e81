/* cluster_conv2d for cores with SIMD.
 *
 * As pixels lie side by side, the taps of a row are one run of bytes, and windows are read where they
 * are; rows of taps outside of the input are left out.  Pixels whose windows leave the input on the
 * left or right read a copy of its rows with zeros beside them.  If the rows of a filter are no
 * multiple of words, or pixels are not in one row, whole windows are copied. */
#include <stddef.h>

#include "cluster_kernels.h"
#include "cluster_records.h"
#include "cluster_split.h"
#include "htvm_bytes.h"
#include "htvm_quads.h"

#define PIXELS 4u

typedef struct {
    const cluster_conv_t *conv;
    htvm_quads_t runs, copied; /* on rows of the input, and on windows in scratch memory */
    htvm_windows_t windows;      /* of the input, without gaps between pixels */
    uint8_t *scratch;
    uint32_t most_windows; /* in scratch memory */
    bool has_runs;
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

static window_t rows_of(const cluster_conv_t *v, uint32_t y)
{
    return window_of(y * v->stride_y, v->pad_top, v->fy, v->iy);
}

/* Copies the windows of `count` pixels from column x on, which are inside. */
static void copy_inside(const convolution_t *c, uint32_t y, uint32_t x, uint32_t count, uint8_t *to)
{
    const cluster_conv_t *const v = c->conv;
    const uint32_t row = y * v->stride_y - v->pad_top, column = x * v->stride_x - v->pad_left;
    const uint8_t *from = (const uint8_t *)v->in + (row * v->ix + column) * v->in_pitch;
    htvm_copy_windows(&c->windows, to, from, count);
}

/* Copies a window of which rows are outside, but no columns. */
static void copy_some_rows(const convolution_t *c, window_t rows, uint32_t x, uint8_t *to)
{
    const cluster_conv_t *const v = c->conv;
    const uint32_t row = c->windows.out_row, end = (rows.tap + rows.count) * row;
    const uint32_t column = x * v->stride_x - v->pad_left;
    htvm_windows_t windows = c->windows;
    windows.rows = rows.count;
    htvm_fill_words(to, 0, cluster_words(rows.tap * row));
    if (rows.count != 0) {
        htvm_copy_windows(&windows, to + rows.tap * row,
                          (const uint8_t *)v->in + (rows.at * v->ix + column) * v->in_pitch, 1);
    }
    /* This may begin the next window, which is written later. */
    htvm_fill_words(to + end, 0, cluster_words(4u * c->copied.words - end));
}

/* Copies the window of a pixel that leaves the input, or has gaps. */
static void copy_window(const convolution_t *c, uint32_t y, uint32_t x, uint8_t *to)
{
    const cluster_conv_t *const v = c->conv;
    const window_t rows = rows_of(v, y);
    const window_t columns = window_of(x * v->stride_x, v->pad_left, v->fx, v->ix);
    const uint32_t row = v->fx * v->c, in_row = v->ix * v->in_pitch;
    const uint8_t *from = (const uint8_t *)v->in + (rows.at * v->ix + columns.at) * v->in_pitch;
    if (columns.count == v->fx && v->in_pitch == v->c) {
        copy_some_rows(c, rows, x, to);
        return;
    }
    htvm_fill_words(to, 0, c->copied.words);
    to += rows.tap * row + columns.tap * v->c;
    for (uint32_t i = 0; i < rows.count; i++, from += in_row, to += row) {
        if (v->in_pitch == v->c) {
            htvm_copy(to, from, columns.count * v->c);
            continue;
        }
        for (uint32_t j = 0; j < columns.count; j++) {
            htvm_copy(to + j * v->c, from + j * v->in_pitch, v->c);
        }
    }
}

/* Returns how many pixels from column x on, at most `most`, have windows inside. */
static uint32_t inside_from(cluster_share_t columns, uint32_t x, uint32_t most)
{
    if (x < columns.begin || x >= columns.end) {
        return 0;
    }
    return columns.end - x < most ? columns.end - x : most;
}

/* Computes `count` pixels from copies of their windows. */
static void from_windows(const convolution_t *c, uint32_t y, uint32_t x, uint32_t count,
                         uint8_t *out)
{
    const cluster_conv_t *const v = c->conv;
    uint8_t *to = c->scratch;
    uint32_t left = count;
    while (left != 0) {
        uint32_t n = 0;
        if (y >= c->rows.begin && y < c->rows.end && v->in_pitch == v->c) {
            n = inside_from(c->columns, x, left);
        }
        if (n != 0) {
            copy_inside(c, y, x, n, to);
        } else {
            n = 1;
            copy_window(c, y, x, to);
        }
        to += n * c->copied.in_pixel;
        left -= n;
        x += n;
        if (x == v->ox) {
            x = 0;
            y++;
        }
    }
    htvm_quads(&c->copied, c->scratch, out, count);
}

/* Copies the rows that the windows of four pixels from column x on need, with zeros beside them. */
static void copy_rows(const convolution_t *c, window_t rows, uint32_t x)
{
    const cluster_conv_t *const v = c->conv;
    const uint32_t columns = (PIXELS - 1u) * v->stride_x + v->fx;
    const window_t window = window_of(x * v->stride_x, v->pad_left, columns, v->ix);
    const uint32_t bytes = window.count * v->c, row = columns * v->c;
    const uint8_t *from = (const uint8_t *)v->in + (rows.at * v->ix + window.at) * v->c;
    uint8_t *to = c->scratch;
    for (uint32_t i = 0; i < rows.count; i++, from += v->ix * v->c, to += row) {
        htvm_fill_words(to, 0, window.tap * v->c / 4u);
        htvm_copy_words(to + window.tap * v->c, from, bytes / 4u);
        htvm_fill_words(to + window.tap * v->c + bytes, 0, (row - bytes - window.tap * v->c) / 4u);
    }
}

/* Computes `count` pixels beside each other; if any of their windows leaves the input, these are
 * four. */
static void from_rows(convolution_t *c, window_t rows, uint32_t x, uint32_t count, bool is_inside,
                      uint8_t *out)
{
    const cluster_conv_t *const v = c->conv;
    const uint32_t tap = 16u * c->runs.words;
    const uint32_t column = x * v->stride_x - v->pad_left;
    const uint8_t *in = c->scratch;
    c->runs.taps = rows.count;
    c->runs.before = rows.tap * tap;
    c->runs.after = (v->fy - rows.tap - rows.count) * tap;
    c->runs.in_tap = ((PIXELS - 1u) * v->stride_x + v->fx) * v->c;
    if (is_inside) {
        in = (const uint8_t *)v->in + (rows.at * v->ix + column) * v->in_pitch;
        c->runs.in_tap = v->ix * v->in_pitch;
    } else {
        copy_rows(c, rows, x);
    }
    htvm_quads(&c->runs, in, out, count);
}

static void pixels(convolution_t *c, cluster_share_t part, uint8_t *out)
{
    const cluster_conv_t *const v = c->conv;
    /* A row's copy is to be no longer than the windows' copies. */
    const bool has_copies = v->fx >= v->stride_x && v->in_pitch == v->c && v->c % 4u == 0 &&
                            c->most_windows >= PIXELS;
    uint32_t y = part.begin / v->ox, x = part.begin - y * v->ox, left = part.end - part.begin;
    while (left != 0) {
        const uint32_t in_row = v->ox - x < left ? v->ox - x : left;
        uint32_t count = 0;
        if (c->has_runs) {
            const window_t rows = rows_of(v, y);
            count = rows.count == 0 ? 0 : inside_from(c->columns, x, left);
            count = count == left ? count : count & ~(PIXELS - 1u);
            if (count != 0) {
                from_rows(c, rows, x, count, true, out);
            } else if (has_copies && rows.count != 0 && in_row >= PIXELS) {
                count = PIXELS;
                from_rows(c, rows, x, count, false, out);
            }
        }
        if (count == 0) {
            const bool few = c->has_runs && c->most_windows > PIXELS;
            const uint32_t most = few ? PIXELS : c->most_windows;
            count = left < most ? left : most;
            from_windows(c, y, x, count, out);
        }
        x += count;
        while (x >= v->ox) {
            x -= v->ox;
            y++;
        }
        out += count * v->out_pitch;
        left -= count;
    }
}

void cluster_conv2d(const void *args, uint32_t core, uint32_t cores)
{
    const cluster_conv_t *const v = args;
    if (v->workers != 0) {
        cores = v->workers;
    }
    if (core >= cores) {
        return;
    }
    const uint32_t row = v->fx * v->c, words = cluster_words(v->fy * row);
    const bool has_runs = (v->fx == 1 || v->in_pitch == v->c) && (v->fy == 1 || row % 4u == 0);
    cluster_work_t work = cluster_quad_work(v->oy * v->ox, cluster_words(v->k), words);
    if (v->fy * v->fx != 1) {
        work.shared = 16u * words + 150u; /* for copies, of some blocks or all */
    }
    const cluster_part_t part = cluster_split(&work, core, cores);
    const cluster_share_t all = cluster_in_fours(part.blocks, v->oy * v->ox);
    const cluster_share_t channels = cluster_in_fours(part.items, v->k);
    if (all.begin >= all.end || channels.begin >= channels.end) {
        return;
    }
    const htvm_quads_t copied = {
        .quads = (const uint8_t *)v->weights + part.items.begin * htvm_quad_bytes(words),
        .k = channels.end - channels.begin,
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
        .runs = copied,
        .copied = copied,
        .scratch = v->scratch == NULL ? NULL /* matrices need none */
                                      : (uint8_t *)v->scratch +
                                            core * cluster_conv2d_scratch(v->fy * row, v->windows),
        .windows = {v->fy, cluster_words(row), v->ix * v->in_pitch, row,
                    v->stride_x * v->in_pitch, 4u * words},
        .most_windows = v->windows != 0 ? v->windows : cluster_conv2d_windows(v->fy * row),
        .has_runs = has_runs,
        .rows = inside(v->oy, v->stride_y, v->pad_top, v->fy, v->iy),
        .columns = inside(v->ox, v->stride_x, v->pad_left, v->fx, v->ix),
    };
    c.runs.taps = v->fy;
    c.runs.words = cluster_words(row);
    c.runs.in_pixel = v->stride_x * v->in_pitch;
    uint8_t *const out = (uint8_t *)v->out + all.begin * v->out_pitch + channels.begin;
    const bool is_matrix = v->fy == 1 && v->fx == 1 && v->stride_y == 1 && v->stride_x == 1 &&
                           v->pad_top == 0 && v->pad_left == 0 && v->ox == v->ix && v->oy <= v->iy;
    if (is_matrix) {
        htvm_quads(&c.runs, (const uint8_t *)v->in + all.begin * v->in_pitch, out,
                   all.end - all.begin);
    } else {
        pixels(&c, all, out);
    }
}
