/* Sums of windows of int8, channel by channel, for pools. */
#ifndef HTVM_POOL_H
#define HTVM_POOL_H

#include <stdint.h>

#include "htvm_lanes.h"

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
    for (uint32_t c = 0; c < channels; c++) {
        int32_t total = 0;
        for (uint32_t i = 0; i < rows * columns; i++) {
            total += x[i / columns * pitch + i % columns * step + c];
        }
        sums[c] = total;
    }
#endif
}

#endif
