/* How kernels share two dimensions; private to them. */
#ifndef CLUSTER_SPLIT_H
#define CLUSTER_SPLIT_H

#include "cluster_share.h"

/* Work that consists of `items` (quads, fours of channels or columns), of which each has `blocks` (of
 * pixels, rows or strips).  Cycles: */
typedef struct {
    uint32_t items, blocks;
    uint32_t block;  /* of a block of an item */
    uint32_t whole;  /* of all blocks of an item, of which the last one may be shorter */
    uint32_t item;   /* once for each item of a core */
    uint32_t shared; /* once for each block of a core, whatever the number of its items */
} cluster_work_t;

/* A core's blocks and items. */
typedef struct {
    cluster_share_t blocks, items;
} cluster_part_t;

/* As cluster_share(), of a number of parts that is a power of two. */
CLUSTER_INLINE cluster_share_t cluster_share_log(uint32_t count, uint32_t index, uint32_t log)
{
    const uint32_t each = count >> log, left = count & ((1u << log) - 1u);
    const uint32_t begin = index * each + (index < left ? index : left);
    const cluster_share_t share = {begin, begin + each + (index < left ? 1u : 0u)};
    return share;
}

/* Shares blocks among groups of 1, 2, 4, ... cores, and items among the cores of a group.  Of all sizes
 * of groups, takes the one that needs the least time. */
CLUSTER_INLINE cluster_part_t cluster_split(const cluster_work_t *work, uint32_t core,
                                            uint32_t cores)
{
    uint32_t log = 0, size = 0, best = UINT32_MAX;
    while (1u << log < cores) {
        log++;
    }
    if (1u << log != cores) {
        const cluster_part_t part = {cluster_share(work->blocks, core, cores), {0, work->items}};
        return part;
    }
    if (work->blocks == 1) { /* which is most urgent for the shortest kernels */
        const cluster_part_t part = {{0, 1}, cluster_share_log(work->items, core, log)};
        return part;
    }
    for (uint32_t n = 0; n <= log; n++) {
        const uint32_t most = (work->blocks + (cores >> n) - 1u) >> (log - n);
        const uint32_t items = (work->items + (1u << n) - 1u) >> n;
        const uint32_t each = most < work->blocks ? work->block * most : work->whole;
        const uint32_t cost = (each + work->item) * items + work->shared * most;
        if (cost < best) {
            best = cost;
            size = n;
        }
    }
    const uint32_t group = core >> size;
    const cluster_part_t part = {cluster_share_log(work->blocks, group, log - size),
                                 cluster_share_log(work->items, core - (group << size), size)};
    return part;
}

/* Shares elements by blocks of four. */
CLUSTER_INLINE cluster_share_t cluster_in_fours(cluster_share_t blocks, uint32_t count)
{
    const uint32_t end = 4u * blocks.end;
    const cluster_share_t share = {4u * blocks.begin, end < count ? end : count};
    return share;
}

/* ---- quads of pixels (or rows) ---- */

/* Returns about how many cycles a quad takes for this number of pixels: in blocks of 4, 2 and 1. */
CLUSTER_INLINE uint32_t cluster_quad_cycles(uint32_t pixels, uint32_t words)
{
    uint32_t cycles = (24u * words + 90u) * (pixels / 4u);
    cycles += (pixels & 2u) != 0 ? 14u * words + 75u : 0u;
    return cycles + ((pixels & 1u) != 0 ? 9u * words + 55u : 0u);
}

/* The work of `quads` with `pixels` pixels and windows of this many words. */
CLUSTER_INLINE cluster_work_t cluster_quad_work(uint32_t pixels, uint32_t quads, uint32_t words)
{
    const cluster_work_t work = {
        quads, (pixels + 3u) / 4u, 24u * words + 90u, cluster_quad_cycles(pixels, words), 0, 0,
    };
    return work;
}

#endif
