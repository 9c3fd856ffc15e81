/* The HAL of drivers under test: registers are those of the models of the test's bench.  The SoC's
 * bench.h has defined bench_t and bench_addr, the device address of a byte of its memories. */
#ifndef HAL_ON_BENCH_H
#define HAL_ON_BENCH_H

#include "htvm_hal.h"
#include "machine.h"

/* The machine that the driver finds. */
static bench_t *bench;

uint32_t htvm_hal_addr(const void *p) { return bench_addr(bench, p); }

void htvm_hal_write(uint32_t addr, uint32_t value)
{
    bench->now++;
    bench_write(bench, addr, value);
}

uint32_t htvm_hal_read(uint32_t addr)
{
    bench->now++; /* no skipping: the poll loop really polls */
    return bench_read(bench, addr);
}

void htvm_hal_trace(uint32_t event) { (void)event; }

#endif
