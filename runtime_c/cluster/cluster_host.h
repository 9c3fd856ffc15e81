/* Running kernels on this machine, for the drivers of clusters: the cores compute one after another.
 *
 * Started kernels compute at the latest time, when they are joined: what does not wait for them does
 * not find their results, and what overwrites their operands early spoils these.  To see whether the
 * operands were there in time, they also compute at the earliest, and results that are not the same
 * are spoiled.
 */
#ifndef CLUSTER_HOST_H
#define CLUSTER_HOST_H

#include <stdbool.h>
#include <string.h>

#include "cluster.h"

static struct {
    cluster_kernel_t kernel;
    uint32_t args[CLUSTER_ARGS_BYTES / sizeof(uint32_t)];
    uint8_t before[HTVM_L1_SIZE], early[HTVM_L1_SIZE]; /* L1 without the kernel, and behind it */
} started;

static void compute(cluster_kernel_t kernel, const void *args, uint32_t cores)
{
    for (uint32_t core = 0; core < cores; core++) {
        kernel(args, core, cores);
    }
}

void cluster_run(cluster_kernel_t kernel, const void *args)
{
    compute(kernel, args, CLUSTER_CORES);
}

void cluster_start(cluster_kernel_t kernel, const void *args, uint32_t bytes)
{
    uint8_t *const l1 = cluster_l1(0);
    started.kernel = kernel;
    memcpy(started.args, args, bytes);
    memcpy(started.before, l1, HTVM_L1_SIZE);
    compute(kernel, started.args, CLUSTER_STARTED_CORES);
    memcpy(started.early, l1, HTVM_L1_SIZE);
    memcpy(l1, started.before, HTVM_L1_SIZE);
}

void cluster_join(void)
{
    uint8_t *const l1 = cluster_l1(0);
    static uint8_t now[HTVM_L1_SIZE];
    memcpy(now, l1, HTVM_L1_SIZE);
    compute(started.kernel, started.args, CLUSTER_STARTED_CORES);
    for (uint32_t at = 0; at < HTVM_L1_SIZE; at++) {
        const bool written = started.early[at] != started.before[at] || l1[at] != now[at];
        if (written && l1[at] != started.early[at]) {
            l1[at] = (uint8_t)~l1[at];
        }
    }
}

#endif
