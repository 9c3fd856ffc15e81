/* How products are shared; private to the kernels. */
#ifndef CLUSTER_SPLIT_H
#define CLUSTER_SPLIT_H

#include "cluster_share.h"

/* A core's pixels (or rows), and its quads of channels. */
typedef struct {
    cluster_share_t pixels, quads;
} cluster_part_t;

/* What a product consists of. */
typedef struct {
    uint32_t pixels, quads;
    uint32_t words; /* of a window */
    uint32_t copy;  /* cycles for copies of four windows */
} cluster_work_t;

/* Returns about how many cycles a quad of this number of pixels takes: in blocks of 4, 2 and 1. */
CLUSTER_INLINE uint32_t cluster_quad_cycles(uint32_t pixels, uint32_t words)
{
    uint32_t cycles = (24u * words + 90u) * (pixels / 4u);
    cycles += (pixels & 2u) != 0 ? 14u * words + 75u : 0u;
    return cycles + ((pixels & 1u) != 0 ? 9u * words + 55u : 0u);
}

/* Shares blocks of four pixels among groups of cores, and quads among those of a group: of all sizes
 * of groups, the one that takes the least time. */
CLUSTER_INLINE cluster_part_t cluster_split(const cluster_work_t *work, uint32_t core,
                                            uint32_t cores)
{
    const uint32_t blocks = (work->pixels + 3u) / 4u, pixels = work->pixels;
    const uint32_t all = cluster_quad_cycles(pixels, work->words);
    const uint32_t each = 24u * work->words + 90u;
    uint32_t size = 1, best = UINT32_MAX;
    for (uint32_t n = 1; n <= cores && (cores & (n - 1u)) == 0; n *= 2) {
        const uint32_t groups = cluster_divided(cores, n);
        const uint32_t most = cluster_divided(blocks + groups - 1u, groups);
        const uint32_t quads = cluster_divided(work->quads + n - 1u, n);
        const uint32_t cost = (most < blocks ? each * most : all) * quads + work->copy * most;
        if (cost < best) {
            best = cost;
            size = n;
        }
        if (quads == 1) {
            break;
        }
    }
    const uint32_t group = cluster_divided(core, size);
    cluster_part_t part = {cluster_share(blocks, group, cluster_divided(cores, size)),
                           cluster_share(work->quads, core - group * size, size)};
    part.pixels.begin *= 4u;
    part.pixels.end = 4u * part.pixels.end < pixels ? 4u * part.pixels.end : pixels;
    return part;
}

#endif
