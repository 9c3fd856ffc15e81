/* A machine around a SoC's device models.  The SoC's bench.h has defined its memories by then:
 * bench_t, with `soc` and `now` among its members, and bench_map, the bus. */
#ifndef MACHINE_H
#define MACHINE_H

#include <stdint.h>
#include <stdlib.h>

#include "htvm_soc_model.h"

static inline bench_t *bench_new(void)
{
    bench_t *b = calloc(1, sizeof *b);
    if (b == NULL) {
        abort();
    }
    const htvm_bus_t bus = {.ctx = b, .map = bench_map};
    b->soc = htvm_soc_new(&bus);
    if (b->soc == NULL) {
        abort();
    }
    return b;
}

static inline void bench_free(bench_t *b)
{
    htvm_soc_free(b->soc);
    free(b);
}

static inline uint32_t bench_read(bench_t *b, uint32_t addr)
{
    return htvm_soc_read(b->soc, addr, b->now);
}

static inline void bench_write(bench_t *b, uint32_t addr, uint32_t value)
{
    htvm_soc_write(b->soc, addr, value, b->now);
}

#endif
