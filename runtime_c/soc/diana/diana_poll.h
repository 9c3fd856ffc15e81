/* Code shared by DIANA's drivers, and private to them. */
#ifndef DIANA_POLL_H
#define DIANA_POLL_H

#include "diana_regs.h"
#include "htvm_hal.h"

/* Marks a condition as rare, because a branch costs more when it is taken. */
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* Polls a device until it is idle; returns 0, the code of its error or that of the timeout. */
static inline int32_t diana_poll(uint32_t status_register, uint32_t error_register)
{
    uint32_t status;
    uint32_t polls = 0;
    do {
        status = htvm_hal_read(status_register);
    } while (status == DIANA_STATUS_BUSY && htvm_hal_timeout(++polls) == 0);
    if (UNLIKELY(status != DIANA_STATUS_IDLE)) {
        return status == DIANA_STATUS_BUSY ? htvm_hal_timeout(polls)
                                           : (int32_t)htvm_hal_read(error_register);
    }
    return 0;
}

#endif
