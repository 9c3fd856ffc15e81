/* Blocks of 4 x 4 bytes are transposed. */
#ifndef HTVM_TRANSPOSE_H
#define HTVM_TRANSPOSE_H

#include <stdint.h>

/* Four rows.  From a block to the next one it is step[i] bytes in row i: 0, if all blocks are to read
 * the same word. */
typedef struct {
    const uint8_t *row[4];
    uint32_t step[4];
} htvm_rows_t;

/* Of each block, word j of the result is byte j of each row, xor `flip`.  Words are `step` bytes apart,
 * blocks `next`.  No address need be aligned. */
typedef struct {
    uint32_t blocks, step, next, flip;
} htvm_transposed_t;

void htvm_transpose(const htvm_transposed_t *what, const htvm_rows_t *rows, uint8_t *out);

#endif
