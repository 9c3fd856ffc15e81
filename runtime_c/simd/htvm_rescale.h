/* Requantization by a fixed-point number, as TFLite computes it, of one sum and of many.
 *
 * The high half of twice the product of sum and multiplier is rounded to the nearest, halves up; then
 * it is divided by 2^-left, halves rounded away from zero.  Multipliers are not negative, and
 * -31 <= left < 0; any sum is right.  With MVE, four sums take few instructions; elsewhere everything
 * is plain C with the same results.
 */
#ifndef HTVM_RESCALE_H
#define HTVM_RESCALE_H

#include <stdint.h>

#include "htvm_lanes.h"

/* Returns a sum requantized. */
HTVM_INLINE int32_t htvm_rescale(int32_t sum, int32_t multiplier, int32_t left)
{
    const int64_t product = (int64_t)sum * multiplier + (1 << 30);
    const int32_t first = (int32_t)(product >> 31);
    return ((((first - (first < 0)) >> (-left - 1)) + 1)) >> 1;
}

/* The same of four.  VRSHL rounds halves up, so negative numbers are diminished before it. */
HTVM_INLINE htvm_lanes_t htvm_lanes_rescale(htvm_lanes_t sum, htvm_lanes_t multiplier,
                                            htvm_lanes_t left)
{
#if HTVM_MVE
    const int32x4_t first = vqrdmulhq_s32(sum, multiplier);
    return vrshlq_s32(vaddq_s32(first, vshrq_n_s32(first, 31)), left);
#else
    HTVM_EACH_LANE(htvm_rescale(sum.lane[i], multiplier.lane[i], left.lane[i]));
#endif
}

/* The same for all lanes. */
HTVM_INLINE htvm_lanes_t htvm_lanes_rescale_x(htvm_lanes_t sum, int32_t multiplier, int32_t left)
{
#if HTVM_MVE
    const int32x4_t first = vqrdmulhq_n_s32(sum, multiplier);
    return vrshlq_n_s32(vaddq_s32(first, vshrq_n_s32(first, 31)), left);
#else
    HTVM_EACH_LANE(htvm_rescale(sum.lane[i], multiplier, left));
#endif
}

#if HTVM_MVE && defined(__OPTIMIZE__)
/* One pixel's four sums (a narrow load or store has its address in a low register), whose results are stored at `out`. */
#define HTVM_FOUR_SUMS(out)                                                                        \
    "vldrw.32 q3, [%[s]], #16\n vadd.i32 q3, q3, q0\n vqrdmulh.s32 q3, q3, q1\n"                   \
    "vshr.s32 q4, q3, #31\n vadd.i32 q3, q3, q4\n vrshl.s32 q3, q3, q2\n"                          \
    "vadd.i32 q3, q3, %[zero]\n vmax.s32 q3, q3, %q[low]\n vmin.s32 q3, q3, %q[high]\n"            \
    "vstrb.32 q3, [%[" out "]], #4\n"
#define HTVM_FACTORS                                                                               \
    "vldrw.32 q0, [%[bias]], #16\n vldrw.32 q1, [%[m]], #16\n vldrb.s32 q2, [%[left]], #4\n"
#endif

/* out[p * channels + k] = the sum requantized, plus `zero`, limited to low..high, where the sum is
 * bias[k] + sums[(k / 4 * pixels + p) * 4 + k % 4]; `pixels` is 1 or 3, channels are fours. */
HTVM_SHARED void htvm_rescale_all(int8_t *out, const int32_t *sums, const int32_t *bias,
                                  const int32_t *multipliers, const int8_t *left, uint32_t pixels,
                                  uint32_t channels, int32_t zero, int32_t low, int32_t high)
{
#if HTVM_MVE && defined(__OPTIMIZE__)
    const int32x4_t least = vdupq_n_s32(low), most = vdupq_n_s32(high);
    if (pixels == 3) {
        int8_t *second = out + channels, *third = second + channels;
        __asm__ volatile("dls lr, %[fours]\n"
                         "1:\n" HTVM_FACTORS HTVM_FOUR_SUMS("x") HTVM_FOUR_SUMS("y")
                         HTVM_FOUR_SUMS("z") "le lr, 1b\n"
                         : [x] "+&l"(out), [y] "+&l"(second), [z] "+&l"(third), [s] "+&r"(sums),
                           [bias] "+&r"(bias), [m] "+&r"(multipliers), [left] "+&l"(left)
                         : [fours] "r"(channels / 4), [zero] "r"(zero), [low] "w"(least),
                           [high] "w"(most)
                         : "lr", "q0", "q1", "q2", "q3", "q4", "memory");
    } else {
        __asm__ volatile("dls lr, %[fours]\n"
                         "1:\n" HTVM_FACTORS HTVM_FOUR_SUMS("x") "le lr, 1b\n"
                         : [x] "+&l"(out), [s] "+&r"(sums), [bias] "+&r"(bias),
                           [m] "+&r"(multipliers), [left] "+&l"(left)
                         : [fours] "r"(channels / 4), [zero] "r"(zero), [low] "w"(least),
                           [high] "w"(most)
                         : "lr", "q0", "q1", "q2", "q3", "q4", "memory");
    }
#else
    for (uint32_t k = 0; k < channels; k++) {
        for (uint32_t p = 0; p < pixels; p++) {
            const uint32_t sum = (uint32_t)sums[(k / 4 * pixels + p) * 4 + k % 4];
            const int32_t made = htvm_rescale((int32_t)(sum + (uint32_t)bias[k]), multipliers[k],
                                              left[k]);
            const int32_t moved = (int32_t)((uint32_t)made + (uint32_t)zero);
            out[p * channels + k] = (int8_t)htvm_min(htvm_max(moved, low), high);
        }
    }
#endif
}

#endif
