/* DIANA: words of activations in the accelerator's layout: four columns, the first in the highest
 * byte.
 *
 * Bytes are copied one by one: on a core without byte permutations, two accesses are cheaper than
 * packing or unpacking a word.  All loads come before the stores, so that none of them stalls.
 */
#ifndef DIANA_LAYOUT_H
#define DIANA_LAYOUT_H

#include <stdint.h>

/* Writes the word of columns a, b, c, d. */
static inline void diana_put_word(uint8_t *word, uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
    word[3] = a;
    word[2] = b;
    word[1] = c;
    word[0] = d;
}

/* Copies the first `columns` (1 to 4) columns of a word to bytes that are `step` apart. */
static inline void diana_get_word(const uint8_t *word, uint8_t *to, uint32_t step,
                                  uint32_t columns)
{
    const uint8_t a = word[3], b = word[2], c = word[1], d = word[0];
    to[0] = a;
    if (columns > 1) {
        to[step] = b;
    }
    if (columns > 2) {
        to[2 * step] = c;
    }
    if (columns > 3) {
        to[3 * step] = d;
    }
}

#if defined(__GNUC__) /* and Clang */
typedef uint32_t __attribute__((may_alias)) diana_word_t;

/* Returns a word of the layout; its address is aligned. */
static inline uint32_t diana_word(const void *at)
{
    return *(const diana_word_t *)at;
}
#else
static inline uint32_t diana_word(const void *from)
{
    const uint8_t *const at = from;
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}
#endif

/* Sums of the bytes of words: of the lowest and the third in the halves of `even`, and of words
 * without their lowest byte, which are less work than the sums of the other two. */
typedef struct {
    uint32_t even, shifted;
} diana_sums_t;

/* Adds a word to sums of at most 256 words. */
static inline void diana_add(diana_sums_t *sums, uint32_t word)
{
    sums->even += word & 0x00FF00FFu;
    sums->shifted += word >> 8;
}

/* Returns the sum of all bytes. */
static inline int32_t diana_total(const diana_sums_t *sums)
{
    const uint32_t third = sums->even >> 16, odd = sums->shifted - (third << 8);
    return (int32_t)((sums->even & 0xFFFFu) + third + (odd & 0xFFFFu) + (odd >> 16));
}

#endif
