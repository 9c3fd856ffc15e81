/* cluster_affine_norm: eight columns of all rows after eight others, whose weights and biases, both
 * times the factor, stay in registers. */
#include "cluster_parts.h"

/* The number of columns whose weights and biases fit registers, beside four elements. */
#define COLUMNS 8u

CLUSTER_INLINE void strip(const cluster_norm_t *v, cluster_share_t rows, uint32_t column,
                         uint32_t columns, bool is_unsigned)
{
    const uint32_t n = v->n, shift = v->shift;
    const uint32_t lanes = columns < CLUSTER_LANES ? columns : CLUSTER_LANES;
    const uint8_t *in = (const uint8_t *)v->in + rows.begin * n + column;
    uint8_t *out = (uint8_t *)v->out + rows.begin * n + column;
    const uint8_t *const end = in + (rows.end - rows.begin) * n;
    int32_t low = -128, high = 127, weight[COLUMNS], bias[COLUMNS];
    CLUSTER_HOLD(low);
    CLUSTER_HOLD(high);
    for (uint32_t i = 0; i < columns; i++) {
        weight[i] = v->weight[column + i];
        bias[i] = v->bias[column + i];
    }
    while (in != end) {
        for (uint32_t at = 0; at < columns; at += lanes) {
            int32_t x[CLUSTER_LANES];
            for (uint32_t i = 0; i < lanes; i++) {
                x[i] = cluster_byte(in, at + i, is_unsigned);
            }
            for (uint32_t i = 0; i < lanes; i++) {
                x[i] = x[i] * weight[at + i];
            }
            for (uint32_t i = 0; i < lanes; i++) {
                x[i] = (x[i] + bias[at + i]) >> shift;
            }
            cluster_hold_all(x, lanes);
            for (uint32_t i = 0; i < lanes; i++) {
                out[at + i] = (uint8_t)cluster_clip(x[i], low, high);
            }
        }
        in += n;
        out += n;
        CLUSTER_HOLD(in);
        CLUSTER_HOLD(out);
    }
}

CLUSTER_INLINE void scale(const cluster_norm_t *v, cluster_rows_t part, bool is_unsigned)
{
    CLUSTER_TURNS(at, end, part.columns.begin, part.start, part.columns.end) {
        for (; at + COLUMNS <= end; at += COLUMNS) {
            strip(v, part.rows, at, COLUMNS, is_unsigned);
        }
        for (; at + CLUSTER_LANES <= end; at += CLUSTER_LANES) {
            strip(v, part.rows, at, CLUSTER_LANES, is_unsigned);
        }
        for (; at < end; at++) {
            strip(v, part.rows, at, 1, is_unsigned);
        }
    }
}

/* The layer guarantees that 64 bits are enough. */
static void scale_wide(const cluster_norm_t *v, cluster_rows_t part)
{
    for (uint32_t row = part.rows.begin; row < part.rows.end; row++) {
        const uint8_t *const in = (const uint8_t *)v->in + row * v->n;
        uint8_t *const out = (uint8_t *)v->out + row * v->n;
        for (uint32_t i = part.columns.begin; i < part.columns.end; i++) {
            const int32_t x = cluster_byte(in, i, (v->flags & CLUSTER_IN_UNSIGNED) != 0);
            const int64_t value = ((int64_t)x * v->weight[i] + v->bias[i]) * v->mul >> v->shift;
            out[i] = (uint8_t)(value < -128 ? -128 : value > 127 ? 127 : (int32_t)value);
        }
    }
}

void cluster_affine_norm(const void *args, uint32_t core, uint32_t cores)
{
    const cluster_norm_t *const v = args;
    const cluster_rows_t part = cluster_share_rows(v->rows, v->n, core, cores);
    if ((v->flags & CLUSTER_WIDE) != 0) {
        scale_wide(v, part);
    } else if ((v->flags & CLUSTER_IN_UNSIGNED) != 0) {
        scale(v, part, true);
    } else {
        scale(v, part, false);
    }
}
