/* Two timers for tests: writing N to a timer's register makes it busy for N cycles, reading tells
 * whether it is busy.  A third register complains when it is touched. */
#include "htvm_soc_model.h"

#include <stdlib.h>

enum { TIMERS = 2, BASE = 0x1A100000, COMPLAIN = BASE + 4 * TIMERS };

struct htvm_soc {
    uint64_t until[TIMERS];
    uint64_t started[TIMERS];
    const char *error;
};

htvm_soc_t *htvm_soc_new(const htvm_bus_t *bus)
{
    (void)bus;
    return calloc(1, sizeof(htvm_soc_t));
}

void htvm_soc_free(htvm_soc_t *soc) { free(soc); }

int htvm_soc_owns(uint32_t addr) { return addr >= BASE && addr <= COMPLAIN; }

static void touch(htvm_soc_t *soc, uint32_t addr)
{
    if (addr == COMPLAIN) {
        soc->error = "timers: register 0x1a100008 must not be touched";
    }
}

uint32_t htvm_soc_read(htvm_soc_t *soc, uint32_t addr, uint64_t now)
{
    touch(soc, addr);
    return addr == COMPLAIN ? 0 : now < soc->until[(addr - BASE) / 4];
}

void htvm_soc_write(htvm_soc_t *soc, uint32_t addr, uint32_t value, uint64_t now)
{
    touch(soc, addr);
    if (addr != COMPLAIN) {
        soc->started[(addr - BASE) / 4] = now;
        soc->until[(addr - BASE) / 4] = now + value;
    }
}

uint64_t htvm_soc_next_event(htvm_soc_t *soc, uint64_t now)
{
    uint64_t next = UINT64_MAX;
    for (int i = 0; i < TIMERS; ++i) {
        if (soc->until[i] > now && soc->until[i] < next) {
            next = soc->until[i];
        }
    }
    return next;
}

const char *htvm_soc_error(const htvm_soc_t *soc) { return soc->error; }

void htvm_soc_events(const htvm_soc_t *soc, FILE *out)
{
    for (int i = 0; i < TIMERS; ++i) {
        fprintf(out,
                "{\"unit\": \"timer%d\", \"start\": %llu, \"end\": %llu, \"what\": \"wait\"}\n", i,
                (unsigned long long)soc->started[i], (unsigned long long)soc->until[i]);
    }
}
