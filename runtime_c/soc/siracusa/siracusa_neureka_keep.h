/* Every other pixel of every other row of a result of N-EUREKA, which computes all of them. */
#ifndef SIRACUSA_NEUREKA_KEEP_H
#define SIRACUSA_NEUREKA_KEEP_H

#include <stdint.h>

/* `rows` rows of `columns` pixels of `bytes` bytes, copied from every other pixel of every other
 * row of `from`, whose rows begin every `from_row` bytes and pixels every `bytes`, to `to`, where
 * they follow each other. */
typedef struct {
    void *to;
    const void *from;
    uint32_t rows, columns, bytes, from_row;
    uint32_t relu; /* whether negative bytes become 0 */
} siracusa_neureka_keep_t;

/* Kernel (see cluster.h). */
void siracusa_neureka_keep(const void *args, uint32_t core, uint32_t cores);

#endif
