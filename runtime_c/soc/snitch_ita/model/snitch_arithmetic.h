/* The arithmetic of ITA on matrices in L1, without checks of addresses and without time. */
#ifndef SNITCH_ARITHMETIC_H
#define SNITCH_ARITHMETIC_H

#include <stdbool.h>
#include <stdint.h>

#include "snitch_regs.h"

/* y = saturate(((x * mult) >> shift, rounded half up) + add). */
typedef struct {
    uint32_t mult, shift;
    int32_t add;
} snitch_requant_t;

/* Rows of bytes. */
typedef struct {
    uint8_t *first;
    uint32_t stride;
} snitch_matrix_t;

typedef struct {
    uint32_t rows, cols, inner, length;
    uint32_t operation, bias_kind, activation;
    uint32_t shift; /* the S of R(d) = (d + 2^S / 2) >> S */
    snitch_requant_t requant, act_requant;
    int32_t gelu_b, gelu_c;
    snitch_matrix_t left, right, out;
    const uint8_t *bias;
} snitch_product_t;

/* ITAMax's statistics of the rows of the last QK: for each the maximum, and the sum of the powers
 * of two while QK runs, then its reciprocal. */
typedef struct {
    int32_t maximum[SNITCH_ITA_ITA_TILE];
    uint32_t sum[SNITCH_ITA_ITA_TILE];
    uint32_t length, shift;
} snitch_statistics_t;

/* Computes the product; QK leaves its statistics, AV needs them.  Returns false if AV's left
 * operand has in `row` an element, at `column`, above the maximum that QK found there. */
bool snitch_compute(const snitch_product_t *p, snitch_statistics_t *statistics, uint32_t *row,
                    uint32_t *column);

#endif
