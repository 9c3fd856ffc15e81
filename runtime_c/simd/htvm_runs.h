/* Runs of bytes: of known length, so that compilers move short ones without a call. */
#ifndef HTVM_RUNS_H
#define HTVM_RUNS_H

#include <stdint.h>
#include <string.h>

#include "htvm_simd.h"

/* Copies bytes to a place that does not overlap theirs. */
HTVM_INLINE void htvm_copy(int8_t *to, const int8_t *from, uint32_t count)
{
    memcpy(to, from, count);
}

/* Writes the same byte everywhere. */
HTVM_INLINE void htvm_fill(int8_t *to, int8_t value, uint32_t count)
{
    memset(to, value, count);
}

#endif
