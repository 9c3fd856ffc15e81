/* Sums of the pixels of a window, four channels at a time, for averages. */
#ifndef HTVM_WINDOW_H
#define HTVM_WINDOW_H

#include <stdint.h>

#include "htvm_simd.h"

/* sums[i] += the elements of channel i in a row of pixels at `x`, `step` bytes apart. */
HTVM_INLINE void htvm_window_row(int32_t *sums, const int8_t *x, uint32_t columns, uint32_t step)
{
#if HTVM_SIMD
    int32_t first = sums[0], second = sums[1], third = sums[2], fourth = sums[3];
    uint32_t a, b, c, d, halves;
    if (columns >= 4) {
        /* The halves of two pixels' words are put side by side, and multiplied by zeros and ones. */
        __asm__ volatile(
            HTVM_LOOP
            ".insn r 0x2b, 4, 0, x10, %[fours], x0\n" /* cv.count 0 */
            "3: cv.lw %[a], (%[x]), %[step]\ncv.lw %[b], (%[x]), %[step]\n"
            "cv.lw %[c], (%[x]), %[step]\ncv.lw %[d], (%[x]), %[step]\n"
            "cv.pack %[halves], %[a], %[b]\ncv.pack.h %[a], %[a], %[b]\n"
            "cv.pack %[b], %[c], %[d]\ncv.pack.h %[c], %[c], %[d]\n"
            "cv.sdotsp.b %[first], %[halves], %[even]\ncv.sdotsp.b %[second], %[halves], %[odd]\n"
            "cv.sdotsp.b %[third], %[a], %[even]\ncv.sdotsp.b %[fourth], %[a], %[odd]\n"
            "cv.sdotsp.b %[first], %[b], %[even]\ncv.sdotsp.b %[second], %[b], %[odd]\n"
            "cv.sdotsp.b %[third], %[c], %[even]\ncv.sdotsp.b %[fourth], %[c], %[odd]\n"
            "4:\n.option pop\n"
            : [first] "+r"(first), [second] "+r"(second), [third] "+r"(third),
              [fourth] "+r"(fourth), [x] "+r"(x), [a] "=&r"(a), [b] "=&r"(b), [c] "=&r"(c),
              [d] "=&r"(d), [halves] "=&r"(halves)
            : [fours] "r"(columns / 4u), [step] "r"(step), [even] "r"(0x00010001u),
              [odd] "r"(0x01000100u)
            : "memory");
    }
    HTVM_UNROLL(1)
    for (uint32_t left = columns % 4u; left != 0; left--, x += step) {
        const uint32_t word = htvm_load4(x);
        first = htvm_dot4(word, 0x00000001u, first);
        second = htvm_dot4(word, 0x00000100u, second);
        third = htvm_dot4(word, 0x00010000u, third);
        fourth = htvm_dot4(word, 0x01000000u, fourth);
    }
    sums[0] = first;
    sums[1] = second;
    sums[2] = third;
    sums[3] = fourth;
#else
    for (; columns != 0; columns--, x += step) {
        for (uint32_t i = 0; i < 4; i++) {
            sums[i] += x[i];
        }
    }
#endif
}

#endif
