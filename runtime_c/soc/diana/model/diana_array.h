/* The arithmetic of the digital core on L1 contents and packed weights, without checks or time. */
#ifndef DIANA_ARRAY_H
#define DIANA_ARRAY_H

#include <stdbool.h>
#include <stdint.h>

#include "htvm_soc.h"

typedef struct {
    uint32_t k, c, iy, ix, oy, ox, fy, fx, stride;
    int32_t pad_top, pad_left;
    uint32_t shift;
    bool relu;
    uint32_t in_pitch, out_pitch;
    uint32_t lanes; /* how many of each block are computed; the maps of the others do not change */
} diana_shape_t;

/* First and last (inclusive) row or column of a tile of `size` that any of `outputs` windows
 * touches; false if none does. */
bool diana_touched(uint32_t size, uint32_t outputs, uint32_t filter, uint32_t stride, int32_t pad,
                   uint32_t *first, uint32_t *last);

/* Rows of the filter that lie inside the tile for output row y. */
uint32_t diana_rows_inside(const diana_shape_t *s, uint32_t y);

/* `in` and `out` point into L1 at 16-byte boundaries, `weights` to the packed weights in L2.
 * Return false when the simulating machine has no memory left. */
bool diana_array_conv(const diana_shape_t *s, const uint8_t *in, const uint8_t *weights,
                      uint8_t *out);
void diana_array_dense(uint32_t c, uint32_t shift, bool relu, const uint8_t *in,
                       const uint8_t *weights, uint8_t *out);
void diana_array_add(uint32_t elements, uint32_t shift, bool relu, const uint8_t *a,
                     const uint8_t *b, uint8_t *out);

#endif
