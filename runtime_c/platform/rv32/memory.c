/* Memory functions of string.h, which use words if both sides are aligned. */
#include <stdint.h>
#include <string.h>

/* The compiler must not recognise these loops as memcpy and memset, and call them. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-loop-distribute-patterns")
#endif

typedef uint32_t __attribute__((may_alias)) word_t;

enum { WORD = sizeof(word_t), BLOCK = 4 * WORD };

static int aligned(const void *p) { return (uintptr_t)p % WORD == 0; }

void *memcpy(void *restrict to, const void *restrict from, size_t bytes)
{
    uint8_t *out = to;
    const uint8_t *in = from;

    if ((((uintptr_t)out ^ (uintptr_t)in) % WORD) == 0) {
        for (; bytes > 0 && !aligned(out); --bytes) {
            *out++ = *in++;
        }
        for (; bytes >= BLOCK; bytes -= BLOCK, in += BLOCK, out += BLOCK) {
            const word_t *source = (const word_t *)(const void *)in;
            word_t *target = (word_t *)(void *)out;
            const word_t a = source[0], b = source[1], c = source[2], d = source[3];
            target[0] = a;
            target[1] = b;
            target[2] = c;
            target[3] = d;
        }
        for (; bytes >= WORD; bytes -= WORD, in += WORD, out += WORD) {
            *(word_t *)(void *)out = *(const word_t *)(const void *)in;
        }
    } else {
        for (; bytes >= 4; bytes -= 4, in += 4, out += 4) {
            const uint8_t a = in[0], b = in[1], c = in[2], d = in[3];
            out[0] = a;
            out[1] = b;
            out[2] = c;
            out[3] = d;
        }
    }
    for (; bytes > 0; --bytes) {
        *out++ = *in++;
    }
    return to;
}

/* Four words are read before one is written, so either direction is safe where bytes are. */
static void move_block(uint8_t *out, const uint8_t *in)
{
    const word_t *source = (const word_t *)(const void *)in;
    word_t *target = (word_t *)(void *)out;
    const word_t a = source[0], b = source[1], c = source[2], d = source[3];

    target[0] = a;
    target[1] = b;
    target[2] = c;
    target[3] = d;
}

void *memmove(void *to, const void *from, size_t bytes)
{
    uint8_t *out = to;
    const uint8_t *in = from;
    const int alike = (((uintptr_t)out ^ (uintptr_t)in) % WORD) == 0;

    /* Copying upwards is safe if the target starts before the source or behind its end. */
    if ((uintptr_t)out - (uintptr_t)in >= bytes) {
        for (; alike && bytes > 0 && !aligned(out); --bytes) {
            *out++ = *in++;
        }
        for (; alike && bytes >= BLOCK; bytes -= BLOCK, in += BLOCK, out += BLOCK) {
            move_block(out, in);
        }
        for (; bytes > 0; --bytes) {
            *out++ = *in++;
        }
        return to;
    }
    for (; alike && bytes > 0 && !aligned(out + bytes); --bytes) {
        out[bytes - 1] = in[bytes - 1];
    }
    for (; alike && bytes >= BLOCK; bytes -= BLOCK) {
        move_block(out + bytes - BLOCK, in + bytes - BLOCK);
    }
    while (bytes-- > 0) {
        out[bytes] = in[bytes];
    }
    return to;
}

void *memset(void *to, int value, size_t bytes)
{
    uint8_t *out = to;
    const word_t word = (uint8_t)value * 0x01010101u;

    for (; bytes > 0 && !aligned(out); --bytes) {
        *out++ = (uint8_t)value;
    }
    for (; bytes >= BLOCK; bytes -= BLOCK, out += BLOCK) {
        word_t *target = (word_t *)(void *)out;
        target[0] = word;
        target[1] = word;
        target[2] = word;
        target[3] = word;
    }
    for (; bytes > 0; --bytes) {
        *out++ = (uint8_t)value;
    }
    return to;
}

int memcmp(const void *a, const void *b, size_t bytes)
{
    const uint8_t *p = a;
    const uint8_t *q = b;

    for (; bytes > 0; --bytes, ++p, ++q) {
        if (*p != *q) {
            return *p < *q ? -1 : 1;
        }
    }
    return 0;
}

size_t strlen(const char *text)
{
    const char *end = text;

    while (*end != '\0') {
        ++end;
    }
    return (size_t)(end - text);
}
