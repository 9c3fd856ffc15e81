/* DIANA: driver of the analog core.
 *
 * L1 places are byte offsets in L1; activations are stored as the digital core has them
 * (diana_driver.h).  Return values are 0, or the DIANA_ERROR_* code with which the core refused.
 */
#ifndef DIANA_ANALOG_DRIVER_H
#define DIANA_ANALOG_DRIVER_H

#include <stdint.h>

#include "diana_analog_regs.h"

/* One conv tile.  Inputs are in [-64, 63], weights in {-1, 0, 1}.  In one pass over all channels,
 * or in passes over c_pass channels each (the last takes the rest), the array computes
 * v[k][y][x] = clip(sum in[c][y*stride - pad_top + i][x*stride - pad_left + j] * w[k][c][i][j]
 * >> gain) to [-32, 31].  The results of all passes are added in int16, and the output is
 * out = clip((v*mul[k] + add[k]) >> shift).  Positions outside the iy * ix tile read as 0; a
 * negative pad crops leading rows or columns.  Rows of `in` have a pitch of ix rounded up to 16,
 * rows of `out` one of ox rounded up to 16; the core zeroes the columns from ox to the pitch.  If
 * there are several passes, partial sums are kept as int16 [k][oy][ox rounded up to 16].  The bytes
 * of a vector (DIANA_ANALOG_VECTOR) are contiguous; then c_pass is a multiple of 16.
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
    uint16_t c_pass;     /* channels per pass; only if there are several passes */
    uint32_t pass_bytes; /* image of a pass with c_pass channels; only if there are several */
} diana_analog_conv_t;

/* Weights in L2: the images of the array for all passes, then mul and add of each k, both int16.
 *
 * If u columns are computed at a time, output column u' of channel k' is column u' * k + k' of the
 * array, and input column j' of their common window is its row (c * fy + i) * (fx + u - 1) + j'.
 * With R, the used rows rounded up to 288, and N, the used columns rounded up to 128, the image has
 * two bit planes [R][N / 32] of 32-bit words, with the lowest column in the lowest bit.  Row r is
 * stored as row R - 1 - r.  A cell has the sign of its weight, or the opposite sign if
 * column + row / 64 is odd; the bit of a positive cell is set in the first plane, that of a
 * negative cell in the second, and that of a zero in neither. */
int32_t diana_analog_conv2d(const diana_analog_conv_t *t, const void *weights);
/* The same in three steps.  Prepare writes registers, which does not disturb a running core. */
void diana_analog_conv2d_prepare(const diana_analog_conv_t *t, const void *weights);
void diana_analog_conv2d_start(void);
int32_t diana_analog_conv2d_finish(void);

/* For two or more passes: start runs the first, finish the others; it sets up each pass while the
 * one before runs, and takes the same arguments as prepare. */
int32_t diana_analog_passes(const diana_analog_conv_t *t, const void *weights);
void diana_analog_passes_prepare(const diana_analog_conv_t *t, const void *weights);
void diana_analog_passes_start(void);
int32_t diana_analog_passes_finish(const diana_analog_conv_t *t, const void *weights);

/* A matrix times a vector.  A trigger computes up to DIANA_ANALOG_DENSE_MAX_K outputs, and loads
 * the image of all outputs again.  There may be one pass or several; c_pass is always given.  Start
 * runs the first trigger, finish the others, as above.  Partial sums are those of one trigger, and
 * need 2 bytes for each of its outputs. */
int32_t diana_analog_dense(const diana_analog_conv_t *t, const void *weights);
void diana_analog_dense_prepare(const diana_analog_conv_t *t, const void *weights);
void diana_analog_dense_start(void);
int32_t diana_analog_dense_finish(const diana_analog_conv_t *t, const void *weights);

#endif
