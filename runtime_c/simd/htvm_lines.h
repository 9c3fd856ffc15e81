/* Depthwise convolutions like those of htvm_band.h, of one or two rows, as chains of rows compute them.
 *
 * On Cortex-M cores with the DSP extension, two by two or one by four outputs are computed in registers,
 * along the rows; elsewhere it is plain C with the same results.
 */
#ifndef HTVM_LINES_H
#define HTVM_LINES_H

#include <stdint.h>

#include "htvm_band.h"

#if HTVM_DSP_LOOPS
/* Makes the pairs of four channels: two columns after the other, of three or four rows.  r12 becomes
 * the way from the last row, `back` behind the first, to the next columns; `rows` are the others. */
#define HTVM_LINES_PAIRS(back, rows)                                                               \
    "1:\n ldr r0, [sp, #76]\n ldr r1, [sp, #48]\n ldr r2, [sp, #44]\n ldrd r3, r4, [sp, #80]\n"    \
    "str r1, [sp, #100]\n " back "rsb r12, r12, r2, lsl #1\n"                                      \
    "2:\n" rows HTVM_PAIRS_THEN("r12") "subs r4, r4, #2\n bne 2b\n"
#define HTVM_PAIRS_OF_ONE_LINE HTVM_LINES_PAIRS("lsl r12, r3, #1\n ", HTVM_PAIRS HTVM_PAIRS)
#define HTVM_PAIRS_OF_TWO_LINES                                                                    \
    HTVM_LINES_PAIRS("add r12, r3, r3, lsl #1\n ", HTVM_PAIRS HTVM_PAIRS HTVM_PAIRS)

/* Two by two outputs from the pairs at r0 and r1, of two rows. */
#define HTVM_TWO_LINES(way)                                                                        \
    "ldr r7, [sp, #20]\n ldr r2, [r0], #64\n ldr r3, [r1], #64\n"                                  \
    HTVM_BESIDE("r4", "r5", "r7", "r7", "r8", "r9")                                                \
    "ldr r2, [r0, #-48]\n ldr r3, [r1, #-48]\n" HTVM_UPPER("r10", "r11")                           \
    HTVM_BESIDE("r6", "r7", "r7", "r7", "r8", "r9")                                                \
    "ldr r2, [r0, #-32]\n ldr r3, [r1, #-32]\n" HTVM_UPPER("r12", "lr") HTVM_LOWER("r10", "r11")   \
    "ldr r2, [r0, #-16]\n ldr r3, [r1, #-16]\n" HTVM_LOWER("r12", "lr") HTVM_FOUR_##way            \
    "strb r5, [r2, r3]\n strb r4, [r2]\n ldr r4, [sp, #32]\n add r4, r4, r2\n"                     \
    "strb r7, [r4, r3]\n strb r6, [r4]\n add r2, r2, r3, lsl #1\n ldr r3, [sp, #24]\n"             \
    "str r2, [sp]\n"

/* The second two of four neighbours, from the pairs in r3 and r1. */
#define HTVM_BEHIND(from_a, from_b, one, two)                                                      \
    "smlad r6, r3, " one ", " from_a "\n smlabt r6, r1, " two ", r6\n"                             \
    "smlatb r7, r3, " one ", " from_b "\n smlad r7, r1, " two ", r7\n"

/* Four outputs of a row from three pairs at r0. */
#define HTVM_ONE_LINE(way)                                                                         \
    "ldr r7, [sp, #20]\n ldr r2, [r0], #96\n ldr r3, [r0, #-48]\n ldr r1, [r0]\n"                  \
    HTVM_BESIDE("r4", "r5", "r7", "r7", "r8", "r9") HTVM_BEHIND("r7", "r7", "r8", "r9")            \
    "ldr r2, [r0, #-80]\n ldr r3, [r0, #-32]\n ldr r1, [r0, #16]\n" HTVM_UPPER("r10", "r11")       \
    HTVM_BEHIND("r6", "r7", "r10", "r11")                                                          \
    "ldr r2, [r0, #-64]\n ldr r3, [r0, #-16]\n ldr r1, [r0, #32]\n" HTVM_UPPER("r12", "lr")        \
    HTVM_BEHIND("r6", "r7", "r12", "lr") HTVM_FOUR_##way                                           \
    "strb r4, [r2]\n strb r5, [r2, r3]\n add r2, r2, r3, lsl #1\n"                                 \
    "strb r6, [r2]\n strb r7, [r2, r3]\n add r2, r2, r3, lsl #1\n ldr r3, [sp, #24]\n"             \
    "str r2, [sp]\n"

/* The whole, of ONE_LINE or TWO_LINES. */
#define HTVM_LINES_TEXT(outputs, way)                                                              \
    HTVM_BAND_GIVEN HTVM_PAIRS_OF_##outputs HTVM_BAND_CHANNEL(way)                                 \
    "ldrd r5, r4, [sp, #40]\n str r4, [sp, #4]\n add r1, r0, r5\n"                                 \
    "ldr r3, [sp, #88]\n add r3, r3, r0\n str r3, [sp, #24]\n"                                     \
    "5:\n" HTVM_##outputs(way) "cmp r0, r3\n bne 5b\n" HTVM_BAND_NEXT

#define HTVM_LINES_OF(outputs)                                                                     \
    if (zero == -128 && small != 0) {                                                              \
        __asm__ volatile(HTVM_LINES_TEXT(outputs, UP) : "+r"(r0) : : HTVM_ALL_OTHERS);             \
    } else {                                                                                       \
        __asm__ volatile(HTVM_LINES_TEXT(outputs, ANY) : "+r"(r0) : : HTVM_ALL_OTHERS);            \
    }

#define HTVM_LINES_NOW                                                                             \
    htvm_band_t now = {.line = width * channels,                                                   \
                       .high = 16 * (rows + 2),                                                    \
                       .channels = channels,                                                       \
                       .pairs = pairs,                                                             \
                       .weights = weights,                                                         \
                       .bias = bias,                                                               \
                       .multiplier = multiplier,                                                   \
                       .shift = shift,                                                             \
                       .out = out,                                                                 \
                       .end = out + channels,                                                      \
                       .x = x,                                                                     \
                       .row = row,                                                                 \
                       .columns = width + 2,                                                       \
                       .down = width / 2 * (16 * (rows + 2)),                                      \
                       .round = (uint32_t)(2 * zero + 1)};                                         \
    register htvm_band_t *r0 __asm__("r0") = &now;
#endif

/* Computes a row of `width` pixels, a multiple of 4; all else is as for htvm_band_1. */
HTVM_SHARED void htvm_lines_1(int8_t *out, const int8_t *x, uint32_t *pairs, const int8_t *weights,
                              const int32_t *bias, const int32_t *multiplier, const uint8_t *shift,
                              uint32_t channels, uint32_t row, uint32_t rows, uint32_t width,
                              int32_t zero, uint32_t small)
{
#if HTVM_DSP_LOOPS
    HTVM_LINES_NOW
    HTVM_LINES_OF(ONE_LINE)
#else
    htvm_band_1(out, x, pairs, weights, bias, multiplier, shift, channels, row, rows, width, zero,
                small);
#endif
}

/* Computes two rows of `width` pixels, a multiple of 2; all else is as for htvm_band_1. */
HTVM_SHARED void htvm_lines_2(int8_t *out, const int8_t *x, uint32_t *pairs, const int8_t *weights,
                              const int32_t *bias, const int32_t *multiplier, const uint8_t *shift,
                              uint32_t channels, uint32_t row, uint32_t rows, uint32_t width,
                              int32_t zero, uint32_t small)
{
#if HTVM_DSP_LOOPS
    HTVM_LINES_NOW
    HTVM_LINES_OF(TWO_LINES)
#else
    htvm_band_1(out, x, pairs, weights, bias, multiplier, shift, channels, row, rows, width, zero,
                small);
#endif
}

#endif
