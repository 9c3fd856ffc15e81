/* Register map of MCHAN, the cluster's DMA, as far as public code tells (its version 7).
 *
 *   COMMAND  read: allocates a counter and returns its number; SIRACUSA_DMA_NONE if all are taken.
 *            write: one word of a transfer after the other, of the last counter allocated:
 *              1  bytes in all | SIRACUSA_DMA_IN | SIRACUSA_DMA_INCREMENT | SIRACUSA_DMA_ROWS_*
 *              2  address in L1
 *              3  address outside
 *              then, with SIRACUSA_DMA_ROWS_OUTSIDE: bytes of a row, bytes from row to row
 *              then, with SIRACUSA_DMA_ROWS_L1:      likewise
 *            The transfer is queued with its last word.
 *   STATUS   read: a bit for each counter, set while one of its transfers is under way.
 *            write: frees counters, a bit each.
 *
 * Transfers in the same direction are executed one after another, those in opposite directions
 * side by side.
 */
#ifndef SIRACUSA_DMA_REGS_H
#define SIRACUSA_DMA_REGS_H

#include "htvm_soc.h"

#define SIRACUSA_DMA_COMMAND 0u
#define SIRACUSA_DMA_STATUS 4u
#define SIRACUSA_DMA_END 8u

#define SIRACUSA_DMA_NONE 0xFFFFFFFFu

#define SIRACUSA_DMA_MOST_BYTES 0x1FFFFu /* bits 16:0 of the first word */
#define SIRACUSA_DMA_IN (1u << 17)       /* to L1; otherwise from L1 */
#define SIRACUSA_DMA_INCREMENT (1u << 18) /* set by all software */
#define SIRACUSA_DMA_ROWS_OUTSIDE (1u << 19)
#define SIRACUSA_DMA_EVENT (1u << 20)
#define SIRACUSA_DMA_INTERRUPT (1u << 21)
#define SIRACUSA_DMA_BROADCAST (1u << 22)
#define SIRACUSA_DMA_ROWS_L1 (1u << 23)

#endif
