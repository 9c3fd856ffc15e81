/* siracusa_neureka_keep: pixels are words where channels are, else bytes. */
#include "siracusa_neureka_keep.h"

#include "siracusa_neureka_words.h"

static void keep_words(word_t *to, const word_t *from, uint32_t words, int relu)
{
    for (; words >= 2; words -= 2, to += 2, from += 2) {
        const uint32_t a = from[0], b = from[1];
        to[0] = relu ? clipped(a) : a;
        to[1] = relu ? clipped(b) : b;
    }
    if (words != 0) {
        *to = relu ? clipped(*from) : *from;
    }
}

static void keep_bytes(int8_t *to, const int8_t *from, uint32_t bytes, int relu)
{
    for (uint32_t at = 0; at < bytes; at++) {
        to[at] = relu && from[at] < 0 ? 0 : from[at];
    }
}

void siracusa_neureka_keep(const void *args, uint32_t core, uint32_t cores)
{
    const siracusa_neureka_keep_t *const keep = args;
    const uint32_t bytes = keep->bytes, pixels = keep->rows * keep->columns;
    const uint32_t each = (pixels + cores - 1u) / cores, begin = core * each;
    const uint32_t end = begin + each < pixels ? begin + each : pixels;
    const int in_words = ((uint32_t)(uintptr_t)keep->to & 3u) == 0 && bytes % 4u == 0 &&
                         ((uint32_t)(uintptr_t)keep->from & 3u) == 0;
    uint32_t row = begin / keep->columns, column = begin % keep->columns;
    for (uint32_t pixel = begin; pixel < end; pixel++) {
        int8_t *const to = (int8_t *)keep->to + pixel * bytes;
        const int8_t *const from =
            (const int8_t *)keep->from + 2u * row * keep->from_row + 2u * column * bytes;
        if (in_words) {
            keep_words((word_t *)(void *)to, (const word_t *)(const void *)from, bytes / 4u,
                       keep->relu != 0);
        } else {
            keep_bytes(to, from, bytes, keep->relu != 0);
        }
        if (++column == keep->columns) {
            column = 0;
            row++;
        }
    }
}
