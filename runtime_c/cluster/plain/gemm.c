/* cluster_gemm. */
#include "cluster_product.h"

void cluster_gemm(const void *args, uint32_t core, uint32_t cores)
{
    const cluster_gemm_t *const g = args;
    const bool transposed = (g->flags & CLUSTER_OUT_TRANSPOSED) != 0;
    cluster_share_t rows = {0, g->rows}, columns = {0, g->k};
    uint32_t start = 0;
    if (cluster_by_columns(g->rows, g->k, cores)) {
        columns = cluster_share(g->k, core, cores);
        start = cluster_start(g->c, core, cores); /* all cores read the same rows */
    } else {
        rows = cluster_share(g->rows, core, cores);
    }
    const uint32_t out_row = transposed ? 1u : g->out_pitch;
    const cluster_product_t product = {
        .in = (const uint8_t *)g->in + rows.begin * g->in_pitch,
        .weights = g->weights,
        .bias = g->bias,
        .out = (uint8_t *)g->out + rows.begin * out_row,
        .table = g->table,
        .requant = &g->requant,
        .flags = g->flags,
        .length = g->c,
        .start = start,
        .taps_y = 1,
        .taps_x = 1,
        .in_row = g->in_pitch,
        .weights_pitch = g->c,
        .out_row = out_row,
        .out_column = transposed ? g->out_pitch : 1u,
        .rows = rows.end - rows.begin,
        .columns = columns,
    };
    if ((g->flags & CLUSTER_IN_UNSIGNED) != 0) {
        cluster_product_u8_rows(&product);
    } else {
        cluster_product_s8_rows(&product);
    }
}
