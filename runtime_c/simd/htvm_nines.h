/* Depthwise 3x3 convolutions of int8 on cores with vectors of 16 bytes (Helium, MVE).
 *
 * Four rows of the input are interleaved, so that four columns of a channel are one vector: the words
 * of four neighbouring pixels.  Its products with a filter, which has 9 of the 16 bytes, are one sum;
 * at stride 1, the filter moved by a column, by a row, and by both makes four sums of it.  Elsewhere
 * everything is plain C with the same results.  Sums wrap around.
 *
 * Weights are packed as [channels][3 columns][4], three rows and a zero, and 4 bytes follow the last.
 */
#ifndef HTVM_NINES_H
#define HTVM_NINES_H

#include <stdint.h>

#include "htvm_rescale.h"
#include "htvm_rows.h"

#if HTVM_MVE_LOOPS
/* Interleaves 16 bytes of each of four rows. */
#define HTVM_QUADS                                                                                 \
    "vldrb.8 q0, [%[a]], #16\n vldrb.8 q1, [%[b]], #16\n"                                          \
    "vldrb.8 q2, [%[c]], #16\n vldrb.8 q3, [%[d]], #16\n"                                          \
    "vst40.8 {q0, q1, q2, q3}, [%[to]]\n vst41.8 {q0, q1, q2, q3}, [%[to]]\n"                      \
    "vst42.8 {q0, q1, q2, q3}, [%[to]]\n vst43.8 {q0, q1, q2, q3}, [%[to]]!\n"

HTVM_INLINE void htvm_nines_vectors(uint32_t *to, const int8_t *a, const int8_t *b, const int8_t *c,
                                    const int8_t *d, uint32_t vectors)
{
    __asm__ volatile("dls lr, %[vectors]\n 1:\n" HTVM_QUADS "le lr, 1b\n"
                     : [to] "+&r"(to), [a] "+&r"(a), [b] "+&r"(b), [c] "+&r"(c), [d] "+&r"(d)
                     : [vectors] "r"(vectors)
                     : "lr", "q0", "q1", "q2", "q3", "memory");
}

/* What the loop over channels reads and advances; its places are used below. */
typedef struct {
    const uint32_t *quads;     /* 0 */
    int8_t *out;               /* 4 */
    const int8_t *weights;     /* 8 */
    const int32_t *bias;       /* 12 */
    const int32_t *multiplier; /* 16 */
    const int8_t *left;        /* 20 */
    uint32_t blocks;           /* 24: of four outputs */
    uint32_t back;             /* 28: bytes by which one more overlaps the last; 0: none */
} htvm_nines_t;

/* Begins a channel: its filter in q1; bias, multiplier and left shift in r8, r10 and r11; where it
 * begins in r1 and r3; blocks in lr. */
#define HTVM_CHANNEL                                                                               \
    "ldrd r0, r2, [r7, #8]\n vldrb.8 q1, [r0], #12\n ldr r8, [r2], #4\n strd r0, r2, [r7, #8]\n"   \
    "ldrd r0, r2, [r7, #16]\n ldr r10, [r0], #4\n ldrsb r11, [r2], #1\n strd r0, r2, [r7, #16]\n"  \
    "ldrd r1, r3, [r7]\n add r0, r1, #4\n add r2, r3, #1\n strd r0, r2, [r7]\n"                    \
    "movs r0, #0\n vmov.32 q1[3], r0\n ldr lr, [r7, #24]\n"

/* Requantizes the four sums in r0, r2, r4 and r6, and stores the results. */
#define HTVM_FOUR_OUTPUTS                                                                          \
    "vmov q5[2], q5[0], r0, r4\n vmov q5[3], q5[1], r2, r6\n vadd.i32 q5, q5, r8\n"                \
    "vqrdmulh.s32 q5, q5, r10\n vshr.s32 q6, q5, #31\n vadd.i32 q5, q5, q6\n"                      \
    "vrshl.s32 q5, r11\n vadd.i32 q5, q5, r12\n vqmovnb.s32 q5, q5\n vqmovnb.s16 q5, q5\n"         \
    "vstrb.32 q5, [r3, q7]\n add r3, r3, r5\n"

/* Two columns of two rows, from one vector and four filters. */
#define HTVM_TWO_BY_TWO                                                                            \
    "vldrw.u32 q5, [r1, q0]\n vmladav.s8 r0, q1, q5\n add r1, r1, r5, lsl #2\n"                    \
    "vmladav.s8 r2, q2, q5\n vmladav.s8 r4, q3, q5\n vmladav.s8 r6, q4, q5\n" HTVM_FOUR_OUTPUTS

/* Four columns at stride 2, from a vector each. */
#define HTVM_FOUR_WINDOWS                                                                          \
    "vldrw.u32 q5, [r1, q0]\n vldrw.u32 q6, [r1, q2]\n vmladav.s8 r0, q1, q5\n"                    \
    "vldrw.u32 q5, [r1, q3]\n vmladav.s8 r2, q1, q6\n vldrw.u32 q6, [r1, q4]\n"                    \
    "vmladav.s8 r4, q1, q5\n add r1, r1, r5, lsl #3\n vmladav.s8 r6, q1, q6\n" HTVM_FOUR_OUTPUTS

/* Ends a channel: the last block, if it overlaps its neighbour, and the next channel. */
#define HTVM_LAST(block, shift)                                                                    \
    "ldr r0, [r7, #28]\n cbz r0, 3f\n sub r3, r3, r0\n sub r1, r1, r0, lsl #" shift "\n" block     \
    "3:\n subs r9, r9, #1\n bne 1b\n"

#define HTVM_NINES_END                                                                             \
    : [places] "+&r"(places), [count] "+&r"(count), "+&r"(step), "+&r"(moved), "+w"(q0), "+w"(q2),     \
      "+w"(q3), "+w"(q4), "+w"(q7)                                                                 \
    :                                                                                              \
    : "r0", "r3", "r4", "r6", "r8", "r10", "r11", "lr", "cc", "q1", "q5", "q6", "memory"

HTVM_INLINE void htvm_nines_channels(htvm_nines_t *all, uint32_t channels, uint32_t width,
                                     uint32_t stride, int32_t zero)
{
    const uint32x4_t numbers = vidupq_n_u32(0, 1);
    register htvm_nines_t *places __asm__("r1") = all;
    register uint32_t count __asm__("r2") = channels;
    register uint32_t step __asm__("r5") = (stride == 1 ? 2 : 4) * channels;
    register int32_t moved __asm__("r12") = zero;
    register uint32x4_t q0 __asm__("q0") = vmulq_n_u32(numbers, 4 * channels);
    register uint32x4_t q2 __asm__("q2") = vaddq_n_u32(q0, 8 * channels);
    register uint32x4_t q3 __asm__("q3") = vaddq_n_u32(q0, 16 * channels);
    register uint32x4_t q4 __asm__("q4") = vaddq_n_u32(q0, 24 * channels);
    register uint32x4_t q7 __asm__("q7") = vmulq_n_u32(numbers, channels);
    if (stride == 1) {
        /* Lanes 2 and 3 are of the second row. */
        q7 = vsetq_lane_u32(width * channels, q7, 2);
        q7 = vsetq_lane_u32((width + 1) * channels, q7, 3);
        __asm__ volatile(HTVM_BORROW "mov r7, %[places]\n mov r9, %[count]\n"
                         "1:\n" HTVM_CHANNEL
                         "vmov q2, q1\n vshlc q2, r0, #32\n vshl.i32 q3, q1, #8\n"
                         "vshl.i32 q4, q2, #8\n dls lr, lr\n"
                         "2:\n" HTVM_TWO_BY_TWO "le lr, 2b\n"
                         HTVM_LAST(HTVM_TWO_BY_TWO, "2") HTVM_RETURN
                         HTVM_NINES_END);
    } else {
        __asm__ volatile(HTVM_BORROW "mov r7, %[places]\n mov r9, %[count]\n"
                         "1:\n" HTVM_CHANNEL "dls lr, lr\n"
                         "2:\n" HTVM_FOUR_WINDOWS "le lr, 2b\n"
                         HTVM_LAST(HTVM_FOUR_WINDOWS, "3") HTVM_RETURN
                         HTVM_NINES_END);
    }
}
#endif

/* At stride 1 two rows of the output, at stride 2 one, of `width` pixels: their sums, begun with a bias,
 * requantized (htvm_rescale), plus `zero`, limited to int8.
 *
 * The input's rows begin at `x`, each `pitch` bytes behind the other; `quads` has a word for each
 * channel of width * stride + 2 pixels.  All of these are read before anything is written, so that `out` may be
 * over `x`.  Width is at least 2, at stride 2 at least 4, and rows have 16 bytes at least. */
HTVM_SHARED void htvm_nines(int8_t *out, const int8_t *x, uint32_t *quads, const int8_t *weights,
                            const int32_t *bias, const int32_t *multipliers, const int8_t *left,
                            uint32_t pitch, uint32_t channels, uint32_t width, uint32_t stride,
                            int32_t zero)
{
    const uint32_t bytes = ((width - 1) * stride + 3) * channels;
    const int8_t *const b = x + pitch, *const c = b + pitch;
    const int8_t *const d = stride == 1 ? c + pitch : c; /* its weights are 0 */
#if HTVM_MVE_LOOPS
    if (bytes % 16 != 0) {
        const uint32_t at = bytes - 16;
        htvm_nines_vectors(quads + at, x + at, b + at, c + at, d + at, 1);
    }
    htvm_nines_vectors(quads, x, b, c, d, bytes / 16);
    const uint32_t across = stride == 1 ? 2 : 4, odd = width % across;
    htvm_nines_t all = {quads, out, weights, bias, multipliers, left, width / across,
                        odd == 0 ? 0 : (across - odd) * channels};
    htvm_nines_channels(&all, channels, width, stride, zero);
#else
    for (uint32_t i = 0; i < bytes; i++) {
        quads[i] = (uint32_t)(uint8_t)x[i] | (uint32_t)(uint8_t)b[i] << 8 |
                   (uint32_t)(uint8_t)c[i] << 16 | (uint32_t)(uint8_t)d[i] << 24;
    }
    for (uint32_t i = 0; i < (3 - stride) * width; i++) {
        const uint32_t row = i / width, column = i % width * stride;
        for (uint32_t k = 0; k < channels; k++) {
            uint32_t sum = (uint32_t)bias[k];
            for (uint32_t tap = 0; tap < 9; tap++) {
                const uint32_t fx = tap / 3, fy = tap % 3;
                const uint32_t quad = quads[(column + fx) * channels + k];
                const int8_t value = (int8_t)(uint8_t)(quad >> (8 * (row + fy)));
                sum += (uint32_t)(value * weights[12 * k + 4 * fx + fy]);
            }
            const int32_t made = htvm_rescale((int32_t)sum, multipliers[k], left[k]);
            const int32_t moved = (int32_t)((uint32_t)made + (uint32_t)zero);
            out[i * channels + k] = (int8_t)htvm_min(htvm_max(moved, -128), 127);
        }
    }
#endif
}

#endif
