/* Code shared by DIANA's drivers, and private to them. */
#ifndef DIANA_POLL_H
#define DIANA_POLL_H

#include "diana_regs.h"
#include "htvm_hal.h"

/* Marks a condition as rare, because a branch costs more when it is taken. */
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* Polls a device until it is idle; returns 0 or the code of its error. */
static inline int32_t diana_poll(uint32_t status_register, uint32_t error_register)
{
    uint32_t status;
    do {
        status = htvm_hal_read(status_register);
    } while (status == DIANA_STATUS_BUSY);
    if (UNLIKELY(status != DIANA_STATUS_IDLE)) {
        return (int32_t)htvm_hal_read(error_register);
    }
    return 0;
}

#endif
