/* Snitch cluster: running a kernel on all compute cores.
 *
 * Hart 0 runs main and orders everything; it is also core 0.  A kernel is a function that each
 * core executes with the same arguments and its own number: it does its share of the work, and
 * reads nothing that another core writes in the same call.  Kernels run no kernels, and start no
 * transfers.
 *
 * On rv32 the cores 1 to cores - 1 sleep between kernels; running one costs some tens of cycles
 * (the call's share: writing a mailbox in L1, a wake-up, a hardware barrier).  On the host
 * platform the cores run one after another, 0 first.
 */
#ifndef CLUSTER_H
#define CLUSTER_H

#include <stdint.h>

#include "htvm_hal.h"
#include "htvm_soc.h"

/* Compute cores; HTVM_CLUSTER_CORES is the description's. */
#define CLUSTER_CORES HTVM_CLUSTER_CORES

typedef void (*cluster_kernel_t)(const void *args, uint32_t core, uint32_t cores);

/* Runs a kernel on all compute cores and returns when all are done.  `args` must not change until
 * then; it may be anywhere in memory, best on the caller's stack, which is in L1. */
void cluster_run(cluster_kernel_t kernel, const void *args);

/* Starts a kernel on all cores but hart 0, which goes on and drives other devices (on Siracusa
 * without a controller after its own share); there are at least two harts.  `args`, of up to
 * CLUSTER_ARGS_BYTES, a multiple of 4, are copied.  The kernel writes in L1 alone.  Until the cores are
 * joined, no other kernel may run, and nobody may touch what they write, or write what they read. */
#define CLUSTER_ARGS_BYTES 128u
void cluster_start(cluster_kernel_t kernel, const void *args, uint32_t bytes);

/* Waits for the kernel that was started. */
void cluster_join(void);

/* Pointer to a byte offset in L1, HTVM_L1_SIZE bytes of which are free for tensors.  Cores load
 * and store there like anywhere else; devices take its htvm_hal_addr(). */
static inline void *cluster_l1(uint32_t offset)
{
    return htvm_hal_pointer(HTVM_L1_BASE + offset);
}

#endif
