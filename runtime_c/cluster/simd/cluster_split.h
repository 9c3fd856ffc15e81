/* How products are shared; private to the kernels. */
#ifndef CLUSTER_SPLIT_H
#define CLUSTER_SPLIT_H

#include "cluster_share.h"

/* A core's pixels (or rows), and its quads of channels. */
typedef struct {
    cluster_share_t pixels, quads;
} cluster_part_t;

/* Returns the time for this number of pixels, in instructions of the inner loop: blocks of 4, 2, 1. */
CLUSTER_INLINE uint32_t cluster_pixel_cost(uint32_t pixels)
{
    return 24u * (pixels / 4u) + (pixels & 2u ? 14u : 0u) + (pixels & 1u ? 9u : 0u);
}

/* Shares blocks of four pixels among groups of cores, and quads among those of a group: of all sizes
 * of groups, the one that takes the least time. */
CLUSTER_INLINE cluster_part_t cluster_split(uint32_t pixels, uint32_t quads, uint32_t core,
                                            uint32_t cores)
{
    const uint32_t blocks = (pixels + 3u) / 4u, all = cluster_pixel_cost(pixels);
    uint32_t size = 1, best = UINT32_MAX;
    for (uint32_t n = 1; n <= cores && cores % n == 0; n *= 2) {
        const uint32_t groups = cores / n, most = (blocks + groups - 1u) / groups;
        const uint32_t cost = (most < blocks ? 24u * most : all) * ((quads + n - 1u) / n);
        if (cost < best) {
            best = cost;
            size = n;
        }
    }
    const uint32_t group = core / size;
    cluster_part_t part = {cluster_share(blocks, group, cores / size),
                           cluster_share(quads, core - group * size, size)};
    part.pixels.begin *= 4u;
    part.pixels.end = 4u * part.pixels.end < pixels ? 4u * part.pixels.end : pixels;
    return part;
}

#endif
