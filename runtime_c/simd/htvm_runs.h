/* Runs of bytes.  Short ones, whose length is known, become a few instructions where they are. */
#ifndef HTVM_RUNS_H
#define HTVM_RUNS_H

#include <stdint.h>
#include <string.h>

#include "htvm_simd.h"

enum { HTVM_SHORT_RUN = 8 };

HTVM_SHARED void htvm_copy_run(int8_t *to, const int8_t *from, uint32_t count)
{
    memcpy(to, from, count);
}

HTVM_SHARED void htvm_fill_run(int8_t *to, int32_t value, uint32_t count)
{
    memset(to, value, count);
}

/* Copies bytes to a place that does not overlap theirs. */
HTVM_INLINE void htvm_copy(int8_t *to, const int8_t *from, uint32_t count)
{
    if (count <= HTVM_SHORT_RUN) {
        memcpy(to, from, count);
    } else {
        htvm_copy_run(to, from, count);
    }
}

/* Writes the same byte everywhere. */
HTVM_INLINE void htvm_fill(int8_t *to, int8_t value, uint32_t count)
{
    if (count <= HTVM_SHORT_RUN) {
        memset(to, value, count);
    } else {
        htvm_fill_run(to, value, count);
    }
}

#endif
