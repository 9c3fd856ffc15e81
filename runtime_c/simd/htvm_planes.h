/* Depthwise convolutions of int8, which work on planes (CHW), and changes of layout around them.
 *
 * A depthwise convolution sums over neighbours of the same channel.  Four neighbours are a word only
 * if each channel is a plane, so images in HWC are turned into padded planes before, and back.
 */
#ifndef HTVM_PLANES_H
#define HTVM_PLANES_H

#include <stdint.h>

#include "htvm_product.h"

/* Planes of an image: rows are word-aligned. */
typedef struct {
    uint32_t row, plane; /* distances in bytes, multiples of 4 */
} htvm_planes_t;

/* Copies an HWC image of y * x pixels, `pixel` bytes from one to the next, into planes with at least
 * `top` rows above it and `left` columns before it; all other bytes of the k planes are set to
 * `border`.  k and pixel are multiples of 4, and pixel >= k; planes.row >= left + x and planes.plane
 * >= (top + y) * planes.row.  `in` is word-aligned. */
typedef struct {
    const int8_t *in;
    int8_t *out; /* word-aligned */
    uint32_t k, y, x, pixel;
    uint32_t top, left;
    htvm_planes_t planes;
    int8_t border;
} htvm_to_planes_t;

/* The reverse: copies planes of y * x elements, without margins, into an HWC image.  k and pixel are
 * multiples of 4, and pixel >= k; what is between pixels is left as it is. */
typedef struct {
    const int8_t *in; /* word-aligned */
    int8_t *out;      /* word-aligned */
    uint32_t k, y, x, pixel;
    htvm_planes_t planes;
} htvm_from_planes_t;

/* out[k][y][x] = requant(bias[k] + sum over the filter's taps of in[k][y * stride + fy][x * stride +
 * fx] * weights[k][fy][fx]).  A row of `in` has at least 4 bytes behind the last one that a sum needs:
 * they may be read, with no effect.  out_planes.row is at least ox rounded up to a multiple of 4: the
 * bytes between may be overwritten.  fy, fx and stride are at least 1; the others may be 0.  `out`
 * must not overlap an operand. */
typedef struct {
    const int8_t *in;      /* word-aligned */
    const int8_t *weights; /* [k][fy][fx] */
    const int32_t *bias;
    int8_t *out; /* word-aligned */
    uint32_t k, oy, ox, fy, fx, stride;
    htvm_planes_t in_planes, out_planes;
    htvm_requant_t requant;
} htvm_depthwise_t;

void htvm_to_planes(const htvm_to_planes_t *what);
void htvm_from_planes(const htvm_from_planes_t *what);

void htvm_depthwise_shift(const htvm_depthwise_t *what);
void htvm_depthwise_multiply(const htvm_depthwise_t *what);
void htvm_depthwise_tflite(const htvm_depthwise_t *what);

#endif
