/* tiny: what generated code calls.  Places in L1 are byte offsets. */
#ifndef TINY_DRIVER_H
#define TINY_DRIVER_H

#include <stdint.h>

#include "htvm_soc.h"

/* out[row][k] = clip((sum over c of input[row][c] * weights[k][c] + bias[k]) >> shift); `weights`
 * begins with the biases, int32; rows of the result are `pitch` bytes apart. */
typedef struct {
    uint32_t input, weights, out;
    uint32_t rows, k, c, pitch, shift;
    int32_t low, high;
} tiny_product_t;

/* Starts a product; the device is idle. */
void tiny_start(const tiny_product_t *product);

/* Waits for it; 0, or TINY_STATUS_ERROR if the device refused. */
int32_t tiny_finish(void);

/* L2 -> L1. */
void tiny_load(uint32_t l1, const void *from, uint32_t bytes);

/* L1 -> L2: rows of `bytes` bytes, one after another in L1, `pitch` bytes apart in L2. */
void tiny_store(int8_t *to, uint32_t pitch, uint32_t l1, uint32_t rows, uint32_t bytes);

#endif
