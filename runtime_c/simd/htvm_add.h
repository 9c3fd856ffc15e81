/* Sums of elements, requantized. */
#ifndef HTVM_ADD_H
#define HTVM_ADD_H

#include <stdbool.h>
#include <stdint.h>

/* out[i] = clip((sum of all in[n][i] * mul + add) >> shift, low, high).  Operands are int8 or uint8;
 * the limits are within those of int8 or of uint8.
 *
 * A table has the results of all sums of two operands, from the lowest sum on: -256 if operands are
 * int8, else 0.  To look up is faster than to multiply, add, shift and clip. */
typedef struct {
    const void *const *in;
    const uint8_t *table; /* 511 bytes; NULL: none, or other than two operands */
    uint32_t operands;
    int32_t mul, add;
    uint32_t shift; /* 0 to 31; wide: 0 to 63 */
    int32_t low, high;
    bool in_unsigned;
    bool wide; /* what is shifted may exceed 32 bits */
} htvm_add_t;

/* Computes elements `at` to end - 1. */
void htvm_add(const htvm_add_t *what, uint8_t *out, uint32_t at, uint32_t end);

#endif
