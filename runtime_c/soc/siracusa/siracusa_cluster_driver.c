/* Running kernels on all compute cores; see cluster.h.
 *
 * Hart 0 is the controller core; in a description without one it is the first compute core.
 */
#include "cluster.h"

#ifdef HTVM_HAL_HARTS

/* Cluster control registers, by offset. */
#define MASK (HTVM_CLUSTER_REGISTERS + 0u)    /* the harts that take part in the barrier */
#define BARRIER (HTVM_CLUSTER_REGISTERS + 4u) /* a read waits until all have read it */
#define WAKE (HTVM_CLUSTER_REGISTERS + 8u)

#define FIRST HTVM_CLUSTER_FIRST
#define ALL_CORES (((1u << CLUSTER_CORES) - 1u) << FIRST)

/* What the cores run; a core does not read it again once it is at the barrier. */
static HTVM_HAL_L1 volatile struct {
    cluster_kernel_t kernel;
    const void *args;
} mailbox;

static HTVM_HAL_L1 uint32_t started_args[CLUSTER_ARGS_BYTES / sizeof(uint32_t)];

/* A word of any struct. */
typedef uint32_t __attribute__((may_alias)) word_t;

static void start(cluster_kernel_t kernel, const void *args)
{
    mailbox.kernel = kernel;
    mailbox.args = args;
    htvm_hal_write(MASK, ALL_CORES | 1u);
    htvm_hal_write(WAKE, ALL_CORES & ~1u);
#if HTVM_CLUSTER_FIRST == 0
    kernel(args, 0, CLUSTER_CORES);
#endif
}

void cluster_run(cluster_kernel_t kernel, const void *args)
{
    start(kernel, args);
    cluster_join();
}

void cluster_start(cluster_kernel_t kernel, const void *args, uint32_t bytes)
{
    /* A few words, for which a call of memcpy would take longer. */
    const word_t *const words = args;
    for (uint32_t i = 0; i < bytes / sizeof *words; i++) {
        started_args[i] = words[i];
    }
    start(kernel, started_args);
}

void cluster_join(void)
{
    (void)htvm_hal_read(BARRIER);
}

_Noreturn void htvm_hart_main(uint32_t hart)
{
    for (;;) {
        htvm_hal_sleep();
        mailbox.kernel(mailbox.args, hart - FIRST, CLUSTER_CORES);
        (void)htvm_hal_read(BARRIER);
    }
}

#else

/* Those that compute what was started. */
#define CLUSTER_STARTED_CORES CLUSTER_CORES
#include "cluster_host.h"

#endif
