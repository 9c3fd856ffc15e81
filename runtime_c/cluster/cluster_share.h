/* Shares of work among the cores of a cluster; private to the kernels. */
#ifndef CLUSTER_SHARE_H
#define CLUSTER_SHARE_H

#include <stdint.h>

/* For functions that are specialised for their constant arguments. */
#define CLUSTER_INLINE static inline __attribute__((always_inline))

/* A core's share of `count` things: from begin to end - 1; it may be empty. */
typedef struct {
    uint32_t begin, end;
} cluster_share_t;

/* count / divisor, which takes few cycles if both are small or the divisor is a power of two. */
CLUSTER_INLINE uint32_t cluster_divided(uint32_t count, uint32_t divisor)
{
    if ((divisor & (divisor - 1u)) != 0) {
        return count / divisor;
    }
    for (; divisor > 1u; divisor /= 2) {
        count /= 2;
    }
    return count;
}

CLUSTER_INLINE cluster_share_t cluster_share(uint32_t count, uint32_t core, uint32_t cores)
{
    const uint32_t each = cluster_divided(count, cores), left = count - each * cores;
    const uint32_t begin = core * each + (core < left ? core : left);
    const cluster_share_t share = {begin, begin + each + (core < left ? 1u : 0u)};
    return share;
}

#endif
