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

static inline void htvm_hal_trace(uint32_t event)
{
    (void)event; /* toggle a pin or read a cycle counter here, for measurements */
}

#endif
