/* Banks of the memory nearby that devices take, with priority over the harts.
 *
 * A device model says what it takes in a range of cycles (htvm_soc_banks), and is asked again only
 * outside of this range, and after an access to a device's register.  So a model without such devices
 * costs nothing.
 */
#include "harts.h"

#ifdef HTVM_ISS_HARTS

__attribute__((weak)) htvm_soc_banks_t htvm_soc_banks(const htvm_soc_t *soc, uint64_t at)
{
    (void)soc, (void)at;
    return (htvm_soc_banks_t){.from = 0, .until = UINT64_MAX};
}

static bool in_range(const htvm_soc_banks_t *taken, uint64_t cycle)
{
    return cycle >= taken->from && cycle < taken->until;
}

static bool takes(const htvm_soc_port_t *port, uint32_t bank, uint64_t cycle)
{
    uint64_t turn = cycle - port->from;
    if (port->busy < port->of) {
        const uint64_t scaled = turn * port->busy;
        turn = scaled / port->of;
        if (scaled - turn * port->of >= port->busy) {
            return false;
        }
    }
    const uint32_t first = (uint32_t)((port->bank + turn * port->step) % (uint32_t)BANKS);
    const uint32_t behind = (bank + (uint32_t)BANKS - first) % (uint32_t)BANKS;
    return behind < port->width;
}

/* Asks the devices what they take from a cycle on. */
static void ask(harts_t *all, uint64_t cycle)
{
    all->taken = htvm_soc_banks(all->iss->bus.soc, cycle);
    all->quiet_from = all->taken.from;
    all->quiet = all->taken.count == 0 ? all->taken.until - all->taken.from : 0;
}

uint64_t htvm_harts_behind_devices(harts_t *all, uint32_t bank, uint64_t cycle)
{
    htvm_soc_banks_t *const taken = &all->taken;
    uint32_t refused[HTVM_SOC_PORTS] = {0};
    for (;; ++cycle) {
        if (!in_range(taken, cycle)) {
            ask(all, cycle);
        }
        bool is_taken = false;
        for (uint32_t n = 0; n < taken->count; ++n) {
            const htvm_soc_port_t *const port = &taken->port[n];
            if (refused[n] < port->most && takes(port, bank, cycle)) {
                ++refused[n];
                is_taken = true;
            }
        }
        if (!is_taken) {
            return cycle;
        }
    }
}

void htvm_harts_devices_changed(harts_t *all)
{
    all->quiet = 0;
    all->taken = (htvm_soc_banks_t){.from = 0, .until = 0};
}

#endif
