/* Products of one vector with the rows of a matrix. */
#ifndef HTVM_VECTOR_H
#define HTVM_VECTOR_H

#include <stdbool.h>
#include <stdint.h>

/* out[k] = clip((in . row k * mul + add) >> shift, low, high), for `quads` times four rows of `words`
 * times four int8 elements without gaps; both are at least 1.  What is shifted wraps around at 32
 * bits, and shift is at most 31.  No address need be aligned. */
typedef struct {
    const uint8_t *in, *rows;
    uint8_t *out;
    uint32_t words, quads;
    int32_t mul, add;
    uint32_t shift;
    int32_t low, high;
    bool in_unsigned;
} htvm_vector_t;

void htvm_vector(const htvm_vector_t *what);

#endif
