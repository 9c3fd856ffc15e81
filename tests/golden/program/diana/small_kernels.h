/* small: the functions the entry function calls. */
#ifndef SMALL_KERNELS_H
#define SMALL_KERNELS_H

#include <stdint.h>

void small_mean(const int8_t *restrict in0, int8_t *restrict out);
void small_softmax(const int8_t *restrict in0, const int32_t *restrict exponential, int8_t *restrict out);
int32_t small_input_0_to_core(const int8_t *in, int8_t *out);
int32_t small_conv_1_0(const int8_t *in);
int32_t small_conv_2_0(void);
int32_t small_add(int8_t *out);
int32_t small_add_from_core(const int8_t *in, int8_t *out);
int32_t small_flat_to_core(const int8_t *in, int8_t *out);
int32_t small_dense(const int8_t *in, int8_t *out);
int32_t small_dense_from_core(const int8_t *in, int8_t *out);

#endif
