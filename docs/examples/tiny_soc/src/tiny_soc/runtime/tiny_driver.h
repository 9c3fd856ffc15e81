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

/* Starts a transfer L2 -> L1, and returns its ticket.  Until it is done, nobody may write the
 * bytes in L2, nor touch those in L1. */
uint32_t tiny_load(uint32_t l1, const void *from, uint32_t bytes);

/* The same L1 -> L2: rows of `bytes` bytes, one after another in L1, `pitch` bytes apart in L2.
 * Until it is done, nobody may write the bytes in L1, nor touch those in L2. */
uint32_t tiny_store(int8_t *to, uint32_t pitch, uint32_t l1, uint32_t rows, uint32_t bytes);

/* Waits for the transfer with this ticket, and so for all before it. */
void tiny_wait(uint32_t ticket);

/* Waits for all transfers. */
void tiny_wait_all(void);

#endif
