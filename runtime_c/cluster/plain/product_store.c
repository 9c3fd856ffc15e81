/* Requantizes and stores the sums of a product; see cluster_product.h. */
#include "cluster_product.h"

typedef struct {
    int32_t mul, add;
    uint32_t shift;
} factors_t;

CLUSTER_INLINE factors_t factors_of(const cluster_product_t *p, uint32_t column)
{
    const cluster_requant_t *const r = p->requant;
    if ((p->flags & CLUSTER_PER_CHANNEL) != 0) {
        const factors_t own = {r->muls[column], r->adds[column], r->shifts[column]};
        return own;
    }
    const factors_t all = {r->mul, r->add, r->shift};
    return all;
}

/* Requantizes and stores the sums column by column, four rows at once, so that no multiplication
 * stalls. */
CLUSTER_INLINE void store(const cluster_product_t *p, const int32_t *sums, uint8_t *out,
                         uint32_t column, uint32_t rows, uint32_t columns)
{
    /* Local copies: for the compiler, stored bytes may alias anything else. */
    const int32_t low = p->requant->low, high = p->requant->high;
    const uint32_t out_row = p->out_row, out_column = p->out_column;
    const uint8_t *const table = p->table;
    const bool per_channel = (p->flags & CLUSTER_PER_CHANNEL) != 0;
    factors_t f = factors_of(p, column);
    for (uint32_t j = 0; j < columns; j++) {
        if (per_channel) {
            f = factors_of(p, column + j);
        }
        int32_t values[4];
        for (uint32_t i = 0; i < rows; i++) {
            values[i] = sums[i * columns] * f.mul;
        }
        for (uint32_t i = 0; i < rows; i++) {
            values[i] = (values[i] + f.add) >> f.shift;
            CLUSTER_HOLD(values[i]);
        }
        for (uint32_t i = 0; i < rows; i++) {
            values[i] = cluster_clip(values[i], low, high);
        }
        if (table != NULL) {
            for (uint32_t i = 0; i < rows; i++) {
                values[i] = table[(uint8_t)values[i]];
            }
        }
        uint8_t *to = out;
        for (uint32_t i = 0; i < rows; i++) {
            *to = (uint8_t)values[i];
            to += out_row;
        }
        sums++;
        out += out_column;
    }
}

static void store_wide(const cluster_product_t *p, const int32_t *sums, uint8_t *out, uint32_t column,
                       uint32_t rows, uint32_t columns)
{
    const int32_t low = p->requant->low, high = p->requant->high;
    for (uint32_t j = 0; j < columns; j++) {
        const factors_t f = factors_of(p, column + j);
        for (uint32_t i = 0; i < rows; i++) {
            const int32_t sum = sums[i * columns + j];
            const int32_t value = cluster_requantize(sum, f.mul, f.add, f.shift, low, high, true);
            uint8_t *const to = out + i * p->out_row + j * p->out_column;
            *to = p->table != NULL ? p->table[(uint8_t)value] : (uint8_t)value;
        }
    }
}

void cluster_product_store(const cluster_product_t *what, const int32_t *sums, uint32_t row,
                          uint32_t column, uint32_t rows, uint32_t columns)
{
    uint8_t *const out = what->out + row * what->out_row + column * what->out_column;
    if ((what->flags & CLUSTER_WIDE) != 0) {
        store_wide(what, sums, out, column, rows, columns);
    } else if (rows == 1) {
        store(what, sums, out, column, 1, columns);
    } else {
        store(what, sums, out, column, 4, columns);
    }
}
