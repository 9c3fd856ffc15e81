/* Depthwise convolutions of int8 with filters of 3x3, requantized to int8 as TFLite does
 * (htvm_scaled.h): a band of rows at a time, at stride 1.
 *
 * Four channels at once, the input's columns are transposed into pairs: a word has a channel of two
 * neighbours as halfwords, so that three products of a row are two multiplications of pairs.  Pairs
 * lie as [pair][row of the input][4 channels].  Weights are packed as [channels][9].
 *
 * On Cortex-M cores with the DSP extension this is one statement of assembly, in which two by two
 * outputs are computed in registers, down a column; elsewhere it is plain C with the same results.
 */
#ifndef HTVM_BAND_H
#define HTVM_BAND_H

#include <stdint.h>

#include "htvm_scaled.h"

#if HTVM_DSP_LOOPS
/* What the statement is given; it copies this to its stack, at the offsets behind. */
typedef struct {
    uint32_t line;             /* 32: bytes of a row of the output */
    uint32_t back;             /* 36: from the end of a column of the output to the next two's */
    uint32_t high;             /* 40: bytes of a column of pairs */
    uint32_t channels;         /* 44 */
    uint32_t *pairs;           /* 48 */
    const int8_t *weights;     /* 52 */
    const int32_t *bias;       /* 56 */
    const int32_t *multiplier; /* 60 */
    const uint8_t *shift;      /* 64 */
    int8_t *out;               /* 68: of the next channel */
    const int8_t *end;         /* 72: of the channels at `out` */
    const int8_t *x;           /* 76 */
    uint32_t row;              /* 80: bytes of a row of the input */
    uint32_t columns;          /* 84: of the input */
    uint32_t down;             /* 88: bytes of pairs that a column of the output goes down */
    uint32_t first;            /* 92: the same until its first stop: two rows of an odd number */
    uint32_t round;            /* 12: 1 + twice the zero point */
    int8_t *last;              /* 96: before where a channel's last column of the output begins */
} htvm_band_t;
/* Also on the stack: 0: where four outputs begin, 4: bytes from the first to the next, 8: shift,
 * 12: what rounds (HTVM_OWN_UP), 16: multiplier, 20: bias, 24: where the pairs' address r0 stops,
 * 28: where it ends, of an odd number of rows or in a single column, 100: a channel's first pairs. */

/* Four channels of two neighbours, r2 bytes apart, become four pairs; then r0 moves on by `step`. */
#define HTVM_PAIRS_THEN(step)                                                                      \
    "ldr r6, [r0]\n ldr r7, [r0, r2]\n add r0, r0, " step "\n pkhbt r8, r6, r7, lsl #16\n"         \
    "pkhtb r10, r7, r6, asr #16\n sxtb16 r9, r8, ror #8\n sxtb16 r8, r8\n"                         \
    "sxtb16 r11, r10, ror #8\n sxtb16 r10, r10\n stm r1!, {r8, r9, r10, r11}\n"
#define HTVM_PAIRS HTVM_PAIRS_THEN("r3") /* the bytes of a row */

/* Adds three products of a row of pairs, r2 and r3, to the sums of two neighbours: those begin with
 * other registers.  The filter's row is in two registers: weights 0 and 1, and 1 and 2. */
#define HTVM_BESIDE(a, b, from_a, from_b, one, two)                                                \
    "smlad " a ", r2, " one ", " from_a "\n smlabt " a ", r3, " two ", " a "\n"                    \
    "smlatb " b ", r2, " one ", " from_b "\n smlad " b ", r3, " two ", " b "\n"
#define HTVM_UPPER(one, two) HTVM_BESIDE("r4", "r5", "r4", "r5", one, two)
#define HTVM_LOWER(one, two) HTVM_BESIDE("r6", "r7", "r6", "r7", one, two)

/* A channel's filter from r0: its rows in r8 and r9, r10 and r11, r12 and lr. */
#define HTVM_FILTER(way)                                                                           \
    "ldr r2, [r0], #3\n sxtb16 r3, r2, ror #8\n sxtb16 r2, r2\n" HTVM_FILTER_##way                 \
    "pkhbt r8, r2, r3, lsl #16\n pkhbt r9, r3, r2\n"                                               \
    "ldr r2, [r0], #2\n sxtb16 r3, r2, ror #8\n sxtb16 r2, r2\n" HTVM_FILTER_##way                 \
    "pkhbt r10, r2, r3, lsl #16\n pkhbt r11, r3, r2\n"                                             \
    "ldr r2, [r0], #4\n sxtb16 r3, r2, ror #8\n sxtb16 r2, r2\n" HTVM_FILTER_##way                 \
    "pkhbt r12, r3, r2\n pkhtb lr, r3, r2, asr #16\n"

/* Two ways to requantize four sums; r2 becomes where outputs begin, r3 the number behind that on the
 * stack.  ANY is that of htvm_scaled.h.  UP is for small numbers with the zero point -128: filters and
 * biases are doubled, so that the multiplier is a positive number and what is added to the product may
 * be the zero point and what rounds, 2^(shift - 2) times what HTVM_HALVE_UP adds.  A channel's bias is
 * in r4, its multiplier in r5, its shift, two less, in r6. */
#define HTVM_FILTER_ANY
#define HTVM_OWN_ANY
#define HTVM_FOUR_ANY                                                                              \
    "ldrd r2, r3, [sp, #12]\n" HTVM_MULTIPLY("r4", "r3") HTVM_MULTIPLY("r5", "r3")                 \
    HTVM_MULTIPLY("r6", "r3") HTVM_MULTIPLY("r7", "r3") "ldr r3, [sp, #8]\n"                       \
    HTVM_HALVE("r4", "r3", "r2") HTVM_HALVE("r5", "r3", "r2") HTVM_HALVE("r6", "r3", "r2")         \
    HTVM_HALVE("r7", "r3", "r2") "ldrd r2, r3, [sp]\n"
#define HTVM_FILTER_UP "sadd16 r2, r2, r2\n sadd16 r3, r3, r3\n"
#define HTVM_OWN_UP                                                                                \
    "lsl r4, r4, #1\n lsr r5, r5, #1\n mvn r7, #254\n lsl r7, r7, r6\n str r7, [sp, #12]\n"
#define HTVM_UP(sum) "asr " sum ", " sum ", r3\n ssat " sum ", #8, " sum ", asr #1\n"
#define HTVM_FOUR_UP                                                                               \
    "ldrd r2, r3, [sp, #12]\n smmlar r4, r4, r3, r2\n smmlar r5, r5, r3, r2\n"                     \
    "smmlar r6, r6, r3, r2\n smmlar r7, r7, r3, r2\n ldr r3, [sp, #8]\n"                           \
    HTVM_UP("r4") HTVM_UP("r5") HTVM_UP("r6") HTVM_UP("r7") "ldrd r2, r3, [sp]\n"

/* Two by two outputs. */
#define HTVM_TWO_BY_TWO_OUTPUTS(way)                                                               \
    "ldr r7, [sp, #20]\n ldr r2, [r0]\n ldr r3, [r1]\n"                                            \
    HTVM_BESIDE("r4", "r5", "r7", "r7", "r8", "r9")                                                \
    "ldr r2, [r0, #16]\n ldr r3, [r1, #16]\n" HTVM_UPPER("r10", "r11")                             \
    HTVM_BESIDE("r6", "r7", "r7", "r7", "r8", "r9")                                                \
    "ldr r2, [r0, #32]!\n ldr r3, [r1, #32]!\n" HTVM_UPPER("r12", "lr") HTVM_LOWER("r10", "r11")   \
    "ldr r2, [r0, #16]\n ldr r3, [r1, #16]\n" HTVM_LOWER("r12", "lr") HTVM_FOUR_##way              \
    "strb r5, [r2, r3]\n strb r4, [r2]\n ldr r4, [sp, #32]\n add r2, r2, r4\n"                     \
    "strb r7, [r2, r3]\n strb r6, [r2]\n ldr r3, [sp, #24]\n add r2, r2, r4\n str r2, [sp]\n"

/* Four outputs of a column. */
#define HTVM_ALONE(a, from, one, two)                                                              \
    "smlad " a ", r2, " one ", " from "\n smlabt " a ", r3, " two ", " a "\n"
#define HTVM_TOP(a, from) HTVM_ALONE(a, from, "r8", "r9")
#define HTVM_MIDDLE(a) HTVM_ALONE(a, a, "r10", "r11")
#define HTVM_BOTTOM(a) HTVM_ALONE(a, a, "r12", "lr")
#define HTVM_FOUR_OF_A_COLUMN(way)                                                                 \
    "ldr r7, [sp, #20]\n ldr r2, [r0]\n ldr r3, [r1]\n" HTVM_TOP("r4", "r7")                       \
    "ldr r2, [r0, #16]\n ldr r3, [r1, #16]\n" HTVM_MIDDLE("r4") HTVM_TOP("r5", "r7")               \
    "ldr r2, [r0, #32]\n ldr r3, [r1, #32]\n" HTVM_BOTTOM("r4") HTVM_MIDDLE("r5")                  \
    HTVM_TOP("r6", "r7") "ldr r2, [r0, #48]\n ldr r3, [r1, #48]\n" HTVM_BOTTOM("r5")               \
    HTVM_MIDDLE("r6") HTVM_TOP("r7", "r7") "ldr r2, [r0, #64]!\n ldr r3, [r1, #64]!\n"             \
    HTVM_BOTTOM("r6") HTVM_MIDDLE("r7") "ldr r2, [r0, #16]\n ldr r3, [r1, #16]\n"                  \
    HTVM_BOTTOM("r7") HTVM_FOUR_##way                                                              \
    "strb r4, [r2]\n strb r5, [r2, r3]\n add r2, r2, r3, lsl #1\n"                                 \
    "strb r6, [r2]\n strb r7, [r2, r3]\n add r2, r2, r3, lsl #1\n"                                 \
    "ldr r3, [sp, #24]\n str r2, [sp]\n"

/* Takes over what it is given. */
#define HTVM_BAND_GIVEN                                                                            \
    "push {r7, r9}\n sub sp, sp, #104\n add r12, sp, #32\n"                                        \
    "ldm r0!, {r1, r2, r3, r4, r5, r6, r8, r10}\n stm r12!, {r1, r2, r3, r4, r5, r6, r8, r10}\n"   \
    "ldm r0!, {r1, r2, r3, r4, r5, r6, r8, r10}\n stm r12!, {r1, r2, r3, r4, r5, r6, r8, r10}\n"   \
    "ldrd r1, r2, [r0]\n str r1, [sp, #12]\n str r2, [sp, #96]\n"

/* Makes the pairs of four channels: two columns after the other; the last one may be alone. */
#define HTVM_BAND_PAIRS                                                                            \
    "1:\n ldr r0, [sp, #76]\n ldr r1, [sp, #48]\n ldr r2, [sp, #44]\n ldr r5, [sp, #40]\n"         \
    "ldrd r3, r4, [sp, #80]\n str r1, [sp, #100]\n"                                                \
    "2:\n cmp r4, #1\n it eq\n moveq r2, #0\n mov lr, r0\n lsrs r12, r5, #5\n bcc 3f\n" HTVM_PAIRS \
    "3:\n" HTVM_PAIRS HTVM_PAIRS "subs r12, r12, #1\n bne 3b\n"                                    \
    "add r0, lr, r2, lsl #1\n subs r4, r4, #2\n bgt 2b\n"

/* A channel's filter, factors and first output; its first pairs are in r0 then. */
#define HTVM_BAND_CHANNEL(way)                                                                     \
    "4:\n ldr r0, [sp, #52]\n" HTVM_FILTER(way) "str r0, [sp, #52]\n"                              \
    "add r7, sp, #56\n ldm r7, {r0, r1, r2, r3}\n ldr r4, [r0], #4\n ldr r5, [r1], #4\n"           \
    "ldrb r6, [r2], #1\n str r3, [sp]\n add r3, r3, #1\n stm r7, {r0, r1, r2, r3}\n"               \
    "sub r6, r6, #2\n" HTVM_OWN_##way                                                              \
    "str r4, [sp, #20]\n str r6, [sp, #8]\n str r5, [sp, #16]\n ldr r0, [sp, #100]\n"

/* Goes on with the next channel, or with the next four. */
#define HTVM_BAND_NEXT                                                                             \
    "9:\n ldr r0, [sp, #100]\n add r0, r0, #4\n str r0, [sp, #100]\n ldr r1, [sp, #48]\n"          \
    "sub r1, r0, r1\n cmp r1, #16\n bne 4b\n"                                                      \
    "ldr r0, [sp, #76]\n add r0, r0, #4\n str r0, [sp, #76]\n ldrd r0, r1, [sp, #68]\n"            \
    "cmp r0, r1\n bne 1b\n add sp, sp, #104\n pop {r7, r9}\n"

/* The whole. */
#define HTVM_BAND_TEXT(way)                                                                        \
    HTVM_BAND_GIVEN HTVM_BAND_PAIRS HTVM_BAND_CHANNEL(way)                                         \
    "ldr r3, [sp, #96]\n add r3, r3, #1\n str r3, [sp, #96]\n"                                     \
    "ldrd r5, r4, [sp, #40]\n str r4, [sp, #4]\n"                                                  \
    "add r1, r0, r5\n ldrd r2, r3, [sp, #88]\n add r2, r2, r0\n"                                   \
    "add r3, r3, r0\n strd r3, r2, [sp, #24]\n"                                                    \
    "5:\n" HTVM_TWO_BY_TWO_OUTPUTS(way) "cmp r0, r3\n bne 5b\n"                                    \
    /* The next two columns, unless these were the last; then maybe a single one. */               \
    "ldr r4, [sp, #88]\n ldr r5, [sp, #36]\n ldr r6, [sp, #40]\n ldr r7, [sp, #96]\n"              \
    "tst r4, #16\n bne 6f\n add r0, r0, #32\n add r1, r1, #32\n add r2, r2, r5\n"                  \
    "add r3, r3, r6\n str r2, [sp]\n str r3, [sp, #24]\n cmp r2, r7\n bne 5b\n"                    \
    "8:\n ldr r5, [sp, #84]\n tst r5, #1\n beq 9f\n"                                               \
    "ldr r4, [sp, #32]\n str r4, [sp, #4]\n ldr r5, [sp, #88]\n add r4, r0, r5\n"                  \
    "str r4, [sp, #28]\n tst r5, #48\n it ne\n movne r5, #64\n add r5, r5, r0\n str r5, [sp, #24]\n" \
    "7:\n" HTVM_FOUR_OF_A_COLUMN(way) "cmp r0, r3\n bne 7b\n ldr r3, [sp, #28]\n cmp r0, r3\n beq 9f\n" \
    /* Where rows are no multiple of two or four, the first ones are computed twice. */            \
    "ldr r5, [sp, #88]\n and r5, r5, #48\n rsb r5, r5, #64\n ldr r4, [sp, #32]\n"                  \
    "sub r0, r0, r5\n sub r1, r1, r5\n mul r4, r4, r5\n sub r2, r2, r4, lsr #4\n str r2, [sp]\n"   \
    "str r3, [sp, #24]\n b 7b\n"                                                                   \
    /* Of an odd number of rows, the second one is computed twice. */                              \
    "6:\n ldr r3, [sp, #28]\n cmp r0, r3\n bne 10f\n"                                              \
    "add r0, r0, #32\n add r1, r1, #32\n add r2, r2, r5\n str r2, [sp]\n add r3, r3, r6\n"         \
    "ldr r4, [sp, #92]\n add r4, r4, r0\n strd r4, r3, [sp, #24]\n cmp r2, r7\n bne 5b\n b 8b\n"   \
    "10:\n ldr r4, [sp, #32]\n sub r0, r0, #16\n sub r1, r1, #16\n sub r2, r2, r4\n str r2, [sp]\n" \
    "str r3, [sp, #24]\n b 5b\n"                                                                   \
    HTVM_BAND_NEXT
#endif

/* Computes rows of `width` pixels, at least two, from rows of `row` elements at `x`, with multiples of
 * 4 channels; `rows` is at least 2, for an odd width 4.  `pairs` has rows + 2 words for each of four
 * channels and (width + 3) / 2 pairs of columns.  Four channels are read before they are written.
 * `small`: no bias has 2^29 or more, and no shift is above 24. */
HTVM_SHARED void htvm_band_1(int8_t *out, const int8_t *x, uint32_t *pairs, const int8_t *weights,
                             const int32_t *bias, const int32_t *multiplier, const uint8_t *shift,
                             uint32_t channels, uint32_t row, uint32_t rows, uint32_t width,
                             int32_t zero, uint32_t small)
{
#if HTVM_DSP_LOOPS
    htvm_band_t now = {width * channels,
                       (2 - rows * width) * channels,
                       16 * (rows + 2),
                       channels,
                       pairs,
                       weights,
                       bias,
                       multiplier,
                       shift,
                       out,
                       out + channels,
                       x,
                       row,
                       width + 2,
                       16 * rows,
                       rows % 2 == 0 ? 16 * rows : 32,
                       (uint32_t)(2 * zero + 1),
                       out + width / 2 * 2 * channels - 1};
    register htvm_band_t *r0 __asm__("r0") = &now;
    if (zero == -128 && small != 0) {
        __asm__ volatile(HTVM_BAND_TEXT(UP) : "+r"(r0) : : HTVM_ALL_OTHERS);
    } else {
        __asm__ volatile(HTVM_BAND_TEXT(ANY) : "+r"(r0) : : HTVM_ALL_OTHERS);
    }
#else
    (void)small;
    for (uint32_t c = 0; c < channels; c += 4) {
        for (uint32_t i = 0; i < (width + 3) / 2 * (rows + 2) * 4; i++) {
            const uint32_t left = i / 4 / (rows + 2) * 2, right = left + (left < width + 1);
            const int8_t *const from = x + i / 4 % (rows + 2) * row + c + i % 4;
            pairs[i] = (uint32_t)from[left * channels] & 0xffffu;
            pairs[i] |= (uint32_t)from[right * channels] << 16;
        }
        for (uint32_t i = 0; i < rows * width * 4; i++) {
            const uint32_t own = i % 4, k = c + own, left = i / 4 % width, top = i / 4 / width;
            uint32_t sum = (uint32_t)bias[k];
            for (uint32_t tap = 0; tap < 9; tap++) {
                const uint32_t column = left + tap % 3;
                const uint32_t pair = pairs[(column / 2 * (rows + 2) + top + tap / 3) * 4 + own];
                const int16_t value = (int16_t)(uint16_t)(pair >> (16 * (column % 2)));
                sum += (uint32_t)(value * weights[9 * k + tap]);
            }
            out[i / 4 * channels + k] = htvm_scaled((int32_t)sum, multiplier[k], shift[k], zero);
        }
    }
#endif
}

#endif
