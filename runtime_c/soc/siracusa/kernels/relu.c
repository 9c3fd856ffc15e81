/* siracusa_neureka_relu: four bytes at a time. */
#include "siracusa_neureka_relu.h"

#include <string.h>

static void clip(int8_t *data, uint32_t bytes)
{
    uint32_t at = 0;
    for (; at < bytes && ((uintptr_t)(data + at) & 3u) != 0; at++) {
        data[at] = data[at] < 0 ? 0 : data[at];
    }
    for (; at + 4u <= bytes; at += 4u) {
        uint32_t word;
        memcpy(&word, __builtin_assume_aligned(data + at, 4), sizeof word);
        /* The sign of each byte, then all bits of those that are negative. */
        const uint32_t negative = word >> 7 & 0x01010101u;
        word &= ~(negative * 255u);
        memcpy(__builtin_assume_aligned(data + at, 4), &word, sizeof word);
    }
    for (; at < bytes; at++) {
        data[at] = data[at] < 0 ? 0 : data[at];
    }
}

void siracusa_neureka_relu(const void *args, uint32_t core, uint32_t cores)
{
    const siracusa_neureka_relu_t *const relu = args;
    int8_t *const data = relu->data;
    if (relu->rows == 1) {
        /* Shares of whole words, but for the last. */
        const uint32_t share = ((relu->bytes + cores - 1u) / cores + 3u) & ~3u;
        const uint32_t begin = core * share;
        if (begin < relu->bytes) {
            clip(data + begin, relu->bytes - begin < share ? relu->bytes - begin : share);
        }
        return;
    }
    for (uint32_t row = core; row < relu->rows; row += cores) {
        clip(data + row * relu->pitch, relu->bytes);
    }
}
