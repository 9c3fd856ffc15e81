/* tiny: registers of the accelerator and of the DMA, as byte offsets from TINY_MAC_REGISTERS and
 * TINY_DMA_REGISTERS.  Driver and device model share them. */
#ifndef TINY_REGS_H
#define TINY_REGS_H

#include "htvm_soc.h"

enum {
    TINY_MAC_REG_STATUS = 0x00,  /* read: a TINY_STATUS_* */
    TINY_MAC_REG_IN = 0x04,      /* written: byte offsets in L1 */
    TINY_MAC_REG_WEIGHTS = 0x08,
    TINY_MAC_REG_OUT = 0x0C,
    TINY_MAC_REG_ROWS = 0x10,
    TINY_MAC_REG_K = 0x14,
    TINY_MAC_REG_C = 0x18,
    TINY_MAC_REG_SHIFT = 0x1C,
    TINY_MAC_REG_LOW = 0x20,     /* the output is clipped to */
    TINY_MAC_REG_HIGH = 0x24,
    TINY_MAC_REG_PITCH = 0x28,   /* bytes from row to row of the output */
    TINY_MAC_REG_START = 0x2C,   /* any value */
    TINY_MAC_REG_END = 0x30,
};

enum { TINY_STATUS_IDLE = 0, TINY_STATUS_BUSY = 1, TINY_STATUS_ERROR = 2 };

/* Transfers are queued, and executed in order. */
enum {
    TINY_DMA_REG_STARTED = 0x00, /* read: number of transfers started so far */
    TINY_DMA_REG_DONE = 0x04,    /* read: number of these that are done */
    TINY_DMA_REG_L1 = 0x08,      /* written: byte offset in L1, where rows follow each other */
    TINY_DMA_REG_L2 = 0x0C,      /* address outside of L1 */
    TINY_DMA_REG_PITCH = 0x10,   /* bytes from row to row there */
    TINY_DMA_REG_ROWS = 0x14,
    TINY_DMA_REG_BYTES = 0x18,   /* of a row */
    TINY_DMA_REG_START = 0x1C,   /* a TINY_DMA_IN or OUT: into L1, or out of it */
    TINY_DMA_REG_END = 0x20,
};

enum { TINY_DMA_IN = 0, TINY_DMA_OUT = 1 };

#endif
