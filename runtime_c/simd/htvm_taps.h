/* Depthwise sums of int8 on cores with vectors of 16 bytes (Helium, MVE): one pixel, all channels.
 *
 * Weights are packed as [channels / group][taps][group], with groups of 16 channels, or 8 if there are
 * no multiples of 16.  No weight is -128, so that two products fit into 16 bits: they are added there
 * before they are widened.  Elsewhere everything is plain C with the same results.  Sums wrap around.
 */
#ifndef HTVM_TAPS_H
#define HTVM_TAPS_H

#include <stdint.h>

#include "htvm_lanes.h"

/* Returns the channels of a group. */
HTVM_INLINE uint32_t htvm_taps_group(uint32_t channels) { return channels % 16 == 0 ? 16 : 8; }

#if HTVM_MVE
/* Adds four times four sums of 16 bits: those of even bytes, and those of odd ones. */
HTVM_INLINE int32x4x4_t htvm_taps_add(int32x4x4_t sums, int16x8_t even, int16x8_t odd)
{
    sums.val[0] = vaddq_s32(sums.val[0], vmovlbq_s16(even));
    sums.val[1] = vaddq_s32(sums.val[1], vmovlbq_s16(odd));
    sums.val[2] = vaddq_s32(sums.val[2], vmovltq_s16(even));
    sums.val[3] = vaddq_s32(sums.val[3], vmovltq_s16(odd));
    return sums;
}

/* Groups of 16 channels.  The loop over pairs of taps is assembly, because its eight vectors are all
 * that there are: compilers would keep one weight too many. */
HTVM_INLINE void htvm_taps_sixteen(int32_t *sums, const int8_t *x, const int32_t *places,
                                   const int8_t *weights, const int32_t *bias, uint32_t taps,
                                   uint32_t channels)
{
    for (uint32_t c = 0; c < channels; c += 16) {
        int32x4x4_t total = vld4q_s32(bias + c);
        const int32_t *place = places;
        if (taps >= 2) {
            register int32x4_t q0 __asm__("q0") = total.val[0];
            register int32x4_t q1 __asm__("q1") = total.val[1];
            register int32x4_t q2 __asm__("q2") = total.val[2];
            register int32x4_t q3 __asm__("q3") = total.val[3];
            const int8_t *a, *b;
            __asm__ volatile("dls lr, %[pairs]\n"
                             "1:\n ldrd %[a], %[b], [%[place]], #8\n"
                             "add %[a], %[a], %[x]\n add %[b], %[b], %[x]\n"
                             "vldrb.8 q4, [%[a]]\n vldrb.8 q5, [%[w]], #16\n"
                             "vmullb.s8 q6, q4, q5\n vmullt.s8 q4, q4, q5\n"
                             "vldrb.8 q5, [%[b]]\n vldrb.8 q7, [%[w]]\n"
                             "vmullb.s8 q7, q5, q7\n vadd.i16 q6, q6, q7\n"
                             "vldrb.8 q7, [%[w]], #16\n vmullt.s8 q7, q5, q7\n"
                             "vadd.i16 q4, q4, q7\n"
                             "vmovlb.s16 q5, q6\n vadd.i32 q0, q0, q5\n"
                             "vmovlt.s16 q6, q6\n vadd.i32 q2, q2, q6\n"
                             "vmovlb.s16 q5, q4\n vadd.i32 q1, q1, q5\n"
                             "vmovlt.s16 q4, q4\n vadd.i32 q3, q3, q4\n le lr, 1b\n"
                             : "+w"(q0), "+w"(q1), "+w"(q2), "+w"(q3), [place] "+r"(place),
                               [w] "+r"(weights), [a] "=&r"(a), [b] "=&r"(b)
                             : [x] "r"(x + c), [pairs] "r"(taps / 2)
                             : "lr", "q4", "q5", "q6", "q7", "memory");
            total.val[0] = q0;
            total.val[1] = q1;
            total.val[2] = q2;
            total.val[3] = q3;
        }
        if (taps % 2 != 0) {
            const int8x16_t x0 = vldrbq_s8(x + c + *place), w0 = vldrbq_s8(weights);
            total = htvm_taps_add(total, vmullbq_int_s8(x0, w0), vmulltq_int_s8(x0, w0));
            weights += 16;
        }
        vst4q_s32(sums + c, total);
    }
}

/* Groups of 8 channels. */
HTVM_INLINE void htvm_taps_eight(int32_t *sums, const int8_t *x, const int32_t *places,
                                 const int8_t *weights, const int32_t *bias, uint32_t taps,
                                 uint32_t channels)
{
    for (uint32_t c = 0; c < channels; c += 8) {
        int32x4x2_t total = vld2q_s32(bias + c);
        for (uint32_t t = 0; t < taps; t += 2) {
            int16x8_t two = vmulq_s16(vldrbq_s16(x + c + places[t]), vldrbq_s16(weights));
            weights += 8;
            if (t + 1 < taps) {
                two = vaddq_s16(two, vmulq_s16(vldrbq_s16(x + c + places[t + 1]),
                                               vldrbq_s16(weights)));
                weights += 8;
            }
            total.val[0] = vaddq_s32(total.val[0], vmovlbq_s16(two));
            total.val[1] = vaddq_s32(total.val[1], vmovltq_s16(two));
        }
        vst2q_s32(sums + c, total);
    }
}
#endif

/* sums[c] = bias[c] + the products of channel c of the elements at x + places[t]; channels are
 * multiples of 8. */
static __attribute__((noinline, unused)) void htvm_taps_sum(int32_t *sums, const int8_t *x, const int32_t *places,
                               const int8_t *weights, const int32_t *bias, uint32_t taps,
                               uint32_t channels)
{
#if HTVM_MVE
    if (channels % 16 == 0) {
        htvm_taps_sixteen(sums, x, places, weights, bias, taps, channels);
    } else {
        htvm_taps_eight(sums, x, places, weights, bias, taps, channels);
    }
#else
    const uint32_t group = htvm_taps_group(channels);
    for (uint32_t c = 0; c < channels; c++) {
        const int8_t *const own = weights + c / group * group * taps + c % group;
        uint32_t sum = (uint32_t)bias[c];
        for (uint32_t t = 0; t < taps; t++) {
            sum += (uint32_t)(x[places[t] + (int32_t)c] * own[group * t]);
        }
        sums[c] = (int32_t)sum;
    }
#endif
}

#endif
