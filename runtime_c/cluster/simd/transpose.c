/* cluster_transpose for cores with SIMD: blocks of 4 x 4. */
#include "cluster_kernels.h"
#include "cluster_records.h"
#include "htvm_transpose.h"

/* Columns x to end - 1 of the rows from `row` on. */
static void copy_rest(const cluster_transpose_t *t, uint32_t x, uint32_t end, uint32_t row)
{
    const uint8_t *const in = t->in;
    uint8_t *const out = t->out;
    for (; row < t->rows; row++) {
        for (uint32_t column = x; column < end; column++) {
            out[column * t->rows + row] = in[row * t->columns + column];
        }
    }
}

void cluster_transpose(const void *args, uint32_t core, uint32_t cores)
{
    const cluster_transpose_t *const t = args;
    const uint32_t rows = t->rows, columns = t->columns;
    cluster_share_t part = cluster_share(cluster_words(columns), core, cores);
    part.begin *= 4u;
    part.end = 4u * part.end < columns ? 4u * part.end : columns;
    if (part.begin >= part.end) {
        return;
    }
    const uint8_t *const in = t->in;
    const uint32_t whole = rows & ~3u, next = 4u * columns;
    const htvm_transposed_t transposed = {whole / 4u, rows, 4, 0};
    uint32_t x = part.begin;
    for (; x + 4 <= part.end; x += 4) {
        const uint8_t *const from = in + x;
        const htvm_rows_t four = {
            {from, from + columns, from + 2 * columns, from + 3 * columns},
            {next, next, next, next},
        };
        htvm_transpose(&transposed, &four, (uint8_t *)t->out + x * rows);
        copy_rest(t, x, x + 4, whole);
    }
    copy_rest(t, x, part.end, 0);
}
