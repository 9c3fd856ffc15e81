/* tiny: registers of the accelerator, as byte offsets from TINY_MAC_REGISTERS.  Driver and device
 * model share them. */
#ifndef TINY_REGS_H
#define TINY_REGS_H

#include "htvm_soc.h"

enum {
    TINY_REG_STATUS = 0x00,  /* read: a TINY_STATUS_* */
    TINY_REG_IN = 0x04,      /* written: byte offsets in L1 */
    TINY_REG_WEIGHTS = 0x08,
    TINY_REG_OUT = 0x0C,
    TINY_REG_ROWS = 0x10,
    TINY_REG_K = 0x14,
    TINY_REG_C = 0x18,
    TINY_REG_SHIFT = 0x1C,
    TINY_REG_LOW = 0x20,     /* the output is clipped to */
    TINY_REG_HIGH = 0x24,
    TINY_REG_PITCH = 0x28,   /* bytes from row to row of the output */
    TINY_REG_START = 0x2C,   /* any value */
    TINY_REGISTERS = 0x30,   /* bytes of all */
};

enum { TINY_STATUS_IDLE = 0, TINY_STATUS_BUSY = 1, TINY_STATUS_ERROR = 2 };

#endif
