/* dla: addresses of the registers, as byte offsets from DLA_DLA_REGISTERS.  Driver and device model
 * share them; configuration registers are words in the order of dla_isa.h. */
#ifndef DLA_REGS_H
#define DLA_REGS_H

enum {
    DLA_REG_CONFIG = 0x000,  /* written */
    DLA_REG_SLOTS = 0x100,   /* written: system addresses that transfers start from */
    DLA_REG_COMMAND = 0x180, /* written: an instruction word, when the accelerator is idle */
    DLA_REG_STATUS = 0x184,  /* read: a DLA_STATUS_* */
    DLA_REG_END = 0x188,
};

enum { DLA_STATUS_IDLE = 0, DLA_STATUS_BUSY = 1, DLA_STATUS_ERROR = 2 };

#endif
