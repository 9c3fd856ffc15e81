/* Sums of windows of int8, channel by channel, for pools. */
#ifndef HTVM_POOL_H
#define HTVM_POOL_H

#include <stdint.h>

#include "htvm_columns.h"
#include "htvm_lanes.h"

#if HTVM_DSP_LOOPS
/* Sums of four channels of a row of pixels at `x`, added to halfwords: channels 0 and 2, 1 and 3. */
HTVM_INLINE void htvm_pool_row(uint32_t *even, uint32_t *odd, const int8_t *x, uint32_t columns,
                               uint32_t step)
{
    uint32_t one, other, twos = columns / 2;
    __asm__ volatile("tst %[columns], #1\n beq 1f\n ldr %[one], [%[x]]\n add %[x], %[x], %[step]\n"
                     "sxtab16 %[even], %[even], %[one]\n sxtab16 %[odd], %[odd], %[one], ror #8\n"
                     "1:\n cmp %[twos], #0\n beq 3f\n"
                     "2:\n ldr %[one], [%[x]]\n ldr %[other], [%[x], %[step]]\n"
                     "add %[x], %[x], %[step], lsl #1\n"
                     "sxtab16 %[even], %[even], %[one]\n sxtab16 %[odd], %[odd], %[one], ror #8\n"
                     "sxtab16 %[even], %[even], %[other]\n"
                     "sxtab16 %[odd], %[odd], %[other], ror #8\n"
                     "subs %[twos], %[twos], #1\n bne 2b\n 3:\n"
                     : [even] "+&r"(*even), [odd] "+&r"(*odd), [x] "+&r"(x), [twos] "+&r"(twos),
                       [one] "=&r"(one), [other] "=&r"(other)
                     : [columns] "r"(columns), [step] "r"(step)
                     : "cc", "memory");
}
#endif

/* sums[c] = the sum of channel c of a window of rows * columns pixels, at most 256 of them, so that a
 * sum has 16 bits.  A row is `pitch` elements behind the one before, a pixel `step`; channels are
 * neighbours. */
HTVM_SHARED void htvm_pool_sums(int32_t *sums, const int8_t *x, uint32_t rows, uint32_t pitch,
                                uint32_t columns, uint32_t step, uint32_t channels)
{
#if HTVM_MVE
    for (uint32_t c = 0; c < channels; c += 8) {
        const mve_pred16_t used = vctp16q(channels - c);
        int16x8_t total = vdupq_n_s16(0);
        for (uint32_t row = 0; row < rows; row++) {
            const int8_t *pixel = x + c + row * pitch;
            for (uint32_t column = 0; column < columns; column++, pixel += step) {
                total = vaddq_s16(total, vldrbq_z_s16(pixel, used));
            }
        }
        int16_t eight[8];
        vst1q_s16(eight, total);
        vstrwq_p_s32(sums + c, vldrhq_s32(eight), vctp32q(channels - c));
        if (c + 4 < channels) {
            vstrwq_p_s32(sums + c + 4, vldrhq_s32(eight + 4), vctp32q(channels - c - 4));
        }
    }
#else
    uint32_t c = 0;
#if HTVM_DSP_LOOPS
    if (pitch == columns * step) {
        columns *= rows;
        rows = 1;
    }
    for (; c < channels / 4 * 4; c += 4) {
        uint32_t even = 0, odd = 0;
        for (uint32_t row = 0; row < rows; row++) {
            htvm_pool_row(&even, &odd, x + c + row * pitch, columns, step);
        }
        sums[c] = (int16_t)(uint16_t)even;
        sums[c + 1] = (int16_t)(uint16_t)odd;
        sums[c + 2] = (int16_t)(uint16_t)(even >> 16);
        sums[c + 3] = (int16_t)(uint16_t)(odd >> 16);
    }
#endif
    for (; c < channels; c++) {
        int32_t total = 0;
        for (uint32_t i = 0; i < rows * columns; i++) {
            total += x[i / columns * pitch + i % columns * step + c];
        }
        sums[c] = total;
    }
#endif
}

#endif
