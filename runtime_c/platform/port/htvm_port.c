/* A board's port: a skeleton to be filled in. */
#include "htvm_port.h"

#include "htvm_hal.h"

/* For a debugger to look at: done becomes 1 at the end. */
volatile struct {
    uint32_t done;
    int32_t code;
    uint32_t elements, different;
} htvm_port_outcome;

int32_t htvm_port_timed_out;

void htvm_port_init(void)
{
    /* e.g. clocks, power, pads */
}

void htvm_port_result(int32_t code, uint32_t elements, uint32_t different)
{
    /* e.g. an LED or a serial line */
    htvm_port_outcome.code = code;
    htvm_port_outcome.elements = elements;
    htvm_port_outcome.different = different;
    htvm_port_outcome.done = 1;
}

#if defined(HTVM_CLUSTER_HARTS) && !defined(HTVM_HAL_HARTS)
/* Start-up code sends the other harts of a cluster here; this port gives them no work. */
_Noreturn void htvm_hart_main(uint32_t hart);

_Noreturn void htvm_hart_main(uint32_t hart)
{
    (void)hart;
    for (;;) {
    }
}
#endif

/* The start-up code calls this when main returns. */
_Noreturn void htvm_exit(int32_t code);

_Noreturn void htvm_exit(int32_t code)
{
    (void)code;
    for (;;) {
    }
}
