/* Strips: the rows of a map that a chain of operators still reads, contiguous, with their padding.
 *
 * A strip has room for some rows.  When it is full, the rows that nobody reads any more are dropped, and
 * the others move to its beginning.  Rows are numbered as in the map; padding above the first row has
 * negative numbers.  A whole map is a strip with room for all of its rows.
 */
#ifndef HTVM_CHAIN_H
#define HTVM_CHAIN_H

#include <stddef.h>
#include <stdint.h>

#define HTVM_CHAIN_WAITS 1          /* no error: the next row of the input has not come yet */
#define HTVM_CHAIN_NO_ROOM (-16)    /* all rows of a full strip are still read */
#define HTVM_CHAIN_NO_ROW (-17)     /* a row is read that is not there yet, or no longer */
#define HTVM_CHAIN_OVERWRITES (-18) /* an output would overwrite a row that is still read */

typedef struct {
    int8_t *at;    /* where its first row is */
    int32_t first; /* the number of this row */
    int32_t next;  /* the number of the row that comes next */
} htvm_strip_t;

/* Words at any address, and at addresses of words. */
typedef struct __attribute__((packed, may_alias)) {
    uint32_t word;
} htvm_chain_loose_t;
typedef uint32_t __attribute__((may_alias)) htvm_chain_word_t;

/* Functions that all chains of a file share: inlined, they were half of a chain's code. */
#define HTVM_CHAIN_SHARED static __attribute__((unused, noinline))

#if defined(__thumb__)
#define HTVM_CHAIN_MOVE "ldmia %1!, {r3, r4, r5, r6}\n\tstmia %0!, {r3, r4, r5, r6}\n\t" /* four words */
#endif

/* Copies bytes; `to` may lie within what is copied if it begins before it. */
HTVM_CHAIN_SHARED void htvm_strip_copy(int8_t *to, const int8_t *from, int32_t bytes)
{
    int32_t at = 0;
    if ((((uintptr_t)to | (uintptr_t)from) & 3u) == 0u) {
#if defined(__thumb__)
        at = bytes & ~15;
        for (int32_t turns = bytes >> 6; turns > 0; turns--) {
            __asm__ volatile(HTVM_CHAIN_MOVE HTVM_CHAIN_MOVE HTVM_CHAIN_MOVE HTVM_CHAIN_MOVE
                             : "+l"(to), "+l"(from)
                             :
                             : "r3", "r4", "r5", "r6", "memory");
        }
        for (int32_t turns = (bytes >> 4) & 3; turns > 0; turns--) {
            __asm__ volatile(HTVM_CHAIN_MOVE
                             : "+l"(to), "+l"(from)
                             :
                             : "r3", "r4", "r5", "r6", "memory");
        }
        to -= at;
        from -= at;
#else
        for (; at + 16 <= bytes; at += 16) {
            const htvm_chain_word_t *const source = (const htvm_chain_word_t *)(const void *)(from + at);
            htvm_chain_word_t *const target = (htvm_chain_word_t *)(void *)(to + at);
            const uint32_t a = source[0], b = source[1], c = source[2], d = source[3];
            target[0] = a;
            target[1] = b;
            target[2] = c;
            target[3] = d;
        }
#endif
    } else {
        for (; at + 8 <= bytes; at += 8) {
            const htvm_chain_loose_t *const source = (const htvm_chain_loose_t *)(const void *)(from + at);
            htvm_chain_loose_t *const target = (htvm_chain_loose_t *)(void *)(to + at);
            const uint32_t a = source[0].word, b = source[1].word;
            target[0].word = a;
            target[1].word = b;
        }
    }
    for (; at < bytes; at++) {
        *(volatile int8_t *)(to + at) = from[at]; /* not a call of memmove, which there may not be */
    }
}

/* Sets bytes. */
HTVM_CHAIN_SHARED void htvm_strip_fill(int8_t *to, int32_t value, int32_t bytes)
{
    const uint32_t word = ((uint32_t)value & 0xffu) * 0x01010101u;
    int32_t at = 0;
    for (; at + 4 <= bytes; at += 4) {
        ((htvm_chain_loose_t *)(void *)(to + at))->word = word;
    }
    for (; at < bytes; at++) {
        *(volatile int8_t *)(to + at) = (int8_t)value;
    }
}

/* Copies pixels to wider ones, whose other channels are 0. */
HTVM_CHAIN_SHARED void htvm_strip_widen(int8_t *to, const int8_t *from, int32_t pixels, int32_t channels,
                                        int32_t wide)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (channels == 3 && wide == 4) {
        /* A word has the first byte of the next pixel, too: not the last one's. */
        for (; pixels > 1; pixels--, from += 3, to += 4) {
            const uint32_t word = ((const htvm_chain_loose_t *)(const void *)from)->word;
            ((htvm_chain_loose_t *)(void *)to)->word = word & 0xffffffu;
        }
    }
#endif
    for (; pixels > 0; pixels--, from += channels, to += wide) {
        for (int32_t c = 0; c < wide; c++) {
            to[c] = c < channels ? from[c] : 0;
        }
    }
}

/* Adds the pixels of a row to sums of each channel. */
HTVM_CHAIN_SHARED void htvm_strip_add(int32_t *sums, const int8_t *row, int32_t pixels, int32_t channels)
{
    for (int32_t c = 0; c < channels; c++) {
        int32_t sum = sums[c];
        for (int32_t x = 0; x < pixels; x++) {
            sum += row[x * channels + c];
        }
        sums[c] = sum;
    }
}

/* Returns where the next rows go, and counts them; NULL if there is no room.
 *
 *   pitch   bytes from one row to the next
 *   rows    rows for which there is room
 *   keep    the first row that is still read
 *   count   how many rows come
 */
HTVM_CHAIN_SHARED int8_t *htvm_strip_room(htvm_strip_t *strip, int32_t pitch, int32_t rows, int32_t keep,
                                          int32_t count)
{
    int32_t held = strip->next - strip->first;
    if (held + count > rows) {
        const int32_t kept = strip->next > keep ? strip->next - keep : 0;
        if (kept + count > rows) {
            return NULL;
        }
        htvm_strip_copy(strip->at, strip->at + (held - kept) * pitch, kept * pitch);
        strip->first = strip->next - kept;
        held = kept;
    }
    strip->next += count;
    return strip->at + held * pitch;
}

/* Whether `count` rows from a row on are there. */
static inline __attribute__((unused)) int htvm_strip_holds(const htvm_strip_t *strip, int32_t row,
                                                           int32_t count)
{
    return row >= strip->first && row + count <= strip->next;
}

/* Returns where a row is that is there. */
static inline __attribute__((unused)) int8_t *htvm_strip_row(const htvm_strip_t *strip, int32_t pitch,
                                                             int32_t row)
{
    return strip->at + (row - strip->first) * pitch;
}

/* Returns the first row that a reader still needs, given the number of the row that it makes next. */
static inline __attribute__((unused)) int32_t htvm_strip_from(int32_t next, int32_t stride, int32_t top)
{
    return (next > 0 ? next : 0) * stride - top;
}

/* Returns the smaller of two numbers of rows. */
static inline __attribute__((unused)) int32_t htvm_strip_least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* Whether bytes lie apart from the rows of a whole map that are still read, from row `keep` on. */
static inline __attribute__((unused)) int htvm_strip_spares(const htvm_strip_t *map, int32_t pitch,
                                                            int32_t keep, const int8_t *to, int32_t bytes)
{
    const uintptr_t low = (uintptr_t)to, high = low + (uintptr_t)bytes;
    const int32_t from = keep < map->next ? (keep > 0 ? keep : 0) : map->next;
    const uintptr_t start = (uintptr_t)map->at + (uintptr_t)(from * pitch);
    const uintptr_t end = (uintptr_t)map->at + (uintptr_t)(map->next * pitch);
    return high <= start || low >= end || start == end;
}

#endif
