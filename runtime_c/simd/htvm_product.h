/* Products of rows of int8 with packed weights: convolutions, 1x1 convolutions, dense layers.
 *
 * The rows are those of an image in HWC that is padded already.  As the bytes of the taps beside
 * each other (fx * C) are one run, no copy of the windows (im2col) is made: output pixel (y, x) is
 * the requantized bias plus the sum over tap rows fy of a product of `run` bytes at in + y * in_row +
 * x * in_pixel + fy * in_tap.  `out` must not overlap an operand: some pixels are computed twice.
 * A matrix of M rows is an image with M pixels in a row and one tap row.
 */
#ifndef HTVM_PRODUCT_H
#define HTVM_PRODUCT_H

#include <stdint.h>

/* How an int32 sum becomes int8.  The result is limited to low..high; -128 <= low <= high <= 127. */
typedef struct {
    int32_t low, high;
    /* *_shift: sum >> shift.
     * *_multiply: (sum * mul + add) >> shift; the product and the sum wrap around. */
    int32_t mul, add;
    uint32_t shift; /* 0 to 31 */
    /* *_tflite: TFLite's, with double rounding.  For each output channel a Q31 multiplier (at least
     * 0) and an exponent (-31 to 31; positive: to the left), and the output's zero point. */
    const int32_t *multipliers;
    const int8_t *exponents;
    int32_t zero_point;
} htvm_requant_t;

typedef struct {
    const int8_t *in;      /* word-aligned */
    const int8_t *weights; /* [ceil(k / 4)][taps][run / 4][4 channels][4 bytes], word-aligned */
    const int32_t *bias;   /* ceil(k / 4) * 4 entries */
    int8_t *out;
    uint32_t rows, pixels, k;          /* may be 0 */
    uint32_t taps, run;                /* tap rows, at least 1; bytes of each: 4, 8, ... */
    uint32_t in_row, in_pixel, in_tap; /* distances in bytes, multiples of 4 */
    uint32_t out_row, out_pixel;       /* distances in bytes */
    htvm_requant_t requant;
} htvm_product_t;

void htvm_product_shift(const htvm_product_t *what);
void htvm_product_multiply(const htvm_product_t *what);
void htvm_product_tflite(const htvm_product_t *what);

#endif
