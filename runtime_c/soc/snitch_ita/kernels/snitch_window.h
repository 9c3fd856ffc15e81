/* Which taps of a filter meet the input; private to the kernels. */
#ifndef SNITCH_WINDOW_H
#define SNITCH_WINDOW_H

#include "snitch_parts.h"

/* Of one output coordinate: where its taps inside the input begin, in the filter and in the input,
 * and how many they are. */
typedef struct {
    uint32_t tap, at, count;
} snitch_window_t;

SNITCH_INLINE snitch_window_t snitch_window(uint32_t out, uint32_t stride, uint32_t pad,
                                            uint32_t taps, uint32_t size)
{
    const uint32_t start = out * stride; /* in an input with its padding */
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

/* Output columns from x on, before `end`, whose windows have all taps, or 1 if x has not. */
SNITCH_INLINE uint32_t snitch_run(const snitch_conv_t *v, uint32_t x, uint32_t end)
{
    uint32_t next = x + 1;
    if (x * v->stride_x >= v->pad_left && x * v->stride_x - v->pad_left + v->fx <= v->ix) {
        while (next < end && next * v->stride_x - v->pad_left + v->fx <= v->ix) {
            next++;
        }
    }
    return next - x;
}

#endif
