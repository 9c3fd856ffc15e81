/* ReLU on the cores, for results of N-EUREKA, which clips to all of int8 or uint8. */
#ifndef SIRACUSA_NEUREKA_RELU_H
#define SIRACUSA_NEUREKA_RELU_H

#include <stdint.h>

/* `rows` rows of `bytes` int8, one every `pitch` bytes. */
typedef struct {
    void *data;
    uint32_t rows, bytes, pitch;
} siracusa_neureka_relu_t;

/* Kernel (see cluster.h): replaces what is negative by 0, in place. */
void siracusa_neureka_relu(const void *args, uint32_t core, uint32_t cores);

#endif
