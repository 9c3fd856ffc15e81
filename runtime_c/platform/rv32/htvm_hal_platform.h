/* HAL of the simulated RV32IMC host: devices and simulator registers are memory-mapped. */
#ifndef HTVM_HAL_PLATFORM_H
#define HTVM_HAL_PLATFORM_H

#include <stdint.h>

#include "htvm_soc.h"

/* Device accesses must not move across accesses to the memory that the devices read and write;
 * the core itself keeps its order. */
#define HTVM_HAL_BARRIER() __asm__ volatile("" ::: "memory")

static inline uint32_t htvm_hal_addr(const void *p)
{
    return (uint32_t)(uintptr_t)p;
}

/* Pointer to an address of memory that the core reaches itself. */
static inline void *htvm_hal_pointer(uint32_t addr)
{
    return (void *)(uintptr_t)addr;
}

static inline void htvm_hal_write(uint32_t addr, uint32_t value)
{
    HTVM_HAL_BARRIER();
    *(volatile uint32_t *)(uintptr_t)addr = value;
    HTVM_HAL_BARRIER();
}

static inline uint32_t htvm_hal_read(uint32_t addr)
{
    HTVM_HAL_BARRIER();
    const uint32_t value = *(volatile uint32_t *)(uintptr_t)addr;
    HTVM_HAL_BARRIER();
    return value;
}

/* Places a constant in a memory of the SoC other than L2, by its name. */
#define HTVM_HAL_MEMORY(name) __attribute__((section("." #name)))

static inline void htvm_hal_trace(uint32_t event)
{
    htvm_hal_write(HTVM_SIM_TRACE, event);
}

#ifdef HTVM_CLUSTER_HARTS
/* If there are other harts, crt0.S starts them in this function, which never returns. */
#define HTVM_HAL_HARTS 1
_Noreturn void htvm_hart_main(uint32_t hart);

/* Places a variable of the runtime in L1, which all harts access quickly; zero at the start. */
#ifdef HTVM_L1_MAPPED
#define HTVM_HAL_L1 __attribute__((section(".l1")))
#endif

/* Sleeps until woken; returns at once if that has happened since the last time. */
static inline void htvm_hal_sleep(void)
{
    __asm__ volatile("wfi" ::: "memory");
}
#endif

/* Ends the run with the low 16 bits of a code, 0 for success, as returning from main does. */
_Noreturn void htvm_exit(int32_t code);

static inline void htvm_putchar(char c)
{
    *(volatile uint8_t *)(uintptr_t)HTVM_SIM_PUTCHAR = (uint8_t)c;
}

#endif
