/* Sums of products of int8 on cores with vectors of 16 bytes (Helium, MVE).
 *
 * Operands are copied into a column: for each pixel the elements of its window, followed by zeros up
 * to a multiple of 16.  Weights are packed alike, `block` channels side by side:
 * [channels / block][steps][block][16].  With MVE, a step of three pixels and two channels is 12
 * instructions for 96 products; elsewhere everything is plain C with the same results.  Sums wrap
 * around.
 */
#ifndef HTVM_ROWS_H
#define HTVM_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "htvm_lanes.h"

/* Without optimization compilers keep registers for themselves.  A build may set it to 0. */
#ifndef HTVM_MVE_LOOPS
#if HTVM_MVE && defined(__OPTIMIZE__)
#define HTVM_MVE_LOOPS 1
#else
#define HTVM_MVE_LOOPS 0
#endif
#endif

/* Copies `bytes` elements, followed by zeros: whole vectors of 16 are written. */
HTVM_INLINE void htvm_rows_fill(int8_t *column, const int8_t *from, uint32_t bytes)
{
#if HTVM_MVE
    for (uint32_t i = 0; i < bytes / 16; i++) {
        /* In C this would become a call of memcpy. */
        __asm__ volatile("vldrb.8 q0, [%[from]], #16\n vstrb.8 q0, [%[to]], #16"
                         : [from] "+r"(from), [to] "+r"(column)
                         :
                         : "q0", "memory");
    }
    if (bytes % 16 != 0) {
        vstrbq_s8(column, vldrbq_z_s8(from, vctp8q(bytes % 16)));
    }
#else
    for (uint32_t i = 0; i < (bytes + 15) / 16 * 16; i++) {
        column[i] = i < bytes ? from[i] : 0;
    }
#endif
}

/* Returns sum + the products of 16 * steps elements; those of a channel are `apart` bytes apart. */
HTVM_INLINE int32_t htvm_rows_dot(int32_t sum, const int8_t *x, const int8_t *weights,
                                  uint32_t steps, uint32_t apart)
{
    for (uint32_t i = 0; i < steps; i++) {
#if HTVM_MVE
        sum = vmladavaq_s8(sum, vldrbq_s8(x + 16 * i), vldrbq_s8(weights + apart * i));
#else
        for (uint32_t j = 0; j < 16; j++) {
            const int32_t product = x[16 * i + j] * weights[apart * i + j];
            sum = (int32_t)((uint32_t)sum + (uint32_t)product);
        }
#endif
    }
    return sum;
}

#if HTVM_MVE_LOOPS
/* The last operand, and the first clobber.  With a frame pointer GCC has no register left for it but
 * lr; Clang finds one, and shorter code. */
#if defined(__clang__)
#define HTVM_STEPS : [steps] "r"(steps) : "lr",
#else
#define HTVM_STEPS , [steps] "+r"(rounds) : :
#endif

/* sums[0..1], and `next` and 2 * next behind: three pixels with two channels.  Returns the weights of
 * the next channels. */
HTVM_INLINE const int8_t *htvm_rows_three_by_two(int32_t *sums, uint32_t next, const int8_t *x,
                                                 const int8_t *weights, uint32_t steps,
                                                 const int32_t first[2])
{
    int32_t a = first[0], b = first[1], c = a, d = b, e = a, f = b;
    const int8_t *y = x + 16 * steps, *z = y + 16 * steps;
#if !defined(__clang__)
    register uint32_t rounds __asm__("lr") = steps;
#endif
    __asm__ volatile("dls lr, %[steps]\n"
                     "1:\n vldrb.8 q3, [%[w]], #16\n vldrb.8 q0, [%[x]], #16\n"
                     "vmladava.s8 %[a], q0, q3\n vldrb.8 q1, [%[y]], #16\n"
                     "vmladava.s8 %[c], q1, q3\n vldrb.8 q2, [%[z]], #16\n"
                     "vmladava.s8 %[e], q2, q3\n vldrb.8 q3, [%[w]], #16\n"
                     "vmladava.s8 %[b], q0, q3\n vmladava.s8 %[d], q1, q3\n"
                     "vmladava.s8 %[f], q2, q3\n le lr, 1b\n"
                     : [a] "+Te"(a), [b] "+Te"(b), [c] "+Te"(c), [d] "+Te"(d), [e] "+Te"(e),
                       [f] "+Te"(f), [x] "+r"(x), [y] "+r"(y), [z] "+r"(z), [w] "+r"(weights)
                       HTVM_STEPS "q0", "q1", "q2", "q3", "memory");
    sums[0] = a;
    sums[1] = b;
    sums[next] = c;
    sums[next + 1] = d;
    sums[2 * next] = e;
    sums[2 * next + 1] = f;
    return weights;
}

/* The same of one pixel with four channels. */
HTVM_INLINE const int8_t *htvm_rows_one_by_four(int32_t *sums, const int8_t *x,
                                                const int8_t *weights, uint32_t steps,
                                                const int32_t first[4])
{
    int32_t a = first[0], b = first[1], c = first[2], d = first[3];
    __asm__ volatile("dls lr, %[steps]\n"
                     "1:\n vldrb.8 q0, [%[x]], #16\n vldrb.8 q1, [%[w]], #16\n"
                     "vmladava.s8 %[a], q0, q1\n vldrb.8 q2, [%[w]], #16\n"
                     "vmladava.s8 %[b], q0, q2\n vldrb.8 q1, [%[w]], #16\n"
                     "vmladava.s8 %[c], q0, q1\n vldrb.8 q2, [%[w]], #16\n"
                     "vmladava.s8 %[d], q0, q2\n le lr, 1b\n"
                     : [a] "+Te"(a), [b] "+Te"(b), [c] "+Te"(c), [d] "+Te"(d), [x] "+r"(x),
                       [w] "+r"(weights)
                     : [steps] "r"(steps)
                     : "lr", "q0", "q1", "q2", "memory");
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
    return weights;
}
#endif

/* sums[p * channels + k] = bias[k], or 0 without `biased`, + products of one column of `pixels` (1 or
 * 3) with all channels, in blocks of 1, 2 or 4. */
HTVM_INLINE void htvm_rows_all(int32_t *sums, const int8_t *column, const int8_t *weights,
                               const int32_t *bias, uint32_t biased, uint32_t steps, uint32_t pixels,
                               uint32_t channels, uint32_t block)
{
    for (uint32_t k = 0; k < channels; k += block) {
        int32_t first[4] = {0, 0, 0, 0};
        for (uint32_t j = 0; j < block && biased != 0; j++) {
            first[j] = bias[k + j];
        }
#if HTVM_MVE_LOOPS
        if (pixels == 3 && block == 2) {
            weights = htvm_rows_three_by_two(sums + k, channels, column, weights, steps, first);
            continue;
        }
        if (pixels == 1 && block == 4) {
            weights = htvm_rows_one_by_four(sums + k, column, weights, steps, first);
            continue;
        }
#endif
        for (uint32_t j = 0; j < block; j++) {
            for (uint32_t p = 0; p < pixels; p++) {
                sums[p * channels + k + j] = htvm_rows_dot(first[j], column + 16 * steps * p,
                                                           weights + 16 * j, steps, 16 * block);
            }
        }
        weights += 16 * block * steps;
    }
}

HTVM_INLINE void htvm_rows_products(int32_t *sums, const int8_t *column, const int8_t *weights,
                                    const int32_t *bias, uint32_t steps, uint32_t pixels,
                                    uint32_t channels, uint32_t block)
{
    htvm_rows_all(sums, column, weights, bias, 1, steps, pixels, channels, block);
}

/* The same without a bias. */
HTVM_INLINE void htvm_rows_only_products(int32_t *sums, const int8_t *column, const int8_t *weights,
                                         uint32_t steps, uint32_t pixels, uint32_t channels,
                                         uint32_t block)
{
    htvm_rows_all(sums, column, weights, sums, 0, steps, pixels, channels, block);
}

#endif
