/* cluster_transpose for cores with SIMD: blocks of 4 x 4. */
#include "cluster_kernels.h"
#include "cluster_records.h"
#include "htvm_transpose.h"

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
    const uint8_t *const in = (const uint8_t *)t->in + part.begin;
    uint8_t *const out = (uint8_t *)t->out + part.begin * rows;
    const uint32_t count = part.end - part.begin, whole = count & ~3u;
    const htvm_transposed_t transposed = {whole / 4u, rows, 4u * rows, 0};
    uint32_t row = 0;
    for (; row + 4 <= rows; row += 4) {
        const uint8_t *const from = in + row * columns;
        const htvm_rows_t four = {
            {from, from + columns, from + 2 * columns, from + 3 * columns}, {4, 4, 4, 4},
        };
        htvm_transpose(&transposed, &four, out + row);
        for (uint32_t i = 0; i < 4; i++) {
            for (uint32_t x = whole; x < count; x++) {
                out[x * rows + row + i] = from[i * columns + x];
            }
        }
    }
    for (; row < rows; row++) {
        for (uint32_t x = 0; x < count; x++) {
            out[x * rows + row] = in[row * columns + x];
        }
    }
}
