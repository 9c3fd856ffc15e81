/* Kernels that no accelerator takes, on the cluster; see htvm_parallel.h. */
#include "htvm_parallel.h"

#include "cluster.h"
#include "cluster_dma.h"

void htvm_parallel_run(htvm_parallel_kernel_t kernel, const void *args)
{
    cluster_run(kernel, args);
}

void *htvm_parallel_memory(uint32_t offset)
{
    return cluster_l1(offset);
}

void htvm_parallel_copy(void *to, const void *from, uint32_t bytes)
{
    const cluster_dma_t order = {.to = to, .from = from, .bytes = bytes, .rows = 1};
    (void)cluster_dma_start(&order);
}

void htvm_parallel_wait(void)
{
    cluster_dma_wait_all();
}
