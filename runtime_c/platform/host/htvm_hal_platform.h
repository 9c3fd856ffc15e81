/* HAL of the host platform: firmware runs natively and talks to the device models directly. */
#ifndef HTVM_HAL_PLATFORM_H
#define HTVM_HAL_PLATFORM_H

#include "htvm_host.h"

static inline uint32_t htvm_hal_addr(const void *p)
{
    return htvm_host_address(p);
}

static inline void *htvm_hal_pointer(uint32_t addr)
{
    return htvm_host_pointer(addr);
}

static inline void htvm_hal_write(uint32_t addr, uint32_t value)
{
    htvm_host_register_write(addr, value);
}

static inline uint32_t htvm_hal_read(uint32_t addr)
{
    return htvm_host_register_read(addr);
}

/* A section of the program that stands for this memory; see htvm_host_address. */
#define HTVM_HAL_MEMORY(name) __attribute__((section("htvm_" #name)))

static inline void htvm_hal_trace(uint32_t event)
{
    (void)event; /* host cycles are not counted here */
}

#endif
