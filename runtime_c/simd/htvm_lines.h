/* Depthwise convolutions like those of htvm_band.h, of one or two rows, as chains of rows compute them.
 *
 * On Cortex-M cores with the DSP extension, two by two or one by four outputs are computed in registers,
 * along the rows; elsewhere it is plain C with the same results.  A single row whose elements are all
 * at constant distances needs no pairs: htvm_line_1 is a macro, like those of htvm_depthwise.h.
 */
#ifndef HTVM_LINES_H
#define HTVM_LINES_H

#include <stdint.h>

#include "htvm_band.h"
#include "htvm_depthwise.h"

#if HTVM_DSP_LOOPS
/* Column `k` of the input: its upper two elements become a pair in r6, the lowest one is in lr.  Weights
 * of the filter's columns are pairs in r8, r9, r10; the lowest ones are the lower halfword of r11 for the
 * first, the upper one of r12 for the second, the upper one of r11 for the last. */
#define HTVM_LINE_X(k)                                                                             \
    "ldrsb r6, [r0, #" k " * %c[c] - 1]\n ldrsb lr, [r0, #" k " * %c[c] + %c[line] - 1]\n"         \
    "pkhbt r6, r6, lr, lsl #16\n ldrsb lr, [r0, #" k " * %c[c] + 2 * %c[line] - 1]\n"
#define HTVM_LINE_FIRST(sum) "smlad " sum ", r6, r8, r7\n smlabb " sum ", lr, r11, " sum "\n"
#define HTVM_LINE_MIDDLE(sum)                                                                      \
    "smlad " sum ", r6, r9, " sum "\n smlabt " sum ", lr, r12, " sum "\n"
#define HTVM_LINE_LAST(sum)                                                                        \
    "smlad " sum ", r6, r10, " sum "\n smlabt " sum ", lr, r11, " sum "\n"

/* Outputs a and b, of which only the last column, and the last two, are missing; those of the next two
 * neighbours begin. */
#define HTVM_LINE_TWO(a, b, next, then, k, behind, column, another)                                \
    HTVM_LINE_X(column) HTVM_LINE_LAST(a) HTVM_LINE_MIDDLE(b) HTVM_LINE_FIRST(next)                \
    HTVM_LINE_X(another) HTVM_LINE_LAST(b) HTVM_LINE_MIDDLE(next) HTVM_LINE_FIRST(then)            \
    "ldrd r6, lr, [sp]\n .if %c[up]\n"                                                             \
    "smmlar " a ", " a ", r6, lr\n smmlar " b ", " b ", r6, lr\n"                                  \
    "asr " a ", " a ", r12\n asr " b ", " b ", r12\n"                                              \
    "ssat " a ", #8, " a ", asr #1\n ssat " b ", #8, " b ", asr #1\n .else\n"                      \
    HTVM_MULTIPLY(a, "r6") HTVM_MULTIPLY(b, "r6") HTVM_HALVE(a, "r12", "lr")                       \
    HTVM_HALVE(b, "r12", "lr") ".endif\n"                                                          \
    "strb " a ", [r4, #" k " * %c[c] - 1]\n strb " b ", [r4, #" behind " * %c[c] - 1]\n"

/* Computes a row of `width` pixels, a multiple of 4; 2 * row + 5 * channels is at most 4095.  On the
 * stack are the multiplier and what rounds, the end of the row at `out`, the first six pointers of
 * htvm_depthwise_t for the next channel, and the seventh.  As in htvm_band.h, numbers are doubled where
 * they are small and the zero point is -128. */
#define htvm_line_1(to, from, weight, add, factor, shifts, channels, row, width, zero, small)      \
    do {                                                                                           \
        htvm_depthwise_t now = {from, weight, add, factor, to, shifts, (to) + (channels)};         \
        register htvm_depthwise_t *r0 __asm__("r0") = &now;                                        \
        __asm__ volatile(                                                                          \
            "push {r7, r9}\n ldm r0, {r0, r1, r2, r3, r4, r5, r6}\n sub sp, sp, #40\n"             \
            "str r6, [sp, #36]\n mov r7, #%c[round]\n str r7, [sp, #4]\n b 3f\n"                   \
            "2:\n ldm r6, {r0, r1, r2, r3, r4, r5}\n"                                              \
            "3:\n ldr r8, [r1]\n ldr r9, [r1, #3]\n ldr r10, [r1, #5]\n add r1, r1, #9\n"          \
            "ldr r7, [r2], #4\n ldr r11, [r3], #4\n ldrb r12, [r5], #1\n"                          \
            "add r0, r0, #1\n add r4, r4, #1\n add r6, sp, #12\n"                                  \
            "stm r6, {r0, r1, r2, r3, r4, r5}\n sub r12, r12, #2\n"                                \
            ".if %c[up]\n lsl r7, r7, #1\n lsr r11, r11, #1\n mvn lr, #254\n lsl lr, lr, r12\n"    \
            "strd r11, lr, [sp]\n .else\n str r11, [sp]\n .endif\n"                                \
            "movw lr, #%c[end]\n add lr, lr, r4\n str lr, [sp, #8]\n"                              \
            "sxtb16 r1, r8\n sxtb16 r2, r8, ror #8\n sxtb16 r3, r9\n sxtb16 r5, r9, ror #8\n"      \
            "sxtb16 r11, r10, ror #8\n sxtb16 r10, r10\n .if %c[up]\n sadd16 r1, r1, r1\n"         \
            "sadd16 r2, r2, r2\n sadd16 r3, r3, r3\n sadd16 r5, r5, r5\n"                          \
            "sadd16 r11, r11, r11\n sadd16 r10, r10, r10\n .endif\n"                               \
            "pkhbt r12, r12, r10\n pkhtb r10, r3, r1, asr #16\n"                                   \
            "pkhbt r8, r1, r3, lsl #16\n pkhbt r9, r2, r5, lsl #16\n"                              \
            HTVM_LINE_X("0") HTVM_LINE_FIRST("r1")                                                 \
            HTVM_LINE_X("1") HTVM_LINE_MIDDLE("r1") HTVM_LINE_FIRST("r2")                          \
            "4:\n" HTVM_LINE_TWO("r1", "r2", "r3", "r5", "0", "1", "2", "3")                       \
            HTVM_LINE_TWO("r3", "r5", "r1", "r2", "2", "3", "4", "5")                              \
            "add r0, r0, #4 * %c[c]\n add r4, r4, #4 * %c[c]\n ldr lr, [sp, #8]\n"                 \
            "cmp r4, lr\n bne 4b\n"                                                                \
            "add r6, sp, #12\n ldr lr, [sp, #36]\n ldr r5, [sp, #28]\n cmp r5, lr\n bne 2b\n"      \
            "add sp, sp, #40\n pop {r7, r9}\n"                                                     \
            : "+r"(r0)                                                                             \
            : [c] "i"(channels), [line] "i"(row), [end] "i"((width) * (channels)),                 \
              [round] "i"(2 * (zero) + 1), [up] "i"((zero) == -128 && (small) != 0)                \
            : HTVM_ALL_OTHERS);                                                                    \
    } while (0)

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
#else
#define htvm_line_1(to, from, weight, add, factor, shifts, channels, row, width, zero, small)      \
    htvm_depthwise_line(to, from, weight, add, factor, shifts, channels, row, width, zero)

/* Computes a row of `width` pixels. */
HTVM_SHARED void htvm_depthwise_line(int8_t *out, const int8_t *x, const int8_t *weights,
                                     const int32_t *bias, const int32_t *multiplier,
                                     const uint8_t *shift, uint32_t channels, uint32_t row,
                                     uint32_t width, int32_t zero)
{
    for (uint32_t p = 0; p < width; p++) {
        htvm_depthwise(out + p * channels, x + p * channels, weights, bias, multiplier, shift,
                       channels, row, zero, 1, 1);
    }
}
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
