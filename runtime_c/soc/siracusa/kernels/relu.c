/* siracusa_neureka_relu: four bytes at a time. */
#include "siracusa_neureka_relu.h"

#include "siracusa_neureka_words.h"

static void clip_words(word_t *words, uint32_t count)
{
    /* Four at a time, so that no load is waited for. */
    for (; count >= 4; count -= 4, words += 4) {
        const uint32_t a = words[0], b = words[1], c = words[2], d = words[3];
        words[0] = clipped(a);
        words[1] = clipped(b);
        words[2] = clipped(c);
        words[3] = clipped(d);
    }
    for (; count != 0; count--, words++) {
        *words = clipped(*words);
    }
}

static void clip_bytes(int8_t *data, uint32_t bytes)
{
    for (uint32_t at = 0; at < bytes; at++) {
        data[at] = data[at] < 0 ? 0 : data[at];
    }
}

static void clip(int8_t *data, uint32_t bytes)
{
    const uint32_t before = (0u - (uint32_t)(uintptr_t)data) & 3u;
    if (bytes < before + 4u) {
        clip_bytes(data, bytes);
        return;
    }
    const uint32_t words = (bytes - before) / 4u, after = (bytes - before) % 4u;
    clip_bytes(data, before);
    clip_words((word_t *)(void *)(data + before), words);
    clip_bytes(data + bytes - after, after);
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
