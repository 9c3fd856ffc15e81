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

static bool takes(const htvm_soc_banks_t *taken, uint32_t bank, uint64_t cycle)
{
    const uint64_t first = taken->bank + (cycle - taken->from) * taken->step;
    const uint32_t behind = (bank + (uint32_t)BANKS - (uint32_t)(first % (uint32_t)BANKS)) %
                            (uint32_t)BANKS;
    return behind < taken->width;
}

uint64_t htvm_harts_behind_devices(harts_t *all, uint32_t bank, uint64_t cycle)
{
    htvm_soc_banks_t *const taken = &all->taken;
    for (uint32_t refused = 0;; ++refused, ++cycle) {
        if (!in_range(taken, cycle)) {
            *taken = htvm_soc_banks(all->iss->bus.soc, cycle);
            all->quiet_from = taken->from;
            all->quiet = taken->width == 0 ? taken->until - taken->from : 0;
        }
        if (refused >= taken->most || !takes(taken, bank, cycle)) {
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
