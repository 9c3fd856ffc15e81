/* Shares of work among the cores of a cluster; private to the kernels. */
#ifndef CLUSTER_SHARE_H
#define CLUSTER_SHARE_H

#include <stdint.h>

#include "htvm_soc.h"

/* For functions that are specialised for their constant arguments. */
#define CLUSTER_INLINE static inline __attribute__((always_inline))

/* count / cores.  Cores divide a bit at a time, but not by the SoC's own number of them. */
CLUSTER_INLINE uint32_t cluster_each(uint32_t count, uint32_t cores)
{
    return cores == HTVM_CLUSTER_CORES ? count / HTVM_CLUSTER_CORES : count / cores;
}

/* A core's share of `count` things: from begin to end - 1; it may be empty. */
typedef struct {
    uint32_t begin, end;
} cluster_share_t;

CLUSTER_INLINE cluster_share_t cluster_share(uint32_t count, uint32_t core, uint32_t cores)
{
    const uint32_t each = cluster_each(count, cores), left = count - each * cores;
    const uint32_t begin = core * each + (core < left ? core : left);
    const cluster_share_t share = {begin, begin + each + (core < left ? 1u : 0u)};
    return share;
}

#endif
