/* snitch_matmul. */
#include "snitch_product.h"

static void run(const snitch_product_t *product, uint32_t flags)
{
    if ((flags & SNITCH_B_ROWS) != 0) {
        if ((flags & SNITCH_IN_UNSIGNED) != 0) {
            snitch_product_u8_rows(product);
        } else {
            snitch_product_s8_rows(product);
        }
    } else if ((flags & SNITCH_IN_UNSIGNED) != 0) {
        snitch_product_u8_columns(product);
    } else {
        snitch_product_s8_columns(product);
    }
}

void snitch_matmul(const void *args, uint32_t core, uint32_t cores)
{
    const snitch_matmul_t *const m = args;
    const bool by_rows = (m->flags & SNITCH_B_ROWS) != 0;
    snitch_share_t rows = {0, m->batch * m->rows}, columns = {0, m->k};
    const uint32_t start = snitch_start(m->c, core, cores);
    if (snitch_by_columns(rows.end, m->k, cores)) {
        columns = snitch_share(m->k, core, cores);
    } else {
        rows = snitch_share(rows.end, core, cores);
    }
    snitch_product_t product = {
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
