/* Products of matrices of bytes, whose inner dimension may be a window of taps; private to the
 * kernels.
 *
 *   out[m][k] = table[requant(bias[k] + sum over y, x, i of
 *       in[m * in_row + y * in_y + x * in_x + i] * weights[k, y * weights_y + x * weights_x + i])]
 *
 * with y < taps_y, x < taps_x, i < length.  The functions differ in where column k of the weights
 * begins, and in the distance from i to i + 1. */
#ifndef CLUSTER_PRODUCT_H
#define CLUSTER_PRODUCT_H

#include "cluster_parts.h"

typedef struct {
    const uint8_t *in;
    const int8_t *weights;
    const int32_t *bias; /* or NULL */
    uint8_t *out;
    const uint8_t *table; /* or NULL */
    const cluster_requant_t *requant;
    uint32_t flags;              /* CLUSTER_WIDE, CLUSTER_PER_CHANNEL */
    uint32_t length, taps_y, taps_x;
    uint32_t start;              /* the value of i to begin with; see CLUSTER_TURNS */
    uint32_t in_row, in_y, in_x; /* steps, in bytes */
    uint32_t weights_pitch, weights_y, weights_x;
    uint32_t out_row, out_column;
    uint32_t rows;
    cluster_share_t columns;
} cluster_product_t;

/* in is int8 or uint8; column k of the weights begins at weights + k * weights_pitch, with its
 * elements one after another ("rows"), or at weights + k, with its elements weights_pitch bytes
 * from each other ("columns"; one tap). */
void cluster_product_s8_rows(const cluster_product_t *what);
void cluster_product_u8_rows(const cluster_product_t *what);
void cluster_product_s8_columns(const cluster_product_t *what);
void cluster_product_u8_columns(const cluster_product_t *what);

/* Requantizes and stores sums of `rows` rows from `row` on, each of `columns` columns. */
void cluster_product_store(const cluster_product_t *what, const int32_t *sums, uint32_t row,
                          uint32_t column, uint32_t rows, uint32_t columns);

#endif
