/* Collecting the ports that take banks of L1 in a cycle (htvm_soc_banks in htvm_soc_model.h). */
#ifndef HTVM_SOC_BANKS_H
#define HTVM_SOC_BANKS_H

#include "htvm_soc_model.h"

/* Adds a port that takes banks from `port.from` until `until`, if cycle `at` is among these.  If not,
 * what holds in that cycle ends where they begin, or began where they end. */
static inline void htvm_banks_add(htvm_soc_banks_t *banks, uint64_t at, htvm_soc_port_t port,
                                  uint64_t until)
{
    if (at >= until) {
        banks->from = banks->from > until ? banks->from : until;
        return;
    }
    const uint64_t change = at < port.from ? port.from : until;
    banks->until = banks->until < change ? banks->until : change;
    if (at >= port.from) {
        banks->from = banks->from > port.from ? banks->from : port.from;
        if (banks->count < HTVM_SOC_PORTS) {
            banks->port[banks->count++] = port;
        }
    }
}

#endif
