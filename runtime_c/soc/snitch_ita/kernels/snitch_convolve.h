/* Convolutions as products whose rows are pixels beside each other; private to the kernels. */
#ifndef SNITCH_CONVOLVE_H
#define SNITCH_CONVOLVE_H

#include "snitch_product.h"

/* The taps of one output coordinate that are inside the input: where they begin in the filter and
 * in the input, and their number. */
typedef struct {
    uint32_t tap, at, count;
} snitch_window_t;

SNITCH_INLINE snitch_window_t snitch_window(uint32_t out, uint32_t stride, uint32_t pad,
                                            uint32_t taps, uint32_t size)
{
    const uint32_t start = out * stride; /* position in the input, including its padding */
    const uint32_t tap = start < pad ? pad - start : 0, at = start < pad ? 0 : start - pad;
    snitch_window_t window = {0, 0, 0};
    if (tap < taps && at < size) {
        const uint32_t left = taps - tap, there = size - at;
        window.tap = tap;
        window.at = at;
        window.count = left < there ? left : there;
    }
    return window;
}

/* Returns how many output columns from x on, before `end`, have all taps; 1 if x has not. */
SNITCH_INLINE uint32_t snitch_run_of(const snitch_conv_t *v, uint32_t x, uint32_t end)
{
    uint32_t next = x + 1;
    if (x * v->stride_x >= v->pad_left && x * v->stride_x - v->pad_left + v->fx <= v->ix) {
        while (next < end && next * v->stride_x - v->pad_left + v->fx <= v->ix) {
            next++;
        }
    }
    return next - x;
}

/* Gives this core's part of a convolution to `run`, as products of pixels with the same taps.
 * The caller has set what all of them have in common, but for the steps in the input and where
 * the result is; from one tap to the next it is `tap` bytes in the weights. */
SNITCH_INLINE void snitch_convolve(const snitch_conv_t *v, snitch_product_t p, uint32_t tap,
                                   uint32_t core, uint32_t cores,
                                   void (*run)(const snitch_product_t *))
{
    snitch_share_t all = {0, v->oy * v->ox};
    p.columns.begin = 0;
    p.columns.end = v->k;
    if (snitch_by_columns(all.end, v->k, cores)) {
        p.columns = snitch_share(v->k, core, cores);
    } else {
        all = snitch_share(all.end, core, cores);
    }
    p.in_row = v->stride_x * v->in_pitch;
    p.in_y = v->ix * v->in_pitch;
    p.in_x = v->in_pitch;
    p.out_row = v->out_pitch;
    p.out_column = 1;
    for (uint32_t pixel = all.begin; pixel < all.end; pixel += p.rows) {
        const uint32_t y = pixel / v->ox, x = pixel - y * v->ox, left = all.end - pixel;
        const snitch_window_t rows = snitch_window(y, v->stride_y, v->pad_top, v->fy, v->iy);
        const snitch_window_t first = snitch_window(x, v->stride_x, v->pad_left, v->fx, v->ix);
        p.in = (const uint8_t *)v->in + (rows.at * v->ix + first.at) * v->in_pitch;
        p.weights = v->weights + (rows.tap * v->fx + first.tap) * tap;
        p.out = (uint8_t *)v->out + pixel * v->out_pitch;
        p.taps_y = first.count != 0 ? rows.count : 0;
        p.taps_x = first.count;
        p.rows = snitch_run_of(v, x, v->ox - x < left ? v->ox : x + left);
        run(&p);
    }
}

#endif
