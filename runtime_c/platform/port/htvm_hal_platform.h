/* HAL of a board: a skeleton to be filled in; htvm_hal.h says what each function must do.
 *
 * As it stands: devices and L2 are where htvm_soc.h says, the core has no data cache over L2, and
 * nobody wants marks. */
#ifndef HTVM_HAL_PLATFORM_H
#define HTVM_HAL_PLATFORM_H

#include <stdint.h>

#include "htvm_soc.h"

/* What must be done before a device reads memory and after it wrote there: on a core that keeps its
 * order and has no cache, keep the compiler from moving accesses. */
#define HTVM_PORT_BARRIER() __asm__ volatile("" ::: "memory")

static inline uint32_t htvm_hal_addr(const void *p)
{
    return (uint32_t)(uintptr_t)p; /* the DMA sees memory where the core does */
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

static inline void htvm_hal_trace(uint32_t event)
{
    (void)event; /* a pin or a cycle counter, for whoever measures */
}

#endif
