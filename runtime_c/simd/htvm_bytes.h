/* Functions of bytes, one after another. */
#ifndef HTVM_BYTES_H
#define HTVM_BYTES_H

#include <stdint.h>

/* out[i] = table[in[i]]; in and out may be the same. */
void htvm_look_up(const uint8_t *in, uint8_t *out, const uint8_t *table, uint32_t count);

/* Copies `count` words; neither address need be aligned. */
void htvm_copy_words(uint8_t *out, const uint8_t *in, uint32_t count);

/* Copies windows of an image, each of rows of words; none of the addresses need be aligned.  What a
 * row has beyond out_row is overwritten by the next one, and so are windows. */
typedef struct {
    uint32_t rows, words;         /* both at least 1 */
    uint32_t in_row, out_row;     /* distances in bytes */
    uint32_t in_window, out_window;
} htvm_windows_t;

void htvm_copy_windows(const htvm_windows_t *what, uint8_t *out, const uint8_t *in, uint32_t count);

/* Copies `count` bytes. */
void htvm_copy(uint8_t *out, const uint8_t *in, uint32_t count);

/* Sets `count` words. */
void htvm_fill_words(uint8_t *out, uint32_t word, uint32_t count);

#endif
