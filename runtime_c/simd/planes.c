/* Changes of layout between HWC and planes; see htvm_planes.h.  Blocks of 4 channels of 4 pixels are
 * transposed in registers: eight shuffles for 16 bytes. */
#include "htvm_planes.h"
#include "htvm_simd.h"

#define BLOCK 4u

/* At any address: a core with SIMD stores across words in two cycles. */
HTVM_INLINE void store4(int8_t *at, uint32_t word)
{
#if HTVM_SIMD
    __asm__ volatile("sw %1, 0(%0)" : : "r"(at), "r"(word) : "memory");
#else
    for (uint32_t i = 0; i < 4; i++) {
        at[i] = (int8_t)(uint8_t)(word >> (8 * i));
    }
#endif
}

/* The bytes of two words that a constant names: 0 to 3 those of b, 4 to 7 those of a. */
HTVM_INLINE uint32_t shuffle(uint32_t a, uint32_t b, uint32_t which)
{
#if HTVM_SIMD
    __asm__("cv.shuffle2.b %0, %1, %2" : "+r"(b) : "r"(a), "r"(which));
    return b;
#else
    uint32_t result = 0;
    for (uint32_t i = 0; i < 32; i += 8) {
        const uint32_t byte = (which >> i) & 7u;
        result |= ((byte < 4 ? b : a) >> (8 * (byte & 3u)) & 0xffu) << i;
    }
    return result;
#endif
}

/* Rows of four words become columns. */
HTVM_INLINE void transpose(uint32_t *w)
{
    const uint32_t low = 0x05010400u, high = 0x07030602u;    /* bytes of a pair of rows, alternating */
    const uint32_t first = 0x05040100u, last = 0x07060302u;  /* halves of a pair of words */
    const uint32_t a = shuffle(w[1], w[0], low), b = shuffle(w[1], w[0], high);
    const uint32_t c = shuffle(w[3], w[2], low), d = shuffle(w[3], w[2], high);
    w[0] = shuffle(c, a, first);
    w[1] = shuffle(c, a, last);
    w[2] = shuffle(d, b, first);
    w[3] = shuffle(d, b, last);
}

/* Sets so many bytes, a multiple of 4. */
static void fill(int8_t *at, uint32_t bytes, uint32_t word)
{
    const int8_t *const end = at + bytes, *const whole = at + (bytes & ~31u);
    for (; at != whole; at += 32) {
#pragma GCC unroll 8
        for (uint32_t i = 0; i < 32; i += 4) {
            store4(at + i, word);
        }
    }
    for (; at != end; at += 4) {
        store4(at, word);
    }
}

void htvm_to_planes(const htvm_to_planes_t *p)
{
    const uint32_t plane = p->planes.plane, pitch = p->planes.row, pixel = p->pixel;
    const uint32_t whole = p->x - p->x % BLOCK;
    fill(p->out, p->k * plane, (uint8_t)p->value * 0x01010101u);
    for (uint32_t y = 0; y < p->y; y++) {
        const int8_t *const row = p->in + y * p->x * p->pixel;
        int8_t *const to = p->out + (p->top + y) * pitch + p->left;
        for (uint32_t k = 0; k < p->k; k += BLOCK) {
            const int8_t *in = row + k;
            int8_t *out = to + k * plane;
            for (uint32_t x = 0; x < whole; x += BLOCK, out += BLOCK) {
                uint32_t w[BLOCK];
#pragma GCC unroll 4
                for (uint32_t i = 0; i < BLOCK; i++, in += pixel) {
                    w[i] = htvm_load4(in);
                }
                transpose(w);
#pragma GCC unroll 4
                for (uint32_t i = 0; i < BLOCK; i++) {
                    store4(out + i * plane, w[i]);
                }
            }
            for (uint32_t x = whole; x < p->x; x++, in += pixel, out++) {
                for (uint32_t i = 0; i < BLOCK; i++) {
                    out[i * plane] = in[i];
                }
            }
        }
    }
}

void htvm_from_planes(const htvm_from_planes_t *p)
{
    const uint32_t plane = p->planes.plane, pixel = p->pixel, whole = p->x - p->x % BLOCK;
    for (uint32_t y = 0; y < p->y; y++) {
        int8_t *const row = p->out + y * p->x * p->pixel;
        for (uint32_t k = 0; k < p->k; k += BLOCK) {
            const int8_t *in = p->in + k * plane + y * p->planes.row;
            int8_t *out = row + k;
            for (uint32_t x = 0; x < whole; x += BLOCK, in += BLOCK) {
                uint32_t w[BLOCK];
#pragma GCC unroll 4
                for (uint32_t i = 0; i < BLOCK; i++) {
                    w[i] = htvm_load4(in + i * plane);
                }
                transpose(w);
#pragma GCC unroll 4
                for (uint32_t i = 0; i < BLOCK; i++, out += pixel) {
                    store4(out, w[i]);
                }
            }
            for (uint32_t x = whole; x < p->x; x++, in++, out += pixel) {
                for (uint32_t i = 0; i < BLOCK; i++) {
                    out[i] = in[i * plane];
                }
            }
        }
    }
}
