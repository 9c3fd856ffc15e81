/* siracusa_neureka_relu: four bytes at a time. */
#include "siracusa_neureka_relu.h"

#include "htvm_simd.h"
#include "siracusa_neureka_words.h"

static void clip_words(word_t *words, uint32_t count)
{
#if HTVM_SIMD
    /* Four at a time, so that no load is waited for. */
    const word_t *from = words;
    uint32_t a, b, c, d;
    if (count >= 4) {
        __asm__ volatile(
            HTVM_LOOP
            ".insn r 0x2b, 4, 0, x10, %[fours], x0\n" /* cv.count 0 */
            "3: cv.lw %[a], (%[from]), 4\ncv.lw %[b], (%[from]), 4\n"
            "cv.lw %[c], (%[from]), 4\ncv.lw %[d], (%[from]), 4\n"
            "cv.max.sci.b %[a], %[a], 0\ncv.max.sci.b %[b], %[b], 0\n"
            "cv.max.sci.b %[c], %[c], 0\ncv.max.sci.b %[d], %[d], 0\n"
            "cv.sw %[a], (%[to]), 4\ncv.sw %[b], (%[to]), 4\n"
            "cv.sw %[c], (%[to]), 4\ncv.sw %[d], (%[to]), 4\n"
            "4:\n.option pop\n"
            : [a] "=&r"(a), [b] "=&r"(b), [c] "=&r"(c), [d] "=&r"(d), [from] "+&r"(from),
              [to] "+&r"(words)
            : [fours] "r"(count / 4u)
            : "memory");
        count %= 4u;
    }
#endif
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
    if (before == 0 && bytes % 4u == 0) { /* nearly always */
        clip_words((word_t *)(void *)data, bytes / 4u);
        return;
    }
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
