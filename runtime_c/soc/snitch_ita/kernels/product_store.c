/* What becomes of the sums of a product; see snitch_product.h. */
#include "snitch_product.h"

SNITCH_INLINE void store(const snitch_product_t *p, const int32_t *sums, uint8_t *out,
                         uint32_t column, uint32_t rows, uint32_t columns, bool wide)
{
    const snitch_requant_t *const r = p->requant;
    const uint8_t *const table = p->table;
    const int32_t low = r->low, high = r->high;
    int32_t mul = r->mul, add = r->add;
    uint32_t shift = r->shift;
    for (uint32_t j = 0; j < columns; j++) {
        uint8_t *to = out;
        if ((p->flags & SNITCH_PER_CHANNEL) != 0) {
            mul = r->muls[column + j];
            add = r->adds[column + j];
            shift = r->shifts[column + j];
        }
        for (uint32_t i = 0; i < rows; i++) {
            const int32_t sum = sums[i * columns + j];
            const int32_t value = snitch_requantize(sum, mul, add, shift, low, high, wide);
            *to = table != NULL ? table[(uint8_t)value] : (uint8_t)value;
            to += p->out_row;
        }
        out += p->out_column;
    }
}

void snitch_product_store(const snitch_product_t *what, const int32_t *sums, uint32_t row,
                          uint32_t column, uint32_t rows, uint32_t columns)
{
    uint8_t *const out = what->out + row * what->out_row + column * what->out_column;
    if ((what->flags & SNITCH_WIDE) != 0) {
        store(what, sums, out, column, rows, columns, true);
    } else {
        store(what, sums, out, column, rows, columns, false);
    }
}
