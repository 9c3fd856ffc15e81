/* HAL of Cortex-M cores without devices: marks cost nothing, and little else is needed. */
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

#if defined(HTVM_CLUSTER_HARTS) && defined(__arm__)
/* Where there is another core, whoever wakes it has it begin this function anew. */
#define HTVM_HAL_HARTS 1
_Noreturn void htvm_hart_main(uint32_t hart);

static inline void htvm_hal_sleep(void) {}
#endif

#endif
