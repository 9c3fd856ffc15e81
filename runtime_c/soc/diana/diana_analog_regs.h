/* Register map of the analog core: assumed, like that of the other devices (diana_regs.h). */
#ifndef DIANA_ANALOG_REGS_H
#define DIANA_ANALOG_REGS_H

#include "diana_regs.h"

/* The registers from SHAPE0 to PARTIAL hold the image of the driver's descriptor, so that a driver
 * copies words:
 *
 *             bits 0..7         8..15        16..23       24..31
 *   SHAPE0    k (16 bits)                    c (16 bits)
 *   SHAPE1    iy                             ix
 *   SHAPE2    oy                             ox
 *   SHAPE3    fy                fx           stride       pad_top (signed)
 *   SHAPE4    pad_left (sgn)    gain         shift        clip (DIANA_ANALOG_CLIP_*) */
#define DIANA_ANALOG_SHAPE0 0x10u
#define DIANA_ANALOG_SHAPE1 0x14u
#define DIANA_ANALOG_SHAPE2 0x18u
#define DIANA_ANALOG_SHAPE3 0x1Cu
#define DIANA_ANALOG_SHAPE4 0x20u
#define DIANA_ANALOG_IN 0x24u      /* byte offset in L1 */
#define DIANA_ANALOG_OUT 0x28u     /* byte offset in L1 */
#define DIANA_ANALOG_PARTIAL 0x2Cu /* byte offset in L1 of the partial sums */
#define DIANA_ANALOG_WEIGHTS 0x30u /* device address in L2 */
#define DIANA_ANALOG_MODE 0x34u    /* output columns at a time | FIRST | LAST | VECTOR | SLICED */
#define DIANA_ANALOG_SLICE 0x38u   /* of a slice: first column | columns of the image << 16 */
#define DIANA_ANALOG_START 0x3Cu   /* writing anything starts */

/* Which pass this is.  The first does not read the partial sums; the last does not write them, but
 * requantizes them into the output.  A single pass is both. */
#define DIANA_ANALOG_COLUMNS_MASK 0x0Fu
#define DIANA_ANALOG_FIRST 0x10u
#define DIANA_ANALOG_LAST 0x20u
/* A matrix times a vector: all sizes except k and c are 1, and input, output and partial sums are
 * contiguous; the output is zeroed up to a multiple of the row pitch. */
#define DIANA_ANALOG_VECTOR 0x40u
/* For a vector: the k outputs are a slice of the image's columns; the whole image is loaded. */
#define DIANA_ANALOG_SLICED 0x80u

/* The range of the output. */
#define DIANA_ANALOG_CLIP_RELU 1u  /* starts at 0 */
#define DIANA_ANALOG_CLIP_SHORT 2u /* limited to 7 bits, like the core's inputs */

/* This register exists only in the simulation: noise of the array.  It can be written only before
 * the first cycle, so by a simulator, but not by firmware. */
#define DIANA_ANALOG_NOISE DIANA_ANALOG_NOISE_REGISTER /* standard deviation, steps / 65536 */
#define DIANA_ANALOG_SEED DIANA_ANALOG_SEED_REGISTER

#endif
