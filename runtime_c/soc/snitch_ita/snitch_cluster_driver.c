/* Running kernels on all compute cores; see cluster.h. */
#include "cluster.h"

#include <string.h>

#ifdef HTVM_HAL_HARTS

#include "snitch_dma_core.h"

/* Cluster control registers, by offset. */
#define MASK (HTVM_CLUSTER_REGISTERS + 0u)    /* the harts that take part in the barrier */
#define BARRIER (HTVM_CLUSTER_REGISTERS + 4u) /* a read waits until all have read it */
#define WAKE (HTVM_CLUSTER_REGISTERS + 8u)

#define ALL_CORES ((1u << CLUSTER_CORES) - 1u)

_Static_assert(HTVM_CLUSTER_FIRST == 0, "hart 0 is the first compute core");

/* What the cores run; a core does not read it again once it is at the barrier. */
static HTVM_HAL_L1 volatile struct {
    cluster_kernel_t kernel;
    const void *args;
    uint32_t first; /* the first core that takes part: 0, or 1 if core 0 does something else */
} mailbox;

static HTVM_HAL_L1 uint32_t started_args[CLUSTER_ARGS_BYTES / sizeof(uint32_t)];

void cluster_run(cluster_kernel_t kernel, const void *args)
{
    mailbox.kernel = kernel;
    mailbox.args = args;
    mailbox.first = 0;
    htvm_hal_write(MASK, ALL_CORES);
    htvm_hal_write(WAKE, ALL_CORES & ~1u);
    kernel(args, 0, CLUSTER_CORES);
    (void)htvm_hal_read(BARRIER);
}

void cluster_start(cluster_kernel_t kernel, const void *args, uint32_t bytes)
{
    memcpy(started_args, args, bytes);
    mailbox.kernel = kernel;
    mailbox.args = started_args;
    mailbox.first = 1;
    htvm_hal_write(MASK, ALL_CORES & ~1u);
    htvm_hal_write(WAKE, ALL_CORES & ~1u);
}

void cluster_join(void)
{
    htvm_hal_sleep(); /* core 1 wakes it behind the barrier */
}

_Noreturn void htvm_hart_main(uint32_t hart)
{
    if (hart >= CLUSTER_CORES) {
        snitch_dma_serve();
    }
    for (;;) {
        htvm_hal_sleep();
        const uint32_t first = mailbox.first;
        mailbox.kernel(mailbox.args, hart - first, CLUSTER_CORES - first);
        (void)htvm_hal_read(BARRIER);
        if (hart == first) {
            htvm_hal_write(WAKE, 1u);
        }
    }
}

#else

/* Those that compute what was started. */
#define CLUSTER_STARTED_CORES (CLUSTER_CORES - 1u)
#include "cluster_host.h"

#endif
