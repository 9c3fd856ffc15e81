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

#endif
