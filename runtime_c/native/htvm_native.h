/* Convolutions of the host platform, with this machine's own products of bytes.
 *
 * They compute what the generated kernels compute, which are written for microcontrollers, bit for
 * bit: int32 sums of products of int8, which wrap around.
 */
#ifndef HTVM_NATIVE_H
#define HTVM_NATIVE_H

#include <stdint.h>

/* A convolution without padding: sizes in elements, all at least 1. */
typedef struct {
    int32_t channels, height, width; /* of the input */
    int32_t filters, rows, columns;  /* of the output */
    int32_t fy, fx;                  /* of a filter */
    int32_t stride_y, stride_x, dilation_y, dilation_x;
} htvm_native_conv_t;

/* What the products of this build are made of, for messages. */
const char *htvm_native_kind(void);

/* Returns room for the sums of one convolution, which the next call gives away again. */
int32_t *htvm_native_sums(uint32_t count);

/* out[k][oy][ox] = bias[k] + sum over c, fy, fx of in[c][oy * stride_y + fy * dilation_y][...] *
 * weight[k][c][fy][fx].  Without a bias if it is null. */
void htvm_native_conv(const int8_t *in, const int8_t *weight, const int32_t *bias, int32_t *out,
                      const htvm_native_conv_t *conv);

/* The same of a depthwise convolution: each channel has one filter, weight[k][fy][fx]; `channels` and
 * `filters` are equal. */
void htvm_native_depthwise(const int8_t *in, const int8_t *weight, const int32_t *bias, int32_t *out,
                           const htvm_native_conv_t *conv);

#endif
