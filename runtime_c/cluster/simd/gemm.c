/* cluster_gemm for cores with SIMD. */
#include "cluster_kernels.h"
#include "cluster_records.h"
#include "cluster_split.h"
#include "htvm_quads.h"

void cluster_gemm(const void *args, uint32_t core, uint32_t cores)
{
    const cluster_gemm_t *const g = args;
    const bool transposed = (g->flags & CLUSTER_OUT_TRANSPOSED) != 0;
    const uint32_t words = cluster_words(g->c);
    const cluster_work_t work = cluster_quad_work(g->rows, cluster_words(g->k), words);
    const cluster_part_t part = cluster_split(&work, core, cores);
    const cluster_share_t rows = cluster_in_fours(part.blocks, g->rows);
    const cluster_share_t columns = cluster_in_fours(part.items, g->k);
    if (rows.begin >= rows.end || columns.begin >= columns.end) {
        return;
    }
    const htvm_quads_t quads = {
        .quads = (const uint8_t *)g->weights + part.items.begin * htvm_quad_bytes(words),
        .table = g->table,
        .k = columns.end - columns.begin,
        .taps = 1,
        .words = words,
        .in_tap = 4u * words,
        .in_pixel = g->in_pitch,
        .out_pixel = transposed ? 1u : g->out_pitch,
        .out_channel = transposed ? g->out_pitch : 1u,
        .low = g->requant.low,
        .high = g->requant.high,
        .scaling = (g->flags & CLUSTER_WIDE) != 0 ? HTVM_QUADS_WIDE : HTVM_QUADS_NARROW,
        .in_unsigned = (g->flags & CLUSTER_IN_UNSIGNED) != 0,
    };
    htvm_quads(&quads, (const uint8_t *)g->in + rows.begin * g->in_pitch,
               (uint8_t *)g->out + rows.begin * quads.out_pixel + columns.begin * quads.out_channel,
               rows.end - rows.begin);
}
