/* cluster_transpose: blocks of four rows. */
#include "cluster_parts.h"

/* Transposes columns begin to end - 1 of four rows. */
static void four_rows(const uint8_t *in, uint8_t *out, uint32_t rows, uint32_t columns,
                      uint32_t begin, uint32_t end)
{
    const uint8_t *x0 = in + begin, *x1 = x0 + columns, *x2 = x1 + columns, *x3 = x2 + columns;
    uint8_t *to = out + begin * rows;
    const uint8_t *const last = in + end;
    while (x0 != last) {
        int32_t values[4] = {*x0, *x1, *x2, *x3};
        cluster_hold_all(values, 4);
        for (uint32_t i = 0; i < 4; i++) {
            to[i] = (uint8_t)values[i];
        }
        x0++;
        x1++;
        x2++;
        x3++;
        to += rows;
        CLUSTER_HOLD3(x0, x1, x2);
        CLUSTER_HOLD(x3);
        CLUSTER_HOLD(to);
    }
}

void cluster_transpose(const void *args, uint32_t core, uint32_t cores)
{
    const cluster_transpose_t *const t = args;
    const cluster_share_t part = cluster_share(t->columns, core, cores);
    const uint8_t *const in = t->in;
    uint8_t *const out = t->out;
    const uint32_t rows = t->rows, columns = t->columns, whole = rows & ~3u;
    const uint32_t start = cluster_start(whole, core, cores);
    CLUSTER_TURNS(at, end, 0, start, whole) {
        for (; at < end; at += 4) {
            four_rows(in + at * columns, out + at, rows, columns, part.begin, part.end);
        }
    }
    for (uint32_t row = whole; row < rows; row++) {
        for (uint32_t column = part.begin; column < part.end; column++) {
            out[column * rows + row] = in[row * columns + column];
        }
    }
}
