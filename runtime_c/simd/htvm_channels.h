/* Depthwise convolutions in HWC.
 *
 * A depthwise convolution sums over neighbours of the same channel.  Four neighbours are a word only
 * after a transposition: here of four rows of four channels, to words of four bytes of a column.  One
 * word of a column serves two or more results above each other, and is kept while the filter moves on
 * to the next column.
 *
 * Each channel has a record, one after another:
 *
 *   int8_t weights[fx][ceil(fy / 4) * 4]; int32_t bias, mul, add, shift;
 *
 * A column's weights are followed by zeros.  If data are uint8, the kernels compute with data - 128, so
 * that 128 times the sum of a channel's weights is a part of its bias.
 */
#ifndef HTVM_CHANNELS_H
#define HTVM_CHANNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "htvm_quads.h"

typedef struct {
    const uint8_t *in; /* iy rows of ix pixels; zeros before, behind and beside it */
    const uint8_t *records;
    uint8_t *out;
    uint8_t *scratch; /* htvm_columns_scratch() bytes, on a word */
    uint32_t c, iy, ix, ox, fy, fx, stride_y, stride_x, pad_top, pad_left;
    uint32_t in_pixel, out_pixel; /* distances in bytes */
    int32_t low, high;
    htvm_quads_scaling_t scaling; /* as of quads */
    bool in_unsigned;
} htvm_columns_t;

/* Returns the bytes of a channel's record. */
static inline uint32_t htvm_column_bytes(uint32_t fy, uint32_t fx)
{
    return 4u * fx * ((fy + 3u) / 4u) + 16u;
}

static inline uint32_t htvm_columns_scratch(uint32_t fx, uint32_t ox, uint32_t stride)
{
    return 32u * ((ox - 1u) * stride + fx) + 64u * ox;
}

/* Computes rows y to end - 1 of the result. */
void htvm_columns(const htvm_columns_t *what, uint32_t y, uint32_t end);

#endif
