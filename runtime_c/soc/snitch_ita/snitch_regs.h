/* Register maps of the cluster's DMA and of ITA.
 *
 * Assumed: ours, not the chip's.  All registers are 32 bits wide; offsets count from the device's
 * base address in htvm_soc.h (SNITCH_ITA_DMA_REGISTERS, SNITCH_ITA_ITA_REGISTERS).  Written values
 * are kept until they are overwritten; a start takes them at once, so they may be written again
 * while it runs.  Addresses are those the harts see, in L1 (the TCDM) as in L2.
 *
 * Both devices count their orders, so that a program can wait for one while others are under way:
 * order number n, which STARTED was after its start, is done once (int32_t)(COMPLETED - n) >= 0.
 */
#ifndef SNITCH_REGS_H
#define SNITCH_REGS_H

#include "htvm_soc.h"

/* Both devices have these. */
#define SNITCH_REG_STATUS 0x00u    /* read: SNITCH_STATUS_*; write: clear the error */
#define SNITCH_REG_ERROR 0x04u     /* read: SNITCH_ERROR_* */
#define SNITCH_REG_ROOM 0x08u      /* read: how many more orders may be given now */
#define SNITCH_REG_STARTED 0x0Cu   /* read: orders taken since reset, modulo 2^32 */
#define SNITCH_REG_COMPLETED 0x10u /* read: orders done or dropped since reset, modulo 2^32 */

#define SNITCH_STATUS_IDLE 0u
#define SNITCH_STATUS_BUSY 1u /* until the last order is done */
#define SNITCH_STATUS_ERROR 2u

/* Why a device refused an order; also the drivers' return values. */
#define SNITCH_ERROR_NONE 0u
#define SNITCH_ERROR_BUSY 1u      /* given more orders than it holds */
#define SNITCH_ERROR_ALIGNMENT 2u /* misaligned address or stride */
#define SNITCH_ERROR_RANGE 3u     /* outside L1, or not mapped in L2 */
#define SNITCH_ERROR_PARAMETER 4u /* a size, shift, stride or mode the device does not have */
#define SNITCH_ERROR_OVERLAP 5u   /* result overlaps operand */
#define SNITCH_ERROR_OPERATION 6u /* unknown operation or register */
#define SNITCH_ERROR_RACE 7u      /* touches bytes that a running device reads or writes */
#define SNITCH_ERROR_SEQUENCE 8u  /* ITA: AV without the QK whose statistics it needs */

/* DMA: transfers of ROWS rows of BYTES bytes from anywhere in memory to anywhere else, executed one
 * after another in the order given; up to SNITCH_ITA_DMA_QUEUE_DEPTH wait or run.  A transfer takes
 * the set-up SNITCH_ITA_DMA_CALL_CYCLES and, for each row, its bytes over
 * SNITCH_ITA_DMA_BYTES_PER_CYCLE, rounded up.  An error drops the remaining ones.  With one row
 * the strides do not matter.  Rows may be read again (stride 0), but not be written twice. */
#define SNITCH_DMA_SOURCE 0x14u
#define SNITCH_DMA_DEST 0x18u
#define SNITCH_DMA_BYTES 0x1Cu         /* of a row */
#define SNITCH_DMA_ROWS 0x20u          /* at least 1 */
#define SNITCH_DMA_SOURCE_STRIDE 0x24u /* bytes from one row to the next */
#define SNITCH_DMA_DEST_STRIDE 0x28u
#define SNITCH_DMA_START 0x2Cu /* writing any value queues the transfer */

/* ITA: a task is a product of matrices of bytes, all of them in L1,
 *
 *   out[r][c] = act(requant(sum over i of left[r][i] * right[c][i] + bias[c]))
 *
 * with r < rows, c < cols, i < inner; sizes are multiples of SNITCH_ITA_ITA_TILE up to
 * SNITCH_ITA_ITA_MAX_DIM.  Row r of a matrix begins at address + r * stride, so a matrix may be
 * part of a larger one; addresses and strides are multiples of SNITCH_ITA_ITA_ALIGN.  Both operands
 * hold vectors along `inner`: a dense layer's right operand is its weights [out][in], QK's is K as
 * it is, and AV's is V transposed.  V is produced transposed by a task whose left operand is the
 * weights, whose right operand is the input, and whose bias goes along the rows.
 *
 * Biases are 24 bits, three bytes each, little-endian, one after another.
 *
 * There are SNITCH_ITA_ITA_CONTEXTS register contexts: a task may be started while another runs,
 * and then begins by itself when that one ends.  Tasks run in the order given.  An error drops
 * those that are left.
 *
 * The registers from SIZE0 to OUT_STRIDE hold the image of the driver's descriptor
 * (snitch_ita_driver.h), so that a driver copies words:
 *
 *                bits 0..7        8..15         16..23           24..31
 *   SIZE0        rows (16 bits)                 cols (16 bits)
 *   SIZE1        inner (16 bits)                length (16 bits)
 *   MODE         operation        bias          activation       flags
 *   REQUANT0     mult             shift         add (signed)     0
 *   REQUANT1     mult             shift         add (signed)     0
 *   GELU         b (16 bits, signed)            c (16 bits, signed)
 *
 * REQUANT1 and GELU belong to the activation; identity ignores both, ReLU ignores GELU. */
#define SNITCH_ITA_SIZE0 0x14u
#define SNITCH_ITA_SIZE1 0x18u
#define SNITCH_ITA_MODE 0x1Cu
#define SNITCH_ITA_REQUANT0 0x20u
#define SNITCH_ITA_REQUANT1 0x24u
#define SNITCH_ITA_GELU 0x28u
#define SNITCH_ITA_LEFT 0x2Cu
#define SNITCH_ITA_LEFT_STRIDE 0x30u
#define SNITCH_ITA_RIGHT 0x34u
#define SNITCH_ITA_RIGHT_STRIDE 0x38u
#define SNITCH_ITA_BIAS 0x3Cu
#define SNITCH_ITA_OUT 0x40u
#define SNITCH_ITA_OUT_STRIDE 0x44u
#define SNITCH_ITA_START 0x48u /* writing any value starts or queues the task */

/* Operations.  QK and AV take 64 rows at a time (SNITCH_ITA_ITA_TILE), because ITA holds the
 * statistics of so many: QK notes for each row of its int8 result the maximum and the sum of the
 * powers of two of the first `length` columns; AV reads that result back as its left operand, and
 * normalises it on the way to unsigned bytes, 0 from column `length` on.  A QK may be followed by
 * several AV, whose `inner` is its `cols`.  Both have the identity as activation. */
#define SNITCH_ITA_OP_LINEAR 1u /* any product of int8 matrices; `length` is ignored */
#define SNITCH_ITA_OP_QK 2u     /* 1 <= length <= cols */
#define SNITCH_ITA_OP_AV 3u     /* `length` is that of QK and ignored here */

#define SNITCH_ITA_BIAS_NONE 0u
#define SNITCH_ITA_BIAS_COLS 1u
#define SNITCH_ITA_BIAS_ROWS 2u

#define SNITCH_ITA_ACT_IDENTITY 0u
#define SNITCH_ITA_ACT_GELU 1u
#define SNITCH_ITA_ACT_RELU 2u

/* Powers of two in the statistics and the normalisation are 2^-R(d), d the distance to the maximum:
 * R(d) = (d + 16) >> 5, or with this flag (QK's, which AV takes over) R(d) = d. */
#define SNITCH_ITA_FLAG_UNIT_SHIFT 1u

#endif
