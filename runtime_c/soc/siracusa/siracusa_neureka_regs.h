/* Register map of N-EUREKA, the chip's, as far as public code tells.
 *
 * All registers are 32 bits wide.  Offsets of the control registers are in htvm_soc.h
 * (SIRACUSA_NEUREKA_TRIGGER and so on):
 *
 *   TRIGGER      write 0: the job whose registers were written is queued, and runs in its turn
 *   ACQUIRE      read: the number of a new job, below SIRACUSA_NEUREKA_JOB_IDS, whose registers may
 *                then be written; SIRACUSA_NEUREKA_FULL if all contexts are taken,
 *                SIRACUSA_NEUREKA_LOCKED if a job was acquired and not triggered yet
 *   FINISHED     read: jobs done since the last soft clear (assumed; the chip's meaning is unknown)
 *   STATUS       read: a bit for each context, SIRACUSA_NEUREKA_STATUS_CONTEXT(n), set from acquire
 *                to the end of the job; 0: idle
 *   RUNNING_JOB  read: number of the job that runs, or else of the last that ran
 *   SOFT_CLEAR   write: drops all jobs; numbers begin with 0 again
 *
 * There is a set of job registers, from SIRACUSA_NEUREKA_JOB on, for each context; accesses go to that
 * of the acquired job, or of the next, so that the second job's may be written while the first
 * runs.  Written values are kept; a set belongs to every other job.
 * There is no error register: what the engine would get wrong is known to device models only.
 */
#ifndef SIRACUSA_NEUREKA_REGS_H
#define SIRACUSA_NEUREKA_REGS_H

#include "htvm_soc.h"

#define SIRACUSA_NEUREKA_FULL 0xFFFFFFFFu
#define SIRACUSA_NEUREKA_LOCKED 0xFFFFFFFEu
#define SIRACUSA_NEUREKA_STATUS_CONTEXT(n) (1u << (8u * (n)))

/* Job registers, by number.  Addresses are of bytes, strides in bytes; tensors are rows of pixels
 * of channels.  A "last" tile or block may be smaller than the others; none is empty. */
#define SIRACUSA_NEUREKA_WEIGHTS 0u /* in L1, or from SIRACUSA_NEUREKA_WEIGHT_WINDOW on */
#define SIRACUSA_NEUREKA_INPUT 1u   /* where the padding's first pixel would be */
#define SIRACUSA_NEUREKA_OUTPUT 2u
#define SIRACUSA_NEUREKA_SCALES 3u
#define SIRACUSA_NEUREKA_SHIFTS 4u
#define SIRACUSA_NEUREKA_BIASES 5u
#define SIRACUSA_NEUREKA_INPUT_PIXEL 6u /* stride */
#define SIRACUSA_NEUREKA_INPUT_ROW 7u
#define SIRACUSA_NEUREKA_INPUT_NONE 8u   /* 0 */
#define SIRACUSA_NEUREKA_OUTPUT_WORD 9u  /* bytes of a word: 32 */
#define SIRACUSA_NEUREKA_OUTPUT_PIXEL 10u
#define SIRACUSA_NEUREKA_OUTPUT_ROW 11u
#define SIRACUSA_NEUREKA_WEIGHT_WORD 12u    /* bytes of a word: 32 */
#define SIRACUSA_NEUREKA_WEIGHT_CHANNEL 13u /* bytes of an output channel; depthwise 0 */
#define SIRACUSA_NEUREKA_WEIGHT_NONE 14u    /* 0 */
#define SIRACUSA_NEUREKA_LAST_CHANNELS 15u  /* of the last Ko tile << 16 | Ki tile */
#define SIRACUSA_NEUREKA_LAST_OUTPUTS 16u   /* rows << 16 | columns of the last block */
#define SIRACUSA_NEUREKA_LAST_INPUTS 17u    /* rows << 16 | columns that it reads, padding above and
                                               left included, below and right not */
#define SIRACUSA_NEUREKA_TILES 18u          /* Ko tiles << 16 | Ki tiles */
#define SIRACUSA_NEUREKA_BLOCKS 19u         /* rows << 16 | columns of blocks */
#define SIRACUSA_NEUREKA_PADDING 20u /* top << 28 | right << 24 | bottom << 20 | left << 16 | value */
#define SIRACUSA_NEUREKA_OFFSET 21u  /* int32, added to every weight */
#define SIRACUSA_NEUREKA_MASK 22u    /* bit 3 * row + column of the filter: set, this tap is off */
#define SIRACUSA_NEUREKA_CONF0 23u

/* CONF0; bits that are not named here must be 0. */
#define SIRACUSA_NEUREKA_WEIGHT_BITS(bits) ((bits) - 1u) /* [2:0] */
#define SIRACUSA_NEUREKA_SCALED (1u << 4)   /* scale, bias, shift, clip; otherwise int32 sums */
#define SIRACUSA_NEUREKA_MODE(mode) ((mode) << 5) /* [6:5] */
#define SIRACUSA_NEUREKA_WEIGHT_MEMORY (1u << 9)
#define SIRACUSA_NEUREKA_PREFETCH (1u << 10)
#define SIRACUSA_NEUREKA_SCALE_32 (2u << 12) /* [13:12]: scales are uint32, otherwise uint8 */
#define SIRACUSA_NEUREKA_STREAM_IN (1u << 14) /* sums begin with the output's; not with SCALED */
#define SIRACUSA_NEUREKA_WEIGHT_OFFSET (1u << 15) /* set by all software, without effect */
#define SIRACUSA_NEUREKA_SHIFT(shift) ((shift) << 16) /* [20:16] */
#define SIRACUSA_NEUREKA_OUTPUT_32 (2u << 21) /* [22:21]: with int32 sums, and only with these */
#define SIRACUSA_NEUREKA_SIGNED_OUTPUT (1u << 23) /* clip to int8, otherwise to uint8 */
#define SIRACUSA_NEUREKA_CHANNEL_SHIFT (1u << 24) /* a uint8 for each channel instead of SHIFT */
#define SIRACUSA_NEUREKA_BIAS (1u << 25)          /* an int32 for each channel */
#define SIRACUSA_NEUREKA_SIGNED_INPUT (1u << 26)

#define SIRACUSA_NEUREKA_MODE_3X3 0u
#define SIRACUSA_NEUREKA_MODE_DEPTHWISE 1u
#define SIRACUSA_NEUREKA_MODE_1X1 2u

#endif
