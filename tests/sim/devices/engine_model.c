/* An engine for tests that takes banks of L1: writing N to its register makes it take eight of them in
 * each of the N cycles after that.  Written before that: by how many banks it goes on in each cycle,
 * and how many cycles it may refuse a core in an access, and in how
 * many of how many cycles it takes them (all). */
#include "htvm_soc_model.h"

#include <stdlib.h>

enum {
    BASE = 0x1A100000,
    STEP = BASE + 4,
    MOST = BASE + 8,
    BUSY = BASE + 12,
    OF = BASE + 16,
    WIDTH = 8
};

struct htvm_soc {
    uint64_t from, until;
    uint32_t step, most, busy, of;
};

htvm_soc_t *htvm_soc_new(const htvm_bus_t *bus)
{
    (void)bus;
    htvm_soc_t *soc = calloc(1, sizeof *soc);
    if (soc != NULL) {
        soc->busy = soc->of = 1;
    }
    return soc;
}

void htvm_soc_free(htvm_soc_t *soc) { free(soc); }

int htvm_soc_owns(uint32_t addr) { return addr >= BASE && addr <= OF; }

uint32_t htvm_soc_read(htvm_soc_t *soc, uint32_t addr, uint64_t now)
{
    (void)addr;
    return now < soc->until;
}

void htvm_soc_write(htvm_soc_t *soc, uint32_t addr, uint32_t value, uint64_t now)
{
    if (addr == BASE) {
        soc->from = now + 1;
        soc->until = now + 1 + value;
    } else if (addr == STEP) {
        soc->step = value;
    } else if (addr == MOST) {
        soc->most = value;
    } else if (addr == BUSY) {
        soc->busy = value;
    } else {
        soc->of = value;
    }
}

uint64_t htvm_soc_next_event(htvm_soc_t *soc, uint64_t now)
{
    return soc->until > now ? soc->until : UINT64_MAX;
}

const char *htvm_soc_error(const htvm_soc_t *soc)
{
    (void)soc;
    return NULL;
}

void htvm_soc_events(const htvm_soc_t *soc, FILE *out) { (void)soc, (void)out; }

htvm_soc_banks_t htvm_soc_banks(const htvm_soc_t *soc, uint64_t at)
{
    if (at < soc->from) {
        return (htvm_soc_banks_t){.from = 0, .until = soc->from};
    }
    if (at >= soc->until) {
        return (htvm_soc_banks_t){.from = soc->until, .until = UINT64_MAX};
    }
    const htvm_soc_port_t port = {.from = soc->from, .busy = soc->busy, .of = soc->of,
                                  .step = soc->step, .width = WIDTH, .most = soc->most};
    return (htvm_soc_banks_t){.from = soc->from, .until = soc->until, .count = 1, .port = {port}};
}
