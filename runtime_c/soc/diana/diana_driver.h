/* DIANA: driver of the DMA and the digital core.
 *
 * There are two ways to use a device.  diana_dma_in, diana_digital_conv2d and so on start it and
 * poll until it is done.  The functions *_start return at once, so that DMA, core and host work at
 * the same time; diana_dma_wait and *_finish then poll.  A core is started in two steps: *_prepare
 * writes its registers, which is allowed while it works on something else, and *_start starts it.
 * If it takes several triggers, *_finish starts the others, and the registers are free for the next
 * *_prepare only after that.  What the host does before it waits costs nothing as long as the
 * device takes longer.
 *
 * Functions that poll return 0, or the DIANA_ERROR_* code (diana_regs.h) with which the device
 * refused; the error of a refused command is returned when it is waited for.  Places in L1 are byte
 * offsets.
 *
 * Activations are stored C-y-x: byte (c*rows + y)*pitch + x with the row pitch rounded up to 16,
 * at the physical index (that index) ^ 3: each aligned group of four bytes is reversed.
 */
#ifndef DIANA_DRIVER_H
#define DIANA_DRIVER_H

#include <stdint.h>

#include "diana_layout.h"
#include "diana_regs.h"

/* A block of channels * rows rows of `bytes` bytes; strides in bytes.  L1 strides and offsets are
 * multiples of 16, L2 strides and addresses multiples of 4. */
typedef struct {
    uint32_t channels, rows, bytes;
    uint32_t l2_channel_stride, l2_row_stride, l1_channel_stride, l1_row_stride;
} diana_block_t;

/* L2 -> L1 and L1 -> L2.  Dimensions that are contiguous on both sides are moved as one. */
int32_t diana_dma_in(uint32_t l1, const void *l2, const diana_block_t *block);
int32_t diana_dma_out(void *l2, uint32_t l1, const diana_block_t *block);

/* L2 -> L1 with one command per row, even if rows are contiguous: the published runs move the
 * operands of an add like this. */
int32_t diana_dma_in_rows(uint32_t l1, const void *l2, const diana_block_t *block);

/* Queue the commands of a block, and wait only while the queue is full.  They are executed in the
 * order given; diana_dma_wait waits for all of them. */
void diana_dma_in_start(uint32_t l1, const void *l2, const diana_block_t *block);
void diana_dma_out_start(void *l2, uint32_t l1, const diana_block_t *block);
int32_t diana_dma_wait(void);

/* One conv tile: out[k][y][x] = clip((sum in[c][y*stride - pad_top + i][x*stride - pad_left + j] *
 * w[k][c][i][j] + bias[k]) >> shift) to [-128, 127], or [0, 127] with relu.  Positions outside
 * the iy * ix tile read as 0; a negative pad crops leading rows or columns.  Rows of `in` have
 * the pitch of ix rounded up to 16, rows of `out` that of ox.  The core writes ceil(k/16)*16
 * maps, and zeroes the columns from ox to the pitch.  For depthwise, k is the number of channels,
 * c is ignored, and k + 15 maps are written.
 * The layout is part of the register map (diana_regs.h). */
typedef struct {
    uint16_t k, c, iy, ix, oy, ox;
    uint8_t fy, fx, stride;
    int8_t pad_top, pad_left;
    uint8_t shift, relu;
    uint32_t in, out;
} diana_conv_t;

/* Weights in L2: per block of 16 k [c][fy][fx][16] int8, then 16 biases byte-planar (64 B). */
int32_t diana_digital_conv2d(const diana_conv_t *t, const void *weights);
void diana_digital_conv2d_prepare(const diana_conv_t *t, const void *weights);
void diana_digital_conv2d_start(void);
int32_t diana_digital_conv2d_finish(void);
/* Weights in L2: per block of 4 channels [fy][fx][16] int8, then 16 biases byte-planar (64 B);
 * channel j of a block in lane 4*j of both.  The last channel's load reads up to 12 bytes behind
 * its block, so these must be mapped, too. */
int32_t diana_digital_depthwise(const diana_conv_t *t, const void *weights);
/* There is one trigger per channel: start runs the first, finish the others; it sets up each while
 * the one before runs, and takes the same arguments as prepare. */
void diana_digital_depthwise_prepare(const diana_conv_t *t, const void *weights);
void diana_digital_depthwise_start(void);
int32_t diana_digital_depthwise_finish(const diana_conv_t *t, const void *weights);

/* Depthwise by convolutions over c channels each, the last over those that are left; c is at most
 * the number of lanes.  Weights in L2: per block of c channels [c][fy][fx][16] int8, zero between
 * different channels, then 16 biases byte-planar (64 B).  There is one trigger per block: start
 * runs the first, finish the others, as above. */
void diana_digital_depthwise_blocks_prepare(const diana_conv_t *t, const void *weights);
void diana_digital_depthwise_blocks_start(void);
int32_t diana_digital_depthwise_blocks_finish(const diana_conv_t *t, const void *weights);

/* Dense: k outputs of c inputs; writes ceil(k/16)*16 bytes. */
typedef struct {
    uint16_t k, c;
    uint8_t shift, relu;
    uint32_t in, out;
} diana_dense_t;

/* One block, k <= 16.  Weights in L2: [ceil(c/16)][16 k][16 c] int8, then 16 B per output with its
 * bias in front. */
int32_t diana_digital_dense(const diana_dense_t *t, const void *weights);
/* Any k; the weights of its blocks are contiguous.  There is one trigger per block: start runs the
 * first, finish the others, as for depthwise. */
void diana_digital_dense_prepare(const diana_dense_t *t, const void *weights);
void diana_digital_dense_start(void);
int32_t diana_digital_dense_finish(const diana_dense_t *t, const void *weights);

/* out = clip((a + b) >> shift), byte by byte. */
typedef struct {
    uint32_t elements;
    uint8_t shift, relu;
    uint32_t a, b, out;
} diana_add_t;

int32_t diana_digital_add(const diana_add_t *t);
void diana_digital_add_prepare(const diana_add_t *t);
void diana_digital_add_start(void);
int32_t diana_digital_add_finish(void);

#endif
