/* HAL of a board: a skeleton to be filled in; htvm_hal.h says what each function must do.
 *
 * As it is, it assumes that devices and L2 are where htvm_soc.h says, that the core has no data
 * cache over L2, and that marks are not needed. */
#ifndef HTVM_HAL_PLATFORM_H
#define HTVM_HAL_PLATFORM_H

#include <stdint.h>

#include "htvm_soc.h"

/* Needed before a device reads memory, and after it has written there.  On an in-order core
 * without a cache it is enough to keep the compiler from moving accesses. */
#define HTVM_PORT_BARRIER() __asm__ volatile("" ::: "memory")

static inline uint32_t htvm_hal_addr(const void *p)
{
    return (uint32_t)(uintptr_t)p; /* the DMA uses the same addresses as the core */
}

static inline void *htvm_hal_pointer(uint32_t addr)
{
    return (void *)(uintptr_t)addr;
}

static inline void htvm_hal_write(uint32_t addr, uint32_t value)
{
    HTVM_PORT_BARRIER();
    *(volatile uint32_t *)(uintptr_t)addr = value;
    HTVM_PORT_BARRIER();
}

static inline uint32_t htvm_hal_read(uint32_t addr)
{
    HTVM_PORT_BARRIER();
    const uint32_t value = *(volatile uint32_t *)(uintptr_t)addr;
    HTVM_PORT_BARRIER();
    return value;
}

/* Constants for a memory of the SoC other than L2, by its name (SRAM, for example): the linker script
 * places these sections. */
#define HTVM_HAL_MEMORY(name) __attribute__((section("." #name)))

/* Polls after which a device is given up; the longest layers take some hundred thousand. */
#ifndef HTVM_PORT_POLLS
#define HTVM_PORT_POLLS 100000000u
#endif

#define HTVM_HAL_TIMEOUT 1
extern int32_t htvm_port_timed_out; /* HTVM_ERROR_TIMEOUT if a device was given up */

static inline int32_t htvm_hal_timeout(uint32_t polls)
{
    /* Once one device does not answer, none is waited for until the run has ended. */
    if (htvm_port_timed_out == 0 && polls >= HTVM_PORT_POLLS) {
        htvm_port_timed_out = HTVM_ERROR_TIMEOUT;
    }
    return htvm_port_timed_out;
}

static inline int32_t htvm_hal_timed_out(void)
{
    const int32_t code = htvm_port_timed_out;
    htvm_port_timed_out = 0;
    return code;
}

static inline void htvm_hal_trace(uint32_t event)
{
    (void)event; /* toggle a pin or read a cycle counter here, for measurements */
}

#endif
