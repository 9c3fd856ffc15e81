/* What the kernels share; private to them. */
#ifndef SNITCH_PARTS_H
#define SNITCH_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "snitch_kernels.h"

/* Functions whose constant arguments make several functions of one. */
#define SNITCH_INLINE static inline __attribute__((always_inline))

/* Generates nothing, but the compiler must have these values in registers here.  Without, it puts
 * the additions of unrolled sums into another order, moves loads up until registers run out, and
 * replaces pointers by sums of pointers and counters: 5 cycles per MAC instead of 3.  HOLD3 also
 * keeps loads and stores on their side. */
#define SNITCH_HOLD(a) __asm__ volatile("" : "+r"(a))
#define SNITCH_HOLD3(a, b, c) __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c) : : "memory")

/* A core's part of `count` things: from begin to end - 1, possibly none. */
typedef struct {
    uint32_t begin, end;
} snitch_share_t;

SNITCH_INLINE snitch_share_t snitch_share(uint32_t count, uint32_t core, uint32_t cores)
{
    const uint32_t each = count / cores, left = count - each * cores;
    const uint32_t begin = core * each + (core < left ? core : left);
    const snitch_share_t share = {begin, begin + each + (core < left ? 1u : 0u)};
    return share;
}

/* Whether a result of so many rows and columns is shared by columns: where the rows are too few to
 * give each core a block of four. */
SNITCH_INLINE bool snitch_by_columns(uint32_t rows, uint32_t columns, uint32_t cores)
{
    return rows < 4u * cores && columns > rows;
}

SNITCH_INLINE int32_t snitch_byte(const uint8_t *p, uint32_t at, bool is_unsigned)
{
    return is_unsigned ? (int32_t)p[at] : (int32_t)((const int8_t *)p)[at];
}

SNITCH_INLINE int32_t snitch_clip(int32_t value, int32_t low, int32_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* clip((value * mul + add) >> shift, low, high); shift below 32, or below 64 where wide. */
SNITCH_INLINE int32_t snitch_requantize(int32_t value, int32_t mul, int32_t add, uint32_t shift,
                                        int32_t low, int32_t high, bool wide)
{
    if (wide) {
        const int64_t result = ((int64_t)value * mul + add) >> shift;
        return result < low ? low : result > high ? high : (int32_t)result;
    }
    return snitch_clip((value * mul + add) >> shift, low, high);
}


#endif
