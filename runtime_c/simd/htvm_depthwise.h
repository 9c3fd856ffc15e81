/* Depthwise convolutions of int8 with filters of 3x3, requantized to int8 as TFLite does
 * (htvm_scaled.h): three to five neighbouring pixels, one channel after the other.
 *
 * On Cortex-M cores with the DSP extension each call is one statement of assembly, in which all
 * distances are constants: htvm_depthwise_<pixels>_<stride> are macros.  Elsewhere they are plain C
 * with the same results.  Weights are packed as [channels][9].
 */
#ifndef HTVM_DEPTHWISE_H
#define HTVM_DEPTHWISE_H

#include <stdint.h>

#include "htvm_scaled.h"

#if HTVM_DSP_LOOPS
/* What a statement is given, in the order in which it loads it. */
typedef struct {
    const int8_t *x;           /* r0 */
    const int8_t *weights;     /* r1 */
    const int32_t *bias;       /* r2 */
    const int32_t *multiplier; /* r3, or on the stack */
    int8_t *out;               /* r4 */
    const uint8_t *shift;      /* on the stack */
    const int8_t *end;         /* of the channels at `out`; on the stack */
} htvm_depthwise_t;

/* Rows of the filter are at constant distances from r0, unless these are too large for a load: then
 * r0 moves from row to row.  `near` is a row's elements in the first case, and `far` in the second;
 * the other one is 0. */
#define HTVM_NEAR(row, channels) (2 * (row) + 10 * (channels) <= 4095 ? (row) : 0)

/* Sums of pixels are in r5 to r8 and r3, a row's weights in r9 to r11, elements in r12 and lr. */
#define HTVM_X(to, row, column) "ldrsb " to ", [r0, #" column " * %c[c] + " row " * %c[near]]\n"
#define HTVM_X2(row, one, other) HTVM_X("r12", row, one) HTVM_X("lr", row, other)
#define HTVM_W "ldrsb r9, [r1], #1\n ldrsb r10, [r1], #1\n ldrsb r11, [r1], #1\n"
#define HTVM_TAP(sum, x, weight) "mla " sum ", " x ", " weight ", " sum "\n"
#define HTVM_0(sum, x) HTVM_TAP(sum, x, "r9")
#define HTVM_1(sum, x) HTVM_TAP(sum, x, "r10")
#define HTVM_2(sum, x) HTVM_TAP(sum, x, "r11")
#define HTVM_21(a, b, x) HTVM_2(a, x) HTVM_1(b, x)
#define HTVM_10(a, b, x) HTVM_1(a, x) HTVM_0(b, x)
#define HTVM_20(a, b, x) HTVM_2(a, x) HTVM_0(b, x)
#define HTVM_210(a, b, c, x) HTVM_21(a, b, x) HTVM_0(c, x)
#define HTVM_DOWN ".if %c[far]\n movw lr, #%c[far]\n add r0, r0, lr\n .endif\n"
#define HTVM_NEXT_CHANNEL                                                                          \
    ".if %c[far]\n movw lr, #2 * %c[far] - 1\n sub r0, r0, lr\n .else\n add r0, r0, #1\n .endif\n"

/* A row of the filter. */
#define HTVM_ROW_3_1(row)                                                                          \
    HTVM_W HTVM_X2(row, "0", "1") HTVM_0("r5", "r12") HTVM_10("r5", "r6", "lr")                    \
    HTVM_X2(row, "2", "3") HTVM_210("r5", "r6", "r7", "r12") HTVM_21("r6", "r7", "lr")             \
    HTVM_X("r12", row, "4") HTVM_2("r7", "r12")
#define HTVM_ROW_4_1(row)                                                                          \
    HTVM_W HTVM_X2(row, "0", "1") HTVM_0("r5", "r12") HTVM_10("r5", "r6", "lr")                    \
    HTVM_X2(row, "2", "3") HTVM_210("r5", "r6", "r7", "r12") HTVM_210("r6", "r7", "r8", "lr")      \
    HTVM_X2(row, "4", "5") HTVM_21("r7", "r8", "r12") HTVM_2("r8", "lr")
#define HTVM_ROW_5_1(row)                                                                          \
    HTVM_W HTVM_X2(row, "0", "1") HTVM_0("r5", "r12") HTVM_10("r5", "r6", "lr")                    \
    HTVM_X2(row, "2", "3") HTVM_210("r5", "r6", "r7", "r12") HTVM_210("r6", "r7", "r8", "lr")      \
    HTVM_X2(row, "4", "5") HTVM_210("r7", "r8", "r3", "r12") HTVM_21("r8", "r3", "lr")             \
    HTVM_X("r12", row, "6") HTVM_2("r3", "r12")
#define HTVM_ROW_3_2(row)                                                                          \
    HTVM_W HTVM_X2(row, "0", "1") HTVM_0("r5", "r12") HTVM_1("r5", "lr")                           \
    HTVM_X2(row, "2", "3") HTVM_20("r5", "r6", "r12") HTVM_1("r6", "lr")                           \
    HTVM_X2(row, "4", "5") HTVM_20("r6", "r7", "r12") HTVM_1("r7", "lr")                           \
    HTVM_X("r12", row, "6") HTVM_2("r7", "r12")
#define HTVM_ROW_4_2(row)                                                                          \
    HTVM_W HTVM_X2(row, "0", "1") HTVM_0("r5", "r12") HTVM_1("r5", "lr")                           \
    HTVM_X2(row, "2", "3") HTVM_20("r5", "r6", "r12") HTVM_1("r6", "lr")                           \
    HTVM_X2(row, "4", "5") HTVM_20("r6", "r7", "r12") HTVM_1("r7", "lr")                           \
    HTVM_X2(row, "6", "7") HTVM_20("r7", "r8", "r12") HTVM_1("r8", "lr")                           \
    HTVM_X("r12", row, "8") HTVM_2("r8", "r12")
#define HTVM_ROW_5_2(row)                                                                          \
    HTVM_W HTVM_X2(row, "0", "1") HTVM_0("r5", "r12") HTVM_1("r5", "lr")                           \
    HTVM_X2(row, "2", "3") HTVM_20("r5", "r6", "r12") HTVM_1("r6", "lr")                           \
    HTVM_X2(row, "4", "5") HTVM_20("r6", "r7", "r12") HTVM_1("r7", "lr")                           \
    HTVM_X2(row, "6", "7") HTVM_20("r7", "r8", "r12") HTVM_1("r8", "lr")                           \
    HTVM_X2(row, "8", "9") HTVM_20("r8", "r3", "r12") HTVM_1("r3", "lr")                           \
    HTVM_X("r12", row, "10") HTVM_2("r3", "r12")

/* How many pixels have sums: the other sums' start, products, halving, stores. */
#define HTVM_START_3 "mov r6, r5\n mov r7, r5\n"
#define HTVM_START_4 HTVM_START_3 "mov r8, r5\n"
#define HTVM_START_5 HTVM_START_4 "mov r3, r5\n"
#define HTVM_PRODUCTS_3                                                                            \
    HTVM_MULTIPLY("r5", "r9") HTVM_MULTIPLY("r6", "r9") HTVM_MULTIPLY("r7", "r9")
#define HTVM_PRODUCTS_4 HTVM_PRODUCTS_3 HTVM_MULTIPLY("r8", "r9")
#define HTVM_PRODUCTS_5 HTVM_PRODUCTS_4 HTVM_MULTIPLY("r3", "r9")
#define HTVM_HALF(sum)                                                                             \
    ".if %c[round] == -255\n" HTVM_HALVE_UP(sum, "r10", "#%c[round]") ".else\n"                 \
    HTVM_HALVE(sum, "r10", "#%c[round]") ".endif\n"
#define HTVM_HALVES_3 HTVM_HALF("r5") HTVM_HALF("r6") HTVM_HALF("r7")
#define HTVM_HALVES_4 HTVM_HALVES_3 HTVM_HALF("r8")
#define HTVM_HALVES_5 HTVM_HALVES_4 HTVM_HALF("r3")
#define HTVM_OUT(sum, pixel) "strb " sum ", [r4, #" pixel " * %c[c]]\n"
#define HTVM_STORES_3 HTVM_OUT("r5", "0") HTVM_OUT("r6", "1") HTVM_OUT("r7", "2")
#define HTVM_STORES_4 HTVM_STORES_3 HTVM_OUT("r8", "3")
#define HTVM_STORES_5 HTVM_STORES_4 HTVM_OUT("r3", "4")

/* The next channel's multiplier becomes r9, its shift r10, two less: with r3 free, and without. */
#define HTVM_FACTOR_4                                                                              \
    "ldr lr, [sp]\n ldr r9, [r3], #4\n ldrb r10, [lr], #1\n str lr, [sp]\n sub r10, r10, #2\n"
#define HTVM_FACTOR_3 HTVM_FACTOR_4
#define HTVM_FACTOR_5                                                                              \
    "ldrd r11, lr, [sp, #8]\n ldr r9, [r11], #4\n ldrb r10, [lr], #1\n strd r11, lr, [sp, #8]\n"   \
    "sub r10, r10, #2\n"

#define HTVM_DEPTHWISE(pixels, stride, to, from, weight, add, factor, shifts, channels, line, zero)\
    do {                                                                                           \
        htvm_depthwise_t now = {from, weight, add, factor, to, shifts, (to) + (channels)};         \
        register htvm_depthwise_t *r0 __asm__("r0") = &now;                                        \
        __asm__ volatile("push {r7, r9}\n ldm r0, {r0, r1, r2, r3, r4, r5, r6}\n"                  \
                         "push {r3, r5}\n push {r5, r6}\n 2:\n ldr r5, [r2], #4\n"                 \
                         HTVM_START_##pixels HTVM_ROW_##pixels##_##stride("0") HTVM_DOWN           \
                         HTVM_ROW_##pixels##_##stride("1") HTVM_DOWN                               \
                         HTVM_ROW_##pixels##_##stride("2")                                         \
                         HTVM_FACTOR_##pixels HTVM_PRODUCTS_##pixels HTVM_HALVES_##pixels          \
                         HTVM_STORES_##pixels HTVM_NEXT_CHANNEL                                    \
                         "ldr lr, [sp, #4]\n add r4, r4, #1\n cmp r4, lr\n bne 2b\n"               \
                         "add sp, sp, #16\n pop {r7, r9}\n"                                        \
                         : "+r"(r0)                                                                \
                         : [c] "i"(channels), [near] "i"(HTVM_NEAR(line, channels)),               \
                           [far] "i"((line) - HTVM_NEAR(line, channels)),                          \
                           [round] "i"(2 * (zero) + 1)                                             \
                         : HTVM_ALL_OTHERS);                                                       \
    } while (0)
#else
#define HTVM_DEPTHWISE(pixels, stride, to, from, weight, add, factor, shifts, channels, line, zero)\
    htvm_depthwise(to, from, weight, add, factor, shifts, channels, line, zero, pixels, stride)

/* Computes `pixels` neighbours at `out` from rows of `row` elements at `x`. */
HTVM_SHARED void htvm_depthwise(int8_t *out, const int8_t *x, const int8_t *weights,
                                const int32_t *bias, const int32_t *multiplier,
                                const uint8_t *shift, uint32_t channels, uint32_t row, int32_t zero,
                                uint32_t pixels, uint32_t stride)
{
    for (uint32_t c = 0; c < channels; c++, weights += 9) {
        int32_t sums[5];
        for (uint32_t p = 0; p < pixels; p++) {
            const int8_t *const from = x + p * stride * channels + c;
            uint32_t sum = (uint32_t)bias[c];
            for (uint32_t i = 0; i < 9; i++) {
                sum += (uint32_t)(from[i / 3 * row + i % 3 * channels] * weights[i]);
            }
            sums[p] = (int32_t)sum;
        }
        for (uint32_t p = 0; p < pixels; p++) {
            out[p * channels + c] = htvm_scaled(sums[p], multiplier[c], shift[c], zero);
        }
    }
}
#endif

#define htvm_depthwise_3_1(...) HTVM_DEPTHWISE(3, 1, __VA_ARGS__)
#define htvm_depthwise_4_1(...) HTVM_DEPTHWISE(4, 1, __VA_ARGS__)
#define htvm_depthwise_5_1(...) HTVM_DEPTHWISE(5, 1, __VA_ARGS__)
#define htvm_depthwise_3_2(...) HTVM_DEPTHWISE(3, 2, __VA_ARGS__)
#define htvm_depthwise_4_2(...) HTVM_DEPTHWISE(4, 2, __VA_ARGS__)
#define htvm_depthwise_5_2(...) HTVM_DEPTHWISE(5, 2, __VA_ARGS__)

#endif
