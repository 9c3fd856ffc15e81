/* HAL of a Cortex-M core without devices: marks cost nothing, and nothing else is needed. */
#ifndef HTVM_HAL_PLATFORM_H
#define HTVM_HAL_PLATFORM_H

#include <stdint.h>

#include "htvm_soc.h"

static inline uint32_t htvm_hal_addr(const void *p)
{
    return (uint32_t)(uintptr_t)p;
}

static inline void *htvm_hal_pointer(uint32_t addr)
{
    return (void *)(uintptr_t)addr;
}

static inline void htvm_hal_write(uint32_t addr, uint32_t value)
{
    *(volatile uint32_t *)(uintptr_t)addr = value;
}

static inline uint32_t htvm_hal_read(uint32_t addr)
{
    return *(volatile uint32_t *)(uintptr_t)addr;
}

#define HTVM_HAL_MEMORY(name) __attribute__((section("." #name)))

static inline void htvm_hal_trace(uint32_t event)
{
    (void)event;
}

#endif
