/* small: constants, 2160 bytes. */
#ifndef SMALL_WEIGHTS_H
#define SMALL_WEIGHTS_H

#include <stdint.h>

extern const uint8_t small_conv_1_0_weights[496]; /* weights and biases of conv/1:0, 496 B */
extern const uint8_t small_conv_2_0_weights[128]; /* weights and biases of conv/2:0, 128 B */
extern const uint8_t small_dense_weights[512]; /* weights and biases of dense, 512 B */
extern const int32_t small_softmax_exponential[256]; /* exponential of softmax, int32 256, 1024 B */

#endif
