/* Convolutions as products whose rows are pixels beside each other; private to the kernels. */
#ifndef CLUSTER_CONVOLVE_H
#define CLUSTER_CONVOLVE_H

#include "cluster_product.h"

/* The taps of one output coordinate that are inside the input: where they begin in the filter and
 * in the input, and their number. */
typedef struct {
    uint32_t tap, at, count;
} cluster_window_t;

CLUSTER_INLINE cluster_window_t cluster_window(uint32_t out, uint32_t stride, uint32_t pad,
                                            uint32_t taps, uint32_t size)
{
    const uint32_t start = out * stride; /* position in the input, including its padding */
    const uint32_t tap = start < pad ? pad - start : 0, at = start < pad ? 0 : start - pad;
    cluster_window_t window = {0, 0, 0};
    if (tap < taps && at < size) {
        const uint32_t left = taps - tap, there = size - at;
        window.tap = tap;
        window.at = at;
        window.count = left < there ? left : there;
    }
    return window;
}

/* Returns how many output columns from x on, before `end`, have all taps; 1 if x has not. */
CLUSTER_INLINE uint32_t cluster_run_of(const cluster_conv_t *v, uint32_t x, uint32_t end)
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
CLUSTER_INLINE void cluster_convolve(const cluster_conv_t *v, cluster_product_t p, uint32_t tap,
                                   uint32_t core, uint32_t cores,
                                   void (*run)(const cluster_product_t *))
{
    cluster_share_t all = {0, v->oy * v->ox};
    p.columns.begin = 0;
    p.columns.end = v->k;
    if (cluster_by_columns(all.end, v->k, cores)) {
        p.columns = cluster_share(v->k, core, cores);
    } else {
        all = cluster_share(all.end, core, cores);
    }
    p.in_row = v->stride_x * v->in_pitch;
    p.in_y = v->ix * v->in_pitch;
    p.in_x = v->in_pitch;
    p.out_row = v->out_pitch;
    p.out_column = 1;
    for (uint32_t pixel = all.begin; pixel < all.end; pixel += p.rows) {
        const uint32_t y = pixel / v->ox, x = pixel - y * v->ox, left = all.end - pixel;
        const cluster_window_t rows = cluster_window(y, v->stride_y, v->pad_top, v->fy, v->iy);
        const cluster_window_t first = cluster_window(x, v->stride_x, v->pad_left, v->fx, v->ix);
        p.in = (const uint8_t *)v->in + (rows.at * v->ix + first.at) * v->in_pitch;
        p.weights = v->weights + (rows.tap * v->fx + first.tap) * tap;
        p.out = (uint8_t *)v->out + pixel * v->out_pitch;
        p.taps_y = first.count != 0 ? rows.count : 0;
        p.taps_x = first.count;
        p.rows = cluster_run_of(v, x, v->ox - x < left ? v->ox : x + left);
        run(&p);
    }
}

#endif
