/* Data caches between a core and memory that a device shares with it: Armv8.1-M's, line by line.
 *
 * Elsewhere, and with HTVM_CACHE defined as 0, nothing is done.  Define it so if the memory is not
 * cached, or if the network runs unprivileged, which may not touch these registers.
 */
#ifndef HTVM_CACHE_H
#define HTVM_CACHE_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of a line: those of the Cortex-M55's and M85's caches. */
#define HTVM_CACHE_LINE 32u

/* Registers of the Armv8-M Architecture Reference Manual: by address, to the point of coherency. */
#define HTVM_CACHE_CONTROL 0xE000ED14u    /* CCR; bit 16: the data cache is on */
#define HTVM_CACHE_INVALIDATE 0xE000EF5Cu /* DCIMVAC */
#define HTVM_CACHE_CLEAN_OUT 0xE000EF70u  /* DCCIMVAC: clean and invalidate */

#ifndef HTVM_CACHE
#if defined(__ARM_ARCH_8_1M_MAIN__) || (defined(__ARM_ARCH) && __ARM_ARCH == 801)
#define HTVM_CACHE 1
#else
#define HTVM_CACHE 0
#endif
#endif

#if HTVM_CACHE
#ifndef HTVM_CACHE_READ
#define HTVM_CACHE_READ(address) (*(volatile uint32_t *)(uintptr_t)(address))
#define HTVM_CACHE_WRITE(address, value) (*(volatile uint32_t *)(uintptr_t)(address) = (value))
#define HTVM_CACHE_WAIT() __asm__ volatile("dsb\n isb" ::: "memory")
#endif

static inline void htvm_cache_lines(uint32_t operation, const void *data, size_t bytes)
{
    const uintptr_t end = (uintptr_t)data + bytes;
    HTVM_CACHE_WAIT();
    if (bytes == 0u || (HTVM_CACHE_READ(HTVM_CACHE_CONTROL) & (1u << 16)) == 0u) {
        return;
    }
    for (uintptr_t line = (uintptr_t)data & ~(uintptr_t)(HTVM_CACHE_LINE - 1u); line < end;
         line += HTVM_CACHE_LINE) {
        HTVM_CACHE_WRITE(operation, (uint32_t)line);
    }
    HTVM_CACHE_WAIT();
}
#endif

/* Before a device uses memory: what the core wrote there is written back, and no line of it stays,
 * which might otherwise be written back over the device's results. */
static inline void htvm_cache_give(const void *data, size_t bytes)
{
#if HTVM_CACHE
    htvm_cache_lines(HTVM_CACHE_CLEAN_OUT, data, bytes);
#else
    (void)data, (void)bytes;
#endif
}

/* Before the core reads what a device wrote: lines that were read ahead meanwhile are dropped.
 * Nothing else of value may lie in these lines. */
static inline void htvm_cache_take(const void *data, size_t bytes)
{
#if HTVM_CACHE
    htvm_cache_lines(HTVM_CACHE_INVALIDATE, data, bytes);
#else
    (void)data, (void)bytes;
#endif
}

#endif
