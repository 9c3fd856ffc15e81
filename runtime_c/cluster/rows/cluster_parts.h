/* Code shared by the kernels, and private to them. */
#ifndef CLUSTER_PARTS_H
#define CLUSTER_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "htvm_soc.h"
#include "cluster_kernels.h"
#include "cluster_share.h"

/* The number of bytes after which the banks of L1 repeat. */
#define CLUSTER_BANKS_BYTES (HTVM_CLUSTER_BANKS * HTVM_CLUSTER_BANK_BYTES)

/* Generates nothing, but the compiler must have these values in registers here.  Without, it puts
 * the additions of unrolled sums into another order, moves loads up until registers run out, and
 * replaces pointers by sums of pointers and counters: 5 cycles per MAC instead of 3.  HOLD3 also
 * keeps loads and stores on their side. */
#define CLUSTER_HOLD(a) __asm__ volatile("" : "+r"(a))
#define CLUSTER_HOLD3(a, b, c) __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c) : : "memory")

/* The number of elements that row functions compute together, so that no load or multiplication
 * stalls; the remaining ones are computed one by one. */
#define CLUSTER_LANES 4u

CLUSTER_INLINE void cluster_hold_all(int32_t *values, uint32_t lanes)
{
    for (uint32_t i = 0; i < lanes; i++) {
        CLUSTER_HOLD(values[i]);
    }
}

/* Returns how far from the beginning of n elements a core starts.  If all cores started at the
 * beginning of their shares, they would access the same bank of L1 all the time, because most sizes
 * are multiples of the number of banks.  So each starts elsewhere, and wraps around. */
CLUSTER_INLINE uint32_t cluster_start(uint32_t n, uint32_t core, uint32_t cores)
{
    return core * cluster_each(n, cores) & ~3u;
}

/* The same for a share; each core starts at another bank. */
CLUSTER_INLINE uint32_t cluster_skew(cluster_share_t part, uint32_t core, uint32_t cores)
{
    const uint32_t skew = core * cluster_each(CLUSTER_BANKS_BYTES, cores) & ~3u;
    const uint32_t length = part.end - part.begin;
    return skew < length ? skew : 0;
}

/* Executes a block for the range from `start` to last - 1 (as at to end - 1), then for the one from
 * first to start - 1, if it is not empty. */
#define CLUSTER_TURNS(at, end, first, start, last)                                                 \
    for (uint32_t at = (start), end = (last), turn_ = at == (first) ? 1u : 0u; turn_ < 2; turn_++, \
                  at = (first), end = (start))

/* Whether a result with this number of rows and columns is shared by columns, because there are too
 * few rows to give each core a block of four. */
CLUSTER_INLINE bool cluster_by_columns(uint32_t rows, uint32_t columns, uint32_t cores)
{
    return rows < 4u * cores && columns > rows;
}

/* Shares of functions of rows.  One or two rows are shared by columns, although each core then
 * computes the statistics of whole rows. */
typedef struct {
    cluster_share_t rows, columns;
    uint32_t start; /* the first column to compute */
} cluster_rows_t;

CLUSTER_INLINE cluster_rows_t cluster_share_rows(uint32_t rows, uint32_t n, uint32_t core,
                                              uint32_t cores)
{
    cluster_rows_t part = {{0, rows}, {0, n}, 0};
    if (4u * rows <= cores) {
        part.columns = cluster_share(n, core, cores);
        part.start = part.columns.begin;
    } else {
        part.rows = cluster_share(rows, core, cores);
        part.start = cluster_start(n, core, cores);
    }
    return part;
}

CLUSTER_INLINE int32_t cluster_byte(const uint8_t *p, uint32_t at, bool is_unsigned)
{
    return is_unsigned ? (int32_t)p[at] : (int32_t)((const int8_t *)p)[at];
}

/* Saturation is the exception: two branches that are not taken. */
#define CLUSTER_RARELY(condition) __builtin_expect((condition), 0)

CLUSTER_INLINE int32_t cluster_clip(int32_t value, int32_t low, int32_t high)
{
    if (CLUSTER_RARELY(value < low)) {
        value = low;
    }
    if (CLUSTER_RARELY(value > high)) {
        value = high;
    }
    return value;
}

/* clip((value * mul + add) >> shift, low, high); shift below 32, or below 64 where wide. */
CLUSTER_INLINE int32_t cluster_requantize(int32_t value, int32_t mul, int32_t add, uint32_t shift,
                                        int32_t low, int32_t high, bool wide)
{
    if (wide) {
        const int64_t result = ((int64_t)value * mul + add) >> shift;
        return result < low ? low : result > high ? high : (int32_t)result;
    }
    return cluster_clip((value * mul + add) >> shift, low, high);
}


/* Returns the largest of `largest` and all elements. */
CLUSTER_INLINE int32_t cluster_maximum(const uint8_t *in, uint32_t count, int32_t largest,
                                     bool is_unsigned)
{
    for (; count >= CLUSTER_LANES; count -= CLUSTER_LANES) {
        int32_t x[CLUSTER_LANES];
        for (uint32_t i = 0; i < CLUSTER_LANES; i++) {
            x[i] = cluster_byte(in, i, is_unsigned);
        }
        cluster_hold_all(x, CLUSTER_LANES);
        for (uint32_t i = 0; i < CLUSTER_LANES; i++) {
            if (CLUSTER_RARELY(x[i] > largest)) {
                largest = x[i];
            }
        }
        in += CLUSTER_LANES;
        CLUSTER_HOLD(in);
    }
    for (uint32_t i = 0; i < count; i++) {
        const int32_t x = cluster_byte(in, i, is_unsigned);
        largest = x > largest ? x : largest;
    }
    return largest;
}

#endif
