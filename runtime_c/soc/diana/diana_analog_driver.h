/* DIANA: driver of the analog core.
 *
 * L1 places are byte offsets in L1; activations are stored as the digital core has them
 * (diana_driver.h).  Return values are 0, or the DIANA_ERROR_* code with which the core refused.
 */
#ifndef DIANA_ANALOG_DRIVER_H
#define DIANA_ANALOG_DRIVER_H

#include <stdint.h>

#include "diana_analog_regs.h"

/* One conv tile.  Of input values in [-64, 63] and weights in {-1, 0, 1} the array makes, in one
 * pass over all channels or in passes over c_pass channels each (the last has what is left),
 * v[k][y][x] = clip(sum in[c][y*stride - pad_top + i][x*stride - pad_left + j] * w[k][c][i][j]
 * >> gain) to [-32, 31].  The passes are summed in int16, and of the sum becomes
 * out = clip((v*mul[k] + add[k]) >> shift).  Positions outside the iy * ix tile read as 0; a
 * negative pad crops leading rows or columns.  Rows of `in` have the pitch of ix rounded up to 16,
 * rows of `out` that of ox; the core zeroes the columns from ox to the pitch.  Several passes keep
 * partial sums, int16 [k][oy][ox rounded up to 16].  Of a vector (DIANA_ANALOG_VECTOR) the bytes
 * follow each other; c_pass then is a multiple of 16.
 * The first eight words are part of the register map (diana_analog_regs.h). */
typedef struct {
    uint16_t k, c, iy, ix, oy, ox;
    uint8_t fy, fx, stride;
    int8_t pad_top, pad_left;
    uint8_t gain; /* right shift before the converter */
    uint8_t shift;
    uint8_t clip; /* DIANA_ANALOG_CLIP_* */
    uint32_t in, out, partial;
    uint16_t mode;       /* output columns computed at a time: 1, 2, 4 or 8; DIANA_ANALOG_VECTOR */
    uint16_t c_pass;     /* of several passes */
    uint32_t pass_bytes; /* of several passes: image of one of c_pass channels */
} diana_analog_conv_t;

/* Weights in L2: the images of the array for all passes, then mul and add of each k, int16 both.
 *
 * With u columns at a time the array has a column u' * k + k' for output column u' of channel k',
 * and a row (c * fy + i) * (fx + u - 1) + j' for input column j' of their common window.  Rows R =
 * used rows rounded up to 288, columns N = used columns rounded up to 128; the image is two bit
 * planes [R][N / 32] of 32-bit words, lowest column in the lowest bit.  Row r is stored as row
 * R - 1 - r.  A cell has the sign of its weight, but where column + row / 64 is odd the opposite; a
 * positive cell has its bit in the first plane, a negative in the second, 0 in none. */
int32_t diana_analog_conv2d(const diana_analog_conv_t *t, const void *weights);
/* The same in three steps.  Prepare writes registers, which the core at work does not notice. */
void diana_analog_conv2d_prepare(const diana_analog_conv_t *t, const void *weights);
void diana_analog_conv2d_start(void);
int32_t diana_analog_conv2d_finish(void);

/* Two passes or more: start runs the first, finish the others; it sets up each while the one before
 * runs, and must be given what was prepared. */
int32_t diana_analog_passes(const diana_analog_conv_t *t, const void *weights);
void diana_analog_passes_prepare(const diana_analog_conv_t *t, const void *weights);
void diana_analog_passes_start(void);
int32_t diana_analog_passes_finish(const diana_analog_conv_t *t, const void *weights);

/* A matrix times a vector: a trigger makes up to DIANA_ANALOG_DENSE_MAX_K outputs, for which it
 * loads the image of all of them again.  One pass or several, c_pass always given; start runs the
 * first trigger, finish the others, as above.  The sums between passes are those of a trigger: the
 * place for them needs 2 bytes for each of its outputs. */
int32_t diana_analog_dense(const diana_analog_conv_t *t, const void *weights);
void diana_analog_dense_prepare(const diana_analog_conv_t *t, const void *weights);
void diana_analog_dense_start(void);
int32_t diana_analog_dense_finish(const diana_analog_conv_t *t, const void *weights);

#endif
