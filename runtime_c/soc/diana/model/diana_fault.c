/* A byte that is made wrong on purpose, to test the tools that look for errors. */
#include <inttypes.h>

#include "diana_model.h"

void diana_fault_set(htvm_soc_t *soc, uint32_t offset, uint32_t value)
{
    diana_fault_t *fault = &soc->fault;
    uint32_t *const fields[] = {&fault->registers, &fault->trigger, &fault->byte, &fault->flip};
    *fields[(offset - DIANA_FAULT_CORE) / 4u] = value;
}

void diana_fault_apply(htvm_soc_t *soc, diana_device_t *core, uint32_t registers,
                       const htvm_event_t *event)
{
    const diana_fault_t *fault = &soc->fault;
    core->triggers++;
    if (fault->registers != registers || fault->trigger != core->triggers) {
        return;
    }
    if (fault->byte >= event->written) {
        diana_complain(soc, core, DIANA_ERROR_PARAMETER,
                       "trigger %" PRIu32 " has no byte %" PRIu32 " to make wrong: it wrote %" PRIu64,
                       core->triggers, fault->byte, event->written);
        return;
    }
    soc->l1[event->to - HTVM_L1_BASE + fault->byte] ^= (uint8_t)fault->flip;
}
