/* cluster_matmul. */
#include "cluster_product.h"

static void run(const cluster_product_t *product, uint32_t flags)
{
    if ((flags & CLUSTER_B_ROWS) != 0) {
        if ((flags & CLUSTER_IN_UNSIGNED) != 0) {
            cluster_product_u8_rows(product);
        } else {
            cluster_product_s8_rows(product);
        }
    } else if ((flags & CLUSTER_IN_UNSIGNED) != 0) {
        cluster_product_u8_columns(product);
    } else {
        cluster_product_s8_columns(product);
    }
}

void cluster_matmul(const void *args, uint32_t core, uint32_t cores)
{
    const cluster_matmul_t *const m = args;
    const bool by_rows = (m->flags & CLUSTER_B_ROWS) != 0;
    cluster_share_t rows = {0, m->batch * m->rows}, columns = {0, m->k};
    const uint32_t start = cluster_start(m->c, core, cores);
    if (cluster_by_columns(rows.end, m->k, cores)) {
        columns = cluster_share(m->k, core, cores);
    } else {
        rows = cluster_share(rows.end, core, cores);
    }
    cluster_product_t product = {
        .requant = &m->requant,
        .flags = m->flags,
        .length = m->c,
        .start = start,
        .taps_y = 1,
        .taps_x = 1,
        .in_row = m->c,
        .weights_pitch = by_rows ? m->c : m->k,
        .out_row = m->k,
        .out_column = 1,
        .columns = columns,
    };
    uint32_t row = rows.begin; /* of all matrices, one below the other */
    while (row < rows.end) {
        const uint32_t matrix = row / m->rows, end = (matrix + 1) * m->rows;
        product.in = (const uint8_t *)m->a + row * m->c;
        product.weights = m->second + matrix * (m->c * m->k);
        product.out = (uint8_t *)m->out + row * m->k;
        product.rows = (end < rows.end ? end : rows.end) - row;
        run(&product, m->flags);
        row += product.rows;
    }
}
