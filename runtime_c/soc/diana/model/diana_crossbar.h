/* The arithmetic of the analog core on L1 contents and array images, without checks of addresses
 * and without time. */
#ifndef DIANA_CROSSBAR_H
#define DIANA_CROSSBAR_H

#include <stdbool.h>
#include <stdint.h>

#include "htvm_soc.h"

typedef struct {
    uint32_t k, c, iy, ix, oy, ox, fy, fx, stride;
    int32_t pad_top, pad_left;
    uint32_t gain, shift;
    int32_t low, high;            /* of the output */
    uint32_t unroll;              /* output columns at a time */
    uint32_t rows, columns;       /* rows and columns of the array that are in use */
    uint32_t first_column;        /* number of columns that are computed */
    uint32_t in_pitch, out_pitch; /* bytes of a row */
    uint32_t in_map, out_map;     /* bytes from one channel to the next */
    bool first, last, vector, sliced;
} diana_pass_t;

/* Noise of the array: every conversion draws a number. */
typedef struct {
    uint32_t deviation; /* standard deviation, in 1/65536 of the converter's step */
    uint64_t state;
} diana_noise_t;

/* Returns the bytes of an array's image with this number of rows and columns in use. */
uint32_t diana_crossbar_bytes(uint32_t rows, uint32_t columns);

/* Unpacks the weights of an image, [rows][columns].  Returns false if a cell is both positive and
 * negative; `row` and `column` then say which. */
bool diana_crossbar_decode(const uint8_t *image, uint32_t rows, uint32_t columns, int8_t *weights,
                           uint32_t *row, uint32_t *column);

/* `in`, `out` and `partial` point into L1 at 16-byte boundaries; `parameters` to mul and add of
 * each column, int16, for the last pass.  Returns false when the simulating machine has no memory
 * left. */
bool diana_crossbar_conv(const diana_pass_t *p, const uint8_t *in, const int8_t *weights,
                         const uint8_t *parameters, uint8_t *partial, uint8_t *out,
                         diana_noise_t *noise);

#endif
