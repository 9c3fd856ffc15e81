/* Products of runs of bytes with packed weights: the block that convolutions, matrix products and
 * dense layers are made of.
 *
 * Weights are packed in quads, records of four channels, one after another:
 *
 *   int8_t weights[taps][words][4 channels][4];
 *   struct { int32_t mul, add, shift; } factors[4];
 *   int32_t bias[4];
 *
 * The weights of a channel are those of one window in the order of its bytes, with zeros up to a
 * multiple of 4; quads begin on words, and the last one has zeros for the channels that are missing.
 * So one pointer, which only goes forward, reaches all constants.
 *
 * The window of output pixel x is `taps` runs of bytes, in_tap apart, that begin at in + x * in_pixel.
 * Runs have multiples of 4 bytes, but for the last one, of which `words` ends in 1 to 3 bytes that
 * are multiplied by 0: they are read, and may be behind the operand.  Neither operand nor result need
 * be aligned, but each access across words takes a cycle more.
 */
#ifndef HTVM_QUADS_H
#define HTVM_QUADS_H

#include <stdbool.h>
#include <stdint.h>

#define HTVM_QUAD 4u

/* How sums become bytes, between `low` and `high`. */
typedef enum {
    /* (sum * mul + add) >> shift, where the sum wraps around at 32 bits; shift <= 31.  Biases are 0:
     * bias * mul is a part of add, and may have wrapped around, too. */
    HTVM_QUADS_NARROW,
    HTVM_QUADS_WIDE, /* the same in 64 bits, with a bias; shift <= 63 */
    /* TFLite's, with double rounding: mul is a Q31 multiplier (at least 0), shift an exponent (-31 to
     * 31; positive: to the left), add the zero point of the result. */
    HTVM_QUADS_TFLITE,
} htvm_quads_scaling_t;

typedef struct {
    const uint8_t *quads; /* on a word */
    const uint8_t *table; /* 256 bytes, or NULL: out = table[byte] */
    uint32_t k;           /* channels */
    uint32_t taps, words; /* both at least 1; words of each run */
    uint32_t before, after; /* bytes of a quad's weights before and behind those of these taps */
    uint32_t in_tap, in_pixel, out_pixel, out_channel; /* distances in bytes */
    int32_t low, high;    /* within those of int8 or of uint8 */
    htvm_quads_scaling_t scaling;
    bool in_unsigned;
} htvm_quads_t;

/* Returns the bytes of a quad whose (whole) windows have this number of words. */
static inline uint32_t htvm_quad_bytes(uint32_t words)
{
    return 4u * HTVM_QUAD * words + 64u;
}

/* Computes all channels of `pixels` pixels beside each other. */
void htvm_quads(const htvm_quads_t *what, const uint8_t *in, uint8_t *out, uint32_t pixels);

#endif
