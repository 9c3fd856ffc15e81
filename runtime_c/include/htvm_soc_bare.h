/* The functions of `htvm_soc_model.h` for a SoC whose devices have no registers, all but
 * `htvm_soc_error`.  It defines them: one C file of the SoC's model includes it. */
#ifndef HTVM_SOC_BARE_H
#define HTVM_SOC_BARE_H

#include "htvm_soc_model.h"

#include <stdlib.h>

struct htvm_soc {
    htvm_bus_t bus;
};

htvm_soc_t *htvm_soc_new(const htvm_bus_t *bus)
{
    htvm_soc_t *soc = malloc(sizeof *soc);
    if (soc != NULL) {
        soc->bus = *bus;
    }
    return soc;
}

void htvm_soc_free(htvm_soc_t *soc) { free(soc); }

int htvm_soc_owns(uint32_t addr)
{
    (void)addr;
    return 0;
}

uint32_t htvm_soc_read(htvm_soc_t *soc, uint32_t addr, uint64_t now)
{
    (void)soc, (void)addr, (void)now;
    return 0;
}

void htvm_soc_write(htvm_soc_t *soc, uint32_t addr, uint32_t value, uint64_t now)
{
    (void)soc, (void)addr, (void)value, (void)now;
}

uint64_t htvm_soc_next_event(htvm_soc_t *soc, uint64_t now)
{
    (void)soc, (void)now;
    return UINT64_MAX;
}

/* There is no clock, so there are no times to tell. */
void htvm_soc_events(const htvm_soc_t *soc, FILE *out) { (void)soc, (void)out; }

#endif
