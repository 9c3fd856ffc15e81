/* Register map of the DMA and the digital core.
 *
 * Assumed: the chip's own map is not public.  All registers are 32 bits wide; offsets count from
 * the device's base address in htvm_soc.h.  Written values are kept until they are overwritten.
 * A command or a start takes their values at once, so they may be written again while it runs.
 */
#ifndef DIANA_REGS_H
#define DIANA_REGS_H

#include "htvm_soc.h"

/* Both devices have these. */
#define DIANA_REG_STATUS 0x00u /* read: DIANA_STATUS_*; write: clear the error */
#define DIANA_REG_ERROR 0x04u  /* read: DIANA_ERROR_* */

#define DIANA_STATUS_IDLE 0u
#define DIANA_STATUS_BUSY 1u
#define DIANA_STATUS_ERROR 2u

/* Why a device refused a command; also the driver's return values. */
#define DIANA_ERROR_NONE 0u
#define DIANA_ERROR_BUSY 1u          /* started while busy, or given more than the queue holds */
#define DIANA_ERROR_ALIGNMENT 2u     /* misaligned address */
#define DIANA_ERROR_RANGE 3u         /* outside L1, or not mapped in L2 */
#define DIANA_ERROR_PARAMETER 4u     /* a size, filter, stride or shift the device does not have */
#define DIANA_ERROR_OVERLAP 5u       /* output overlaps input */
#define DIANA_ERROR_UNINITIALISED 6u /* reads bytes of L1 that were never written */
#define DIANA_ERROR_WEIGHTS 7u       /* weights exceed the weight memory */
#define DIANA_ERROR_OPERATION 8u     /* unknown operation or register */
#define DIANA_ERROR_RACE 9u          /* touches bytes that a running device reads or writes */

/* DMA: one-dimensional transfers between L2 and L1.  Up to DIANA_DMA_QUEUE_DEPTH commands wait or
 * run; they are executed one after another in the order given, and the DMA is busy until the last
 * is done.  An error drops those that are left. */
#define DIANA_DMA_ROOM 0x08u    /* read: how many more commands may be given now */
#define DIANA_DMA_L2 0x10u      /* device address */
#define DIANA_DMA_L1 0x14u      /* byte offset in L1 */
#define DIANA_DMA_COMMAND 0x18u /* write queues: bytes | direction | position */
#define DIANA_DMA_BYTES_MASK 0x00FFFFFFu
#define DIANA_DMA_TO_L2 0x80000000u
/* Position of the command in its driver call.  It has no effect on data; the device's set-up time
 * depends on it because the published cost of a call is not that of its commands alone. */
#define DIANA_DMA_SINGLE 0x00000000u
#define DIANA_DMA_FIRST 0x01000000u
#define DIANA_DMA_NEXT 0x02000000u
#define DIANA_DMA_POSITION_MASK 0x03000000u

/* These registers exist only in the simulation: one wrong byte in the result of one trigger of a
 * core.  They can be written only before the first cycle, so by a simulator, not by firmware. */
#define DIANA_FAULT_CORE 0x30u    /* device address of the core's registers */
#define DIANA_FAULT_TRIGGER 0x34u /* number of the trigger on that core, counted from 1 */
#define DIANA_FAULT_BYTE 0x38u    /* offset in the result, as stored in L1 */
#define DIANA_FAULT_FLIP 0x3Cu    /* bits to invert */

/* Digital core.  Five shape registers hold the image of the driver's descriptor structures, so
 * that a driver copies words:
 *
 *             bits 0..7       8..15        16..23       24..31
 *   SHAPE0    k (16 bits)                  c (16 bits)
 *   SHAPE1    iy                           ix
 *   SHAPE2    oy                           ox
 *   SHAPE3    fy              fx           stride       pad_top (signed)
 *   SHAPE4    pad_left (sgn)  shift        relu         ignored
 *
 * dense uses SHAPE0 and SHAPE4, add SHAPE0 (elements, 32 bits) and SHAPE4. */
#define DIANA_DIGITAL_SHAPE0 0x10u
#define DIANA_DIGITAL_SHAPE1 0x14u
#define DIANA_DIGITAL_SHAPE2 0x18u
#define DIANA_DIGITAL_SHAPE3 0x1Cu
#define DIANA_DIGITAL_SHAPE4 0x20u
#define DIANA_DIGITAL_IN 0x24u      /* byte offset in L1 */
#define DIANA_DIGITAL_OUT 0x28u     /* byte offset in L1 */
#define DIANA_DIGITAL_IN2 0x2Cu     /* byte offset in L1, second operand of add */
#define DIANA_DIGITAL_WEIGHTS 0x30u /* device address in L2 */
#define DIANA_DIGITAL_START 0x34u   /* write starts: DIANA_DIGITAL_OP_* */

#define DIANA_DIGITAL_OP_CONV 1u
#define DIANA_DIGITAL_OP_DEPTHWISE 2u /* a conv of one channel: only lane 0 has a result */
#define DIANA_DIGITAL_OP_DENSE 3u
#define DIANA_DIGITAL_OP_ADD 4u

#endif
