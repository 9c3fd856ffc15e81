/* Products of columns of halfwords (htvm_columns.h) with all channels, requantized to int8 as TFLite
 * does: htvm_scale, a zero point, limits of int8.
 *
 * On Cortex-M cores with the DSP extension each function is one statement of assembly, in which sums
 * never leave registers, so that all compilers make the same of it; elsewhere it is plain C with the
 * same results.  The statement is given the address of a record; it saves the two registers that
 * compilers may keep (HTVM_BORROW), and has the record's address on the stack.
 */
#ifndef HTVM_SCALED_H
#define HTVM_SCALED_H

#include <stdint.h>

#include "htvm_columns.h"

#if HTVM_DSP_LOOPS
/* What a statement is given, at these offsets; it moves the first four on to the next channel. */
typedef struct {
    const int32_t *bias;       /* 0 */
    const int32_t *multiplier; /* 4 */
    const uint8_t *shift;      /* 8 */
    int8_t *out;               /* 12 */
    uint32_t apart;            /* 16: bytes from a pixel's output to the next one's */
    int32_t round;             /* 20: 1 + twice the zero point, which is added before it is halved */
    const int32_t *end;        /* 24: of the biases */
    const uint32_t *column;    /* 28 */
    uint32_t words;            /* 32: of a column */
    const int8_t *weights;     /* 36 */
    const int32_t *threes;     /* 40: end of the biases of channels in threes */
    uint32_t first;            /* 44: address of the step that a block begins with, or pairs left */
} htvm_scaled_t;

/* The record of a function's arguments, and r0 that points to it. */
#define HTVM_RECORD(round, threes)                                                                 \
    htvm_scaled_t now = {bias,   multiplier, shift,   out,    apart, round, bias + channels,       \
                         column, words,      weights, threes, 0};                                  \
    register htvm_scaled_t *r0 __asm__("r0") = &now

/* Requantizes: `scaled` is multiplied (htvm_scale), `shift` two less than there, `round` as above. */
#define HTVM_MULTIPLY(scaled, multiplier)                                                          \
    "smmlar " scaled ", " scaled ", " multiplier ", " scaled "\n"
#define HTVM_HALVE(scaled, shift, round)                                                           \
    "add " scaled ", " scaled ", " scaled ", asr #31\n asr " scaled ", " scaled ", " shift "\n"    \
    "add " scaled ", " scaled ", " round "\n ssat " scaled ", #8, " scaled ", asr #1\n"

/* The same where the zero point is -128, as behind a ReLU: all negative numbers become that, however
 * their halves are rounded. */
#define HTVM_HALVE_UP(scaled, shift, round)                                                        \
    "asr " scaled ", " scaled ", " shift "\n add " scaled ", " scaled ", " round "\n"              \
    "ssat " scaled ", #8, " scaled ", asr #1\n"

/* Repeats a step r6 times: singly until four at once are left; then goes on at label 5. */
#define HTVM_FOUR_TIMES(step) step step step step
#define HTVM_IN_FOURS(step)                                                                        \
    "tst r6, #3\n beq 4f\n 3:\n" step "subs r6, r6, #1\n tst r6, #3\n bne 3b\n"                    \
    "cmp r6, #0\n beq 5f\n 4:\n" HTVM_FOUR_TIMES(step) "subs r6, r6, #4\n bne 4b\n 5:\n"

#define HTVM_ALL_OTHERS                                                                            \
    "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r10", "r11", "r12", "lr", "cc", "memory"
#endif

/* Requantizes a sum. */
HTVM_INLINE int8_t htvm_scaled(int32_t sum, int32_t multiplier, uint32_t shift, int32_t zero)
{
    return (int8_t)htvm_clip(htvm_scale(sum, (uint32_t)multiplier, shift) + zero, -128, 127);
}

#if HTVM_DSP_LOOPS
/* A step of two pixels and three channels: 27 cycles for 24 products.  Loads of single words behind
 * each other take fewer cycles than two of several. */
#define HTVM_THIRD(weights, turned, a, b)                                                          \
    "sxtb16 lr, " weights turned "\n smlad " a ", r2, lr, " a "\n smlad " b ", r3, lr, " b "\n"
#define HTVM_THREES                                                                                \
    "ldr r11, [r1, #4]\n ldr r12, [r1, #8]\n ldr r4, [r1], #12\n ldr.n r3, [r0, #4]\n"             \
    "ldr r2, [r0], #8\n" HTVM_THIRD("r4", "", "r5", "r8")                                          \
    HTVM_THIRD("r11", "", "r6", "r9") HTVM_THIRD("r12", "", "r7", "r10")                           \
    "ldrd r2, r3, [r0], #8\n" HTVM_THIRD("r4", ", ror #8", "r5", "r8")                             \
    HTVM_THIRD("r11", ", ror #8", "r6", "r9") HTVM_THIRD("r12", ", ror #8", "r7", "r10")

/* A step of two channels: r8, r10 are the first pixel's sums, r11, r12 the second's. */
#define HTVM_TWOS                                                                                  \
    "ldm r0!, {r2, r3, r4, r5}\n ldrd r7, r9, [r1], #8\n"                                          \
    "sxtb16 lr, r7\n smlad r8, r2, lr, r8\n smlad r11, r3, lr, r11\n"                              \
    "sxtb16 lr, r7, ror #8\n smlad r8, r4, lr, r8\n smlad r11, r5, lr, r11\n"                      \
    "sxtb16 lr, r9\n smlad r10, r2, lr, r10\n smlad r12, r3, lr, r12\n"                            \
    "sxtb16 lr, r9, ror #8\n smlad r10, r4, lr, r10\n smlad r12, r5, lr, r12\n"

/* Requantizes a channel of both pixels: the next multiplier becomes r4, the next shift r11. */
#define HTVM_BOTH(a, b)                                                                            \
    "ldr r4, [r2], #4\n ldrb r11, [r3], #1\n" HTVM_MULTIPLY(a, "r4") HTVM_MULTIPLY(b, "r4")        \
    "sub r11, r11, #2\n" HTVM_HALVE(a, "r11", "lr") HTVM_HALVE(b, "r11", "lr")
#endif

/* Multiplies two columns with `channels` channels, at least two.  Words of weights alternate in
 * threes, those of the last channels in twos, so that none is left.  Writes a pixel's channels at
 * `out`, those of the other one `apart` bytes behind. */
HTVM_SHARED void htvm_scaled_two(int8_t *out, const uint32_t *column, const int8_t *weights,
                                 const int32_t *bias, const int32_t *multiplier,
                                 const uint8_t *shift, uint32_t words, uint32_t channels,
                                 uint32_t apart, int32_t zero)
{
    const uint32_t threes = (channels - 2 * (2 * channels % 3)) / 3 * 3;
#if HTVM_DSP_LOOPS
    HTVM_RECORD(2 * zero + 1, bias + threes);
    __asm__ volatile(
        /* Behind the record's address, that of the end of the columns is on the stack, too. */
        "push {r0, r7, r9}\n ldr r1, [r0, #36]\n ldrd r3, r2, [r0, #28]\n"
        "add r3, r3, r2, lsl #4\n push {r3}\n"
        /* Of 16 steps at once, the first ones are left out where words are no multiple of 16. */
        "rsb r2, r2, #0\n and r2, r2, #15\n mov r3, #94\n mul r2, r2, r3\n adr.w r3, 4f\n"
        "add r2, r2, r3\n orr r2, r2, #1\n str r2, [r0, #44]\n"
        "ldr r2, [r0]\n ldr r3, [r0, #40]\n cmp r2, r3\n beq 6f\n"
        "mov r12, r0\n"
        "2:\n ldm r2!, {r5, r6, r7}\n str r2, [r12]\n ldr r3, [r12, #44]\n ldr r0, [r12, #28]\n"
        "mov r8, r5\n mov r9, r6\n mov r10, r7\n bx r3\n .balign 4\n"
        "4:\n" HTVM_FOUR_TIMES(HTVM_THREES) HTVM_FOUR_TIMES(HTVM_THREES)
        HTVM_FOUR_TIMES(HTVM_THREES) HTVM_FOUR_TIMES(HTVM_THREES)
        "ldr lr, [sp]\n ldr r12, [sp, #4]\n cmp r0, lr\n bne 4b\n"
        "ldr r2, [r12, #4]\n ldr r3, [r12, #8]\n ldr lr, [r12, #20]\n"
        HTVM_BOTH("r5", "r8") HTVM_BOTH("r6", "r9") HTVM_BOTH("r7", "r10")
        "str r2, [r12, #4]\n str r3, [r12, #8]\n ldr r2, [r12, #12]\n ldr r3, [r12, #16]\n"
        "bfi r5, r6, #8, #8\n bfi r8, r9, #8, #8\n strh r8, [r2, r3]\n strh r5, [r2], #2\n"
        "strb r10, [r2, r3]\n strb r7, [r2], #1\n str r2, [r12, #12]\n"
        "ldr r2, [r12]\n ldr r3, [r12, #40]\n cmp r2, r3\n bne 2b\n ldr r0, [sp, #4]\n"
        "6:\n ldr r3, [r0, #24]\n cmp r2, r3\n beq 8f\n"
        "7:\n ldrd r8, r10, [r2], #8\n str r2, [r0]\n ldrd r0, r6, [r0, #28]\n"
        "mov r11, r8\n mov r12, r10\n" HTVM_IN_FOURS(HTVM_TWOS)
        "ldr r0, [sp, #4]\n ldrd r2, r3, [r0, #4]\n ldrd r4, r5, [r0, #12]\n ldr r6, [r0, #20]\n"
        "ldrb r7, [r3], #1\n ldrb r9, [r3], #1\n ldr lr, [r2], #4\n" HTVM_MULTIPLY("r8", "lr")
        HTVM_MULTIPLY("r11", "lr") "ldr lr, [r2], #4\n" HTVM_MULTIPLY("r10", "lr")
        HTVM_MULTIPLY("r12", "lr") "strd r2, r3, [r0, #4]\n sub r7, r7, #2\n sub r9, r9, #2\n"
        HTVM_HALVE("r8", "r7", "r6") HTVM_HALVE("r10", "r9", "r6") HTVM_HALVE("r11", "r7", "r6")
        HTVM_HALVE("r12", "r9", "r6") "strb r8, [r4], #1\n strb r10, [r4], #1\n str r4, [r0, #12]\n"
        "add r5, r5, r4\n strb r11, [r5, #-2]\n strb r12, [r5, #-1]\n"
        "ldr r2, [r0]\n ldr r3, [r0, #24]\n cmp r2, r3\n bne 7b\n"
        "8:\n add sp, sp, #4\n pop {r0, r7, r9}\n"
        : "+r"(r0)
        :
        : HTVM_ALL_OTHERS);
#else
    for (uint32_t k = 0; k < channels;) {
        const uint32_t block = k < threes ? 3 : 2;
        for (uint32_t i = 0; i < 2 * block; i++) {
            const uint32_t own = i % block, pixel = i / block;
            int32_t sum = bias[k + own];
            for (uint32_t w = 0; w < words; w++) {
                const uint32_t elements = htvm_load4(weights + 4 * (w * block + own));
                sum = htvm_word(column + 4 * w + pixel, 2, elements, sum);
            }
            out[pixel * apart + k + own] =
                htvm_scaled(sum, multiplier[k + own], shift[k + own], zero);
        }
        k += block;
        weights += 4 * block * words;
    }
#endif
}

#if HTVM_DSP_LOOPS
/* Half a step of two pixels (r2, r3) and four channels: 15 cycles for 16 products.  `both` are the
 * sums of two channels, `a` and `b` those of the first, both pixels'. */
#define HTVM_TWIN_FROM(weights, a, b, both_a, both_b, from_b, from_both_a, from_both_b)            \
    "smlad " both_b ", r3, " weights ", " from_both_b "\n"                                         \
    "smlad " both_a ", r2, " weights ", " from_both_a "\n sxtb16 " weights ", " weights "\n"       \
    "smlad " b ", r3, " weights ", " from_b "\n smlad " a ", r2, " weights ", " a "\n"
#define HTVM_TWIN(weights, a, b, both_a, both_b)                                                   \
    HTVM_TWIN_FROM(weights, a, b, both_a, both_b, b, both_a, both_b)
#define HTVM_TWIN_LOADS                                                                            \
    "ldr r4, [r1], #4\n ldr lr, [r1], #4\n ldr.n r3, [r0, #4]\n ldr r2, [r0], #8\n"
#define HTVM_TWINS                                                                                 \
    HTVM_TWIN_LOADS HTVM_TWIN("r4", "r5", "r6", "r7", "r8")                                        \
    HTVM_TWIN("lr", "r9", "r10", "r11", "r12")
#define HTVM_FIRST_TWINS                                                                           \
    HTVM_TWIN_LOADS HTVM_TWIN_FROM("r4", "r5", "r6", "r7", "r8", "r5", "r5", "r5")                 \
    HTVM_TWIN_FROM("lr", "r9", "r10", "r11", "r12", "r9", "r9", "r9")
/* The same for cores that issue a load or an extension beside a product.  Words of the next half
 * step are loaded behind the last product that reads their register, all but lr's; the first ones
 * before all half steps. */
#define HTVM_DUAL_FROM(b, both_a, both_b, d, both_c, both_d, next)                                 \
    "smlad r8, r3, r4, " both_b "\n ldr lr, [r1], #4\n smlad r7, r2, r4, " both_a "\n"             \
    "sxtb16 r4, r4\n smlad r12, r3, lr, " both_d "\n smlad r11, r2, lr, " both_c "\n"              \
    "sxtb16 lr, lr\n smlad r6, r3, r4, " b "\n smlad r5, r2, r4, r5\n" next("ldr r4, [r1], #4\n")  \
    "smlad r10, r3, lr, " d "\n" next("ldr.n r3, [r0, #4]\n")                                      \
    "smlad r9, r2, lr, r9\n" next("ldr r2, [r0], #8\n")
#define HTVM_LOADED(load) load
#define HTVM_LEFT_OUT(load)
#define HTVM_FIRST_DUAL                                                                            \
    "ldr r4, [r1], #4\n ldr.n r3, [r0, #4]\n ldr r2, [r0], #8\n"                                   \
    HTVM_DUAL_FROM("r5", "r5", "r5", "r9", "r9", "r9", HTVM_LOADED)
#define HTVM_DUAL HTVM_DUAL_FROM("r6", "r7", "r8", "r10", "r11", "r12", HTVM_LOADED)
#define HTVM_LAST_DUAL HTVM_DUAL_FROM("r6", "r7", "r8", "r10", "r11", "r12", HTVM_LEFT_OUT)
#define HTVM_TWIN_SUMS(a, b, both_a, both_b, bias)                                                 \
    "sub " both_a ", " both_a ", " a "\n sub " both_b ", " both_b ", " b "\n"                      \
    "add " both_a ", " bias ", " both_a ", asr #8\n add " both_b ", " bias ", " both_b ", asr #8\n"
#define HTVM_EIGHT_HALVES(halve, round)                                                            \
    halve("r5", "lr", round) halve("r6", "lr", round) "lsr lr, lr, #8\n"                           \
    halve("r7", "lr", round) halve("r8", "lr", round) "lsr lr, lr, #8\n"                           \
    halve("r9", "lr", round) halve("r10", "lr", round) "lsr lr, lr, #8\n"                          \
    halve("r11", "lr", round) halve("r12", "lr", round)
/* Moves on to the next four biases, r2 on the stack, and multiplies sums with their multipliers. */
#define HTVM_EIGHT_MULTIPLIED                                                                      \
    "add r3, r3, r2\n add r2, r2, #16\n str r2, [sp]\n ldm r3, {r2, r3, r4, lr}\n"                 \
    HTVM_MULTIPLY("r5", "r2") HTVM_MULTIPLY("r6", "r2") HTVM_MULTIPLY("r7", "r3")                  \
    HTVM_MULTIPLY("r8", "r3") HTVM_MULTIPLY("r9", "r4") HTVM_MULTIPLY("r10", "r4")                 \
    HTVM_MULTIPLY("r11", "lr") HTVM_MULTIPLY("r12", "lr")
/* Stores a pixel's four channels together, at r2 and r4 bytes behind; r2 becomes the next biases. */
#define HTVM_EIGHT_STORED                                                                          \
    "bfi r5, r7, #8, #8\n bfi r9, r11, #8, #8\n bfi r6, r8, #8, #8\n bfi r10, r12, #8, #8\n"       \
    "pkhbt r5, r5, r9, lsl #16\n pkhbt r6, r6, r10, lsl #16\n"                                     \
    "str r6, [r2, r4]\n str r5, [r2], #4\n str r2, [sp, #12]\n ldr r2, [sp]\n"

/* As in htvm_scaled_three, but of 32 half steps, of which r10 are left out the first time, and with all
 * that a block needs on the stack: 0: its biases, 4: how far behind them its multipliers are, 8: how
 * far behind its output its shifts are, 12: its output, 16: twice `apart`, plus 1 unless the zero
 * point is -128, 20: the end of the biases, 24: the columns, 28: their end, 32: where to go on behind
 * the first half step.  `end` is free between half steps. */
#define HTVM_PAIRED(left_out, first, step, last, end)                                              \
    __asm__ volatile(                                                                              \
        "push {r0, r7, r9}\n ldm r0, {r2, r3, r4, r5, r6, r7, r8, r9, r10}\n ldr r1, [r0, #36]\n"  \
        "sub r3, r3, r2\n sub r4, r4, r5\n lsl r6, r6, #1\n cmp r7, #0\n it ne\n"                  \
        "addne r6, r6, #1\n add r11, r9, r10, lsl #4\n lsl r10, r10, #1\n" left_out                \
        "mov r12, #54\n mul r10, r10, r12\n adr.w r12, 4f\n add r12, r12, r10\n"                   \
        "orr r12, r12, #1\n push {r2, r3, r4, r5, r6, r8, r9, r11, r12}\n"                         \
        "2:\n ldr r5, [r2]\n ldr r9, [r2, #8]\n ldr r0, [sp, #24]\n"                               \
        first "ldr pc, [sp, #32]\n .balign 4\n"                                                    \
        "4:\n" HTVM_FOUR_TIMES(HTVM_FOUR_TIMES(step)) HTVM_FOUR_TIMES(HTVM_FOUR_TIMES(step))       \
        "ldr " end ", [sp, #28]\n cmp r0, " end "\n bne 4b\n" last                                 \
        "ldr r2, [sp]\n ldr r3, [sp, #4]\n ldr r4, [r2, #4]\n ldr lr, [r2, #12]\n"                 \
        HTVM_TWIN_SUMS("r5", "r6", "r7", "r8", "r4") HTVM_TWIN_SUMS("r9", "r10", "r11", "r12", "lr")\
        HTVM_EIGHT_MULTIPLIED                                                                      \
        "ldr r2, [sp, #12]\n ldr r3, [sp, #8]\n ldr r4, [sp, #16]\n ldr lr, [r2, r3]\n"            \
        "sub lr, lr, #0x02020202\n lsrs r4, r4, #1\n bcs 9f\n"                                     \
        HTVM_EIGHT_HALVES(HTVM_HALVE_UP, "#-255")                                                  \
        "8:\n" HTVM_EIGHT_STORED "ldr r3, [sp, #20]\n cmp r2, r3\n bne 2b\n"                       \
        /* The next two columns: they begin where these end, their output `apart` twice behind. */ \
        "ldr r6, [sp, #36]\n ldr r4, [r6, #44]\n subs r4, r4, #1\n beq 10f\n str r4, [r6, #44]\n"  \
        "ldr r5, [sp, #24]\n ldr r0, [sp, #28]\n ldr r2, [r6]\n ldr r1, [r6, #36]\n"               \
        "ldr r4, [r6, #16]\n sub r5, r0, r5\n add r5, r5, r0\n strd r0, r5, [sp, #24]\n"           \
        "ldrd r5, r7, [sp, #8]\n sub r3, r3, r2\n sub r5, r5, r4, lsl #1\n add r7, r7, r4, lsl #1\n"\
        "sub r7, r7, r3, lsr #2\n strd r5, r7, [sp, #8]\n str r2, [sp]\n b 2b\n"                   \
        "9:\n ldr r3, [sp, #36]\n ldr r3, [r3, #20]\n sub r3, r3, #255\n"                          \
        HTVM_EIGHT_HALVES(HTVM_HALVE, "r3") "b 8b\n"                                               \
        "10:\n add sp, sp, #36\n pop {r0, r7, r9}\n"                                               \
        : "+r"(r0)                                                                                 \
        :                                                                                          \
        : HTVM_ALL_OTHERS)
#endif

/* Multiplies `pairs` pairs of columns with `channels` channels, one at least, and multiples of 4.  A
 * halfword of weights is 256 times that of the second channel of two, plus that of the first: its products add up to both
 * sums, and those of its sign-extended low byte to the first.  Their difference is 256 times the
 * second, which 24 bits must hold; sums wrap around.  Of four channels, weights are pairs of halfwords
 * 0 and 2 of the first two, those of the others, and then halfwords 1 and 3. */
HTVM_SHARED void htvm_scaled_two_paired(int8_t *out, const uint32_t *column, const int8_t *weights,
                                        const int32_t *bias, const int32_t *multiplier,
                                        const uint8_t *shift, uint32_t words, uint32_t channels,
                                        uint32_t apart, uint32_t pairs, int32_t zero)
{
#if HTVM_DSP_LOOPS
    HTVM_RECORD(2 * (zero + 128), 0);
    now.first = pairs;
    HTVM_PAIRED("rsb r10, r10, #1\n and r10, r10, #31\n", HTVM_FIRST_TWINS, HTVM_TWINS, "", "r2");
#else
    for (; pairs > 0; pairs--, column += 4 * words, out += 2 * apart) {
        for (uint32_t k = 0; k < channels; k += 2) {
            const int8_t *const own = weights + 4 * words * (k - k % 4) + 4 * (k % 4 / 2);
            for (uint32_t pixel = 0; pixel < 2; pixel++) {
                int32_t first = bias[k], both = first;
                for (uint32_t half = 0; half < 2 * words; half++) {
                    const uint32_t x = column[2 * half + pixel], two = htvm_load4(own + 8 * half);
                    first = htvm_pair(x, htvm_widen_even(two), first);
                    both = htvm_pair(x, two, both);
                }
                const int32_t other = (int32_t)((uint32_t)both - (uint32_t)first);
                const int32_t second = other / 256 + bias[k + 1];
                out[pixel * apart + k] = htvm_scaled(first, multiplier[k], shift[k], zero);
                out[pixel * apart + k + 1] =
                    htvm_scaled(second, multiplier[k + 1], shift[k + 1], zero);
            }
        }
    }
#endif
}

/* The same in the order of HTVM_DUAL; one word is two half steps, none of which is in the loop. */
HTVM_SHARED void htvm_scaled_two_dual_paired(int8_t *out, const uint32_t *column,
                                             const int8_t *weights, const int32_t *bias,
                                             const int32_t *multiplier, const uint8_t *shift,
                                             uint32_t words, uint32_t channels, uint32_t apart,
                                             uint32_t pairs, int32_t zero)
{
#if HTVM_DSP_LOOPS
    HTVM_RECORD(2 * (zero + 128), 0);
    now.first = pairs;
    HTVM_PAIRED("rsbs r10, r10, #2\n ite eq\n moveq r10, #32\n andne r10, r10, #31\n",
                HTVM_FIRST_DUAL, HTVM_DUAL, HTVM_LAST_DUAL, "lr");
#else
    htvm_scaled_two_paired(out, column, weights, bias, multiplier, shift, words, channels, apart,
                           pairs, zero);
#endif
}

#if HTVM_DSP_LOOPS
/* Half a step of HTVM_TWINS where the second pixel's words are 52 bytes behind the first one's. */
#define HTVM_IMAGE_LOADS(at)                                                                       \
    "ldr r4, [r1], #4\n ldr lr, [r1], #4\n ldr r3, [r0, #52 + " at "]\n ldr r2, [r0, #" at "]\n"
#define HTVM_IMAGE_STEP(at)                                                                        \
    HTVM_IMAGE_LOADS(at) HTVM_TWIN("r4", "r5", "r6", "r7", "r8")                                   \
    HTVM_TWIN("lr", "r9", "r10", "r11", "r12")
#define HTVM_FIRST_IMAGE_STEP(at)                                                                  \
    HTVM_IMAGE_LOADS(at) HTVM_TWIN_FROM("r4", "r5", "r6", "r7", "r8", "r5", "r5", "r5")            \
    HTVM_TWIN_FROM("lr", "r9", "r10", "r11", "r12", "r9", "r9", "r9")
#define HTVM_IMAGE_STEPS(a, b, c, d)                                                               \
    HTVM_IMAGE_STEP(a) HTVM_IMAGE_STEP(b) HTVM_IMAGE_STEP(c) HTVM_IMAGE_STEP(d)
#endif

/* Multiplies a row of an even number of pixels with `channels` channels, multiples of 4: windows of
 * three rows of nine elements, six elements apart (htvm_widen_image), for the zero point -128.
 * Weights are as in htvm_scaled_two_paired: eight of each row, then the last of all rows. */
HTVM_SHARED void htvm_scaled_image(int8_t *out, const uint32_t *column, const int8_t *weights,
                                   const int32_t *bias, const int32_t *multiplier,
                                   const uint8_t *shift, uint32_t pixels, uint32_t channels,
                                   uint32_t apart, int32_t zero)
{
#if HTVM_DSP_LOOPS
    const uint32_t words = pixels;
    HTVM_RECORD(2 * zero + 1, 0);
    __asm__ volatile(
        /* On the stack: 0: biases of a block, 4: how far behind them its multipliers are, 8: how far
         * behind its output its shifts are, 12: its output, 16: `apart`, 20: pixels left, 24: all
         * biases, 28: weights, 32: the end of the biases, 36: shifts. */
        "push {r0, r7, r9}\n ldm r0, {r2, r3, r4, r5, r6, r7, r8, r9, r10}\n ldr r1, [r0, #36]\n"
        "mov r0, r9\n sub r3, r3, r2\n sub sp, sp, #40\n str r3, [sp, #4]\n"
        "strd r5, r6, [sp, #12]\n str r10, [sp, #20]\n strd r2, r1, [sp, #24]\n"
        "strd r8, r4, [sp, #32]\n"
        "1:\n ldrd r2, r1, [sp, #24]\n ldr r3, [sp, #36]\n ldr r4, [sp, #12]\n sub r3, r3, r4\n"
        "str r3, [sp, #8]\n str r2, [sp]\n"
        "2:\n ldr r5, [r2]\n ldr r9, [r2, #8]\n" HTVM_FIRST_IMAGE_STEP("0")
        HTVM_IMAGE_STEP("4") HTVM_IMAGE_STEPS("8", "12", "16", "20")
        HTVM_IMAGE_STEPS("24", "28", "32", "36") HTVM_IMAGE_STEPS("40", "44", "100", "84")
        "ldr r2, [sp]\n ldr r3, [sp, #4]\n ldr r4, [r2, #4]\n ldr lr, [r2, #12]\n"
        HTVM_TWIN_SUMS("r5", "r6", "r7", "r8", "r4") HTVM_TWIN_SUMS("r9", "r10", "r11", "r12", "lr")
        HTVM_EIGHT_MULTIPLIED
        "ldr r2, [sp, #12]\n ldr r3, [sp, #8]\n ldr r4, [sp, #16]\n ldr lr, [r2, r3]\n"
        "sub lr, lr, #0x02020202\n" HTVM_EIGHT_HALVES(HTVM_HALVE_UP, "#-255")
        HTVM_EIGHT_STORED "ldr r3, [sp, #32]\n cmp r2, r3\n bne 2b\n"
        "ldr r4, [sp, #12]\n ldr r2, [sp, #24]\n ldr r5, [sp, #16]\n ldr r6, [sp, #20]\n"
        "sub r3, r3, r2\n add r4, r4, r5, lsl #1\n sub r4, r4, r3, lsr #2\n str r4, [sp, #12]\n"
        "subs r6, r6, #2\n str r6, [sp, #20]\n add r0, r0, #104\n bne 1b\n"
        "add sp, sp, #40\n pop {r0, r7, r9}\n"
        : "+r"(r0)
        :
        : HTVM_ALL_OTHERS);
#else
    for (uint32_t k = 0; k < channels; k++) {
        const int8_t *const own = weights + 28 * (k - k % 4) + 4 * (k % 4 / 2);
        for (uint32_t pixel = 0; pixel < pixels; pixel++) {
            int32_t sum = bias[k];
            for (uint32_t step = 0; step < 14; step++) {
                const uint32_t at = step < 12 ? step : step == 12 ? 25 : 21;
                const uint32_t x = column[13 * pixel + at];
                for (uint32_t half = 0; half < 2; half++) {
                    const int8_t *const both = own + 8 * step + 2 * half;
                    const int32_t weight = k % 2 == 0 ? both[0] : both[1] + (both[0] < 0 ? 1 : 0);
                    sum = htvm_mac((int16_t)(uint16_t)(x >> (16 * half)), weight, sum);
                }
            }
            out[pixel * apart + k] = htvm_scaled(sum, multiplier[k], shift[k], zero);
        }
    }
#endif
}

#if HTVM_DSP_LOOPS
/* A step of three pixels and two channels: 26 cycles for 24 products.  Five loads of single words
 * behind each other take one cycle less than two of several. */
#define HTVM_SIDE_FROM(weights, turned, a, b, c, from_b, from_c)                                   \
    "sxtb16 lr, " weights turned "\n smlad " c ", r4, lr, " from_c "\n"                            \
    "smlad " b ", r3, lr, " from_b "\n smlad " a ", r2, lr, " a "\n"
#define HTVM_SIDE(weights, turned, a, b, c) HTVM_SIDE_FROM(weights, turned, a, b, c, b, c)
#define HTVM_PIXELS_FROM(from_b, from_c, from_e, from_f)                                           \
    "ldr r11, [r1], #4\n ldr r12, [r1], #4\n ldr.n r3, [r0, #4]\n ldr.n r4, [r0, #8]\n"            \
    "ldr r2, [r0], #12\n" HTVM_SIDE_FROM("r11", "", "r5", "r6", "r7", from_b, from_c)              \
    HTVM_SIDE_FROM("r12", "", "r8", "r9", "r10", from_e, from_f) "ldmia.w r0!, {r2, r3, r4}\n"     \
    HTVM_SIDE("r11", ", ror #8", "r5", "r6", "r7") HTVM_SIDE("r12", ", ror #8", "r8", "r9", "r10")
#define HTVM_PIXELS HTVM_PIXELS_FROM("r6", "r7", "r9", "r10")
#define HTVM_HALVES(halve, round)                                                                  \
    halve("r5", "lr", round) halve("r6", "lr", round) halve("r7", "lr", round)                     \
    halve("r8", "r4", round) halve("r9", "r4", round) halve("r10", "r4", round)
#endif

/* Multiplies three columns (htvm_widen_three) with `channels` channels, multiples of 2, whose words
 * alternate in twos. */
HTVM_SHARED void htvm_scaled_three(int8_t *out, const uint32_t *column, const int8_t *weights,
                                   const int32_t *bias, const int32_t *multiplier,
                                   const uint8_t *shift, uint32_t words, uint32_t channels,
                                   uint32_t apart, int32_t zero)
{
#if HTVM_DSP_LOOPS
    /* Of the zero point here what it is above the least one, which decides how sums are halved. */
    HTVM_RECORD(2 * (zero + 128), 0);
    __asm__ volatile(
        /* As in htvm_scaled_two, but the first step begins with the biases.  Above the record's
         * address: the end of the columns, and where to go on behind the first step. */
        "push {r0, r7, r9}\n ldr r1, [r0, #36]\n ldrd r3, r2, [r0, #28]\n"
        "add r3, r3, r2, lsl #4\n add r3, r3, r2, lsl #3\n subs r2, r2, #1\n rsb r4, r2, #0\n"
        "and r4, r4, #15\n it eq\n moveq r4, #16\n mov r2, #84\n mul r4, r4, r2\n adr.w r2, 4f\n"
        "add r4, r4, r2\n orr r4, r4, #1\n push {r3, r4}\n mov r12, r0\n ldrd r3, r4, [r0, #8]\n"
        "sub r3, r3, r4\n str r3, [r0, #8]\n ldr r2, [r0]\n"
        "2:\n ldr r5, [r2], #4\n ldr r8, [r2], #4\n str r2, [r12]\n ldr r0, [r12, #28]\n"
        HTVM_PIXELS_FROM("r5", "r5", "r8", "r8") "ldr r2, [sp, #4]\n bx r2\n .balign 4\n"
        "4:\n" HTVM_FOUR_TIMES(HTVM_PIXELS) HTVM_FOUR_TIMES(HTVM_PIXELS)
        HTVM_FOUR_TIMES(HTVM_PIXELS) HTVM_FOUR_TIMES(HTVM_PIXELS)
        "ldr lr, [sp]\n ldr r12, [sp, #8]\n cmp r0, lr\n bne 4b\n"
        /* Shifts, whose lowest bytes count, are as far from the output as at the beginning. */
        "ldr r4, [r12, #8]\n ldr r3, [r12, #12]\n ldr r2, [r12, #4]\n ldrh lr, [r3, r4]\n"
        "ldr r4, [r2], #4\n ldr r11, [r2], #4\n str r2, [r12, #4]\n ldr r2, [r12, #20]\n"
        HTVM_MULTIPLY("r5", "r4") HTVM_MULTIPLY("r6", "r4") HTVM_MULTIPLY("r7", "r4")
        HTVM_MULTIPLY("r8", "r11") HTVM_MULTIPLY("r9", "r11") HTVM_MULTIPLY("r10", "r11")
        "subw lr, lr, #0x202\n lsr r4, lr, #8\n cbnz r2, 9f\n"
        HTVM_HALVES(HTVM_HALVE_UP, "#-255")
        /* A pixel's two channels are stored together. */
        "8:\n ldr r11, [r12, #16]\n bfi r5, r8, #8, #8\n bfi r6, r9, #8, #8\n bfi r7, r10, #8, #8\n"
        "strh r6, [r3, r11]\n strh r7, [r3, r11, lsl #1]\n strh r5, [r3], #2\n"
        "str r3, [r12, #12]\n ldr r2, [r12]\n ldr r3, [r12, #24]\n cmp r2, r3\n bne 2b\n b 10f\n"
        "9:\n sub r2, r2, #255\n" HTVM_HALVES(HTVM_HALVE, "r2") "b 8b\n"
        "10:\n add sp, sp, #8\n"
        "pop {r0, r7, r9}\n"
        : "+r"(r0)
        :
        : HTVM_ALL_OTHERS);
#else
    for (uint32_t k = 0; k < channels; k++) {
        const int8_t *const own = weights + 8 * words * (k / 2) + 4 * (k % 2);
        for (uint32_t pixel = 0; pixel < 3; pixel++) {
            int32_t sum = bias[k];
            for (uint32_t w = 0; w < words; w++) {
                sum = htvm_word(column + 6 * w + pixel, 3, htvm_load4(own + 8 * w), sum);
            }
            out[pixel * apart + k] = htvm_scaled(sum, multiplier[k], shift[k], zero);
        }
    }
#endif
}

#if HTVM_DSP_LOOPS
/* A pixel of eight elements and a channel whose weights are in r8 to r11; the output is at r1.  Or at
 * r0 + r1, if pixels are 16 bytes apart like those of the column, the zero point is -128, and numbers
 * are small: then weights and bias are doubled, the multiplier is halved, and r12 is added to the
 * product. */
#define HTVM_EIGHT(scaled, stored)                                                                 \
    "ldmia.w r0!, {r2, r3, r4, r5}\n smlad r2, r2, r8, lr\n smlad r2, r3, r9, r2\n"                \
    "smlad r2, r4, r10, r2\n smlad r2, r5, r11, r2\n" scaled stored
#define HTVM_APART                                                                                 \
    HTVM_EIGHT(HTVM_MULTIPLY("r2", "r6") HTVM_HALVE("r2", "r7", "r12"),                            \
               "strb r2, [r1]\n ldr r3, [sp, #4]\n add r1, r1, r3\n")
#define HTVM_ALONG                                                                                 \
    HTVM_EIGHT("smmlar r2, r2, r6, r12\n asr r2, r2, r7\n ssat r2, #8, r2, asr #1\n",              \
               "strb r2, [r0, r1]\n")
#endif

/* Multiplies a row of pixels of eight elements, widened to one column (htvm_widen_one) of `words`
 * words, multiples of 8, with one channel after the other, whose weights are side by side. */
HTVM_SHARED void htvm_scaled_row(int8_t *out, const uint32_t *column, const int8_t *weights,
                                 const int32_t *bias, const int32_t *multiplier,
                                 const uint8_t *shift, uint32_t words, uint32_t channels,
                                 uint32_t apart, int32_t zero)
{
#if HTVM_DSP_LOOPS
    HTVM_RECORD(2 * zero + 1, 0);
    __asm__ volatile(
        /* Above the record's address: the end of the column, and how far apart pixels are. */
        "push {r0, r7, r9}\n ldrd r2, r3, [r0, #28]\n add r3, r2, r3, lsl #3\n ldr r4, [r0, #16]\n"
        "push {r3, r4}\n"
        "2:\n ldr r1, [r0, #36]\n ldrd r2, r3, [r1], #8\n str r1, [r0, #36]\n sxtb16 r8, r2\n"
        "sxtb16 r9, r2, ror #8\n sxtb16 r10, r3\n sxtb16 r11, r3, ror #8\n"
        "ldm r0, {r1, r2, r3, r4}\n ldr lr, [r1], #4\n ldr r6, [r2], #4\n ldrb r7, [r3], #1\n"
        "mov r5, r4\n add r4, r4, #1\n stm r0, {r1, r2, r3, r4}\n mov r1, r5\n sub r7, r7, #2\n"
        "ldr r2, [r0, #32]\n ldr r12, [r0, #20]\n ldr r0, [r0, #28]\n ldr r3, [sp, #4]\n"
        "cmp r3, #16\n bne 5f\n cmn r12, #255\n bne 5f\n"
        "cmp r7, #22\n bhi 5f\n add r3, lr, #0x20000000\n lsrs r3, r3, #30\n bne 5f\n"
        "sadd16 r8, r8, r8\n sadd16 r9, r9, r9\n sadd16 r10, r10, r10\n sadd16 r11, r11, r11\n"
        "lsl lr, lr, #1\n lsr r6, r6, #1\n lsl r12, r12, r7\n"
        /* Eight pixels at once, or first four. */
        "sub r1, r1, r0\n sub r1, r1, #16\n tst r2, #8\n bne 4f\n"
        "3:\n" HTVM_FOUR_TIMES(HTVM_ALONG) "4:\n" HTVM_FOUR_TIMES(HTVM_ALONG)
        "ldr r2, [sp]\n cmp r0, r2\n bne 3b\n b 6f\n"
        "5:\n" HTVM_FOUR_TIMES(HTVM_APART) "ldr r2, [sp]\n cmp r0, r2\n bne 5b\n"
        "6:\n"
        "ldr r0, [sp, #8]\n ldr r2, [r0]\n ldr r3, [r0, #24]\n cmp r2, r3\n bne 2b\n"
        "add sp, sp, #8\n pop {r0, r7, r9}\n"
        : "+r"(r0)
        :
        : HTVM_ALL_OTHERS);
#else
    for (uint32_t k = 0; k < channels; k++) {
        const uint32_t low = htvm_load4(weights + 8 * k), high = htvm_load4(weights + 8 * k + 4);
        for (uint32_t pixel = 0; pixel < words / 2; pixel++) {
            const int32_t sum = htvm_word(column + 4 * pixel, 1, low, bias[k]);
            out[pixel * apart + k] = htvm_scaled(htvm_word(column + 4 * pixel + 2, 1, high, sum),
                                                 multiplier[k], shift[k], zero);
        }
    }
#endif
}

#if HTVM_DSP_LOOPS
/* A step of one pixel and four channels, whose sums are in r8, r10, r11, r12. */
#define HTVM_FOURS                                                                                 \
    "ldrd r7, r9, [r0], #8\n ldmia.w r1!, {r2, r3, r4, r5}\n"                                      \
    "sxtb16 lr, r2\n smlad r8, r7, lr, r8\n sxtb16 lr, r2, ror #8\n smlad r8, r9, lr, r8\n"        \
    "sxtb16 lr, r3\n smlad r10, r7, lr, r10\n sxtb16 lr, r3, ror #8\n smlad r10, r9, lr, r10\n"    \
    "sxtb16 lr, r4\n smlad r11, r7, lr, r11\n sxtb16 lr, r4, ror #8\n smlad r11, r9, lr, r11\n"    \
    "sxtb16 lr, r5\n smlad r12, r7, lr, r12\n sxtb16 lr, r5, ror #8\n smlad r12, r9, lr, r12\n"

/* What a statement is given for one pixel, at these offsets from `column`; a step begins with what
 * is in front of that, and the next block with what is behind. */
typedef struct {
    int8_t *out;               /* -16 */
    uint32_t multiplier;       /* -12: of all channels, or where those of each are */
    int32_t round;             /* -8: as above */
    uint32_t shift;            /* -4: of all channels, less two, or where those of each are */
    const uint32_t *column;    /* 0 */
    uint32_t first;            /* 4: address of the step that a block begins with */
    uint32_t end;              /* 8: of the column; a byte before it if sums keep their signs */
    const int32_t *bias;       /* 12 */
    const int32_t *biases_end; /* 16 */
    const int8_t *weights;     /* 20 */
    uint32_t words;            /* 24 */
} htvm_scaled_one_t;

/* The next block, if there is one. */
#define HTVM_NEXT "ldrd r2, r3, [r0, #12]\n cmp r2, r3\n bne 2b\n"

/* Requantizes with a factor for each channel: of r5, r6, r7 as of the record above. */
#define HTVM_ONE(sum, factor)                                                                      \
    HTVM_MULTIPLY(sum, factor) "ldrb " factor ", [r7], #1\n sub " factor ", " factor ", #2\n"      \
    HTVM_HALVE(sum, factor, "r6") "strb " sum ", [r4], #1\n"
#define HTVM_OWN                                                                                   \
    "ldm r5!, {r2, r3, r9, lr}\n" HTVM_ONE("r8", "r2") HTVM_ONE("r10", "r3")                       \
    HTVM_ONE("r11", "r9") HTVM_ONE("r12", "lr") "stmdb r0, {r4, r5, r6, r7}\n" HTVM_NEXT

/* Requantizes with one for all.  Where the zero point is -128, as behind a ReLU, all negative sums
 * become it.  The loop over words says so: its last comparison was equal. */
#define HTVM_LIKE(halve, sum)                                                                      \
    HTVM_MULTIPLY(sum, "r5") halve(sum, "r7", "r6") "strb " sum ", [r4], #1\n"
#define HTVM_LIKES(halve)                                                                          \
    HTVM_LIKE(halve, "r8") HTVM_LIKE(halve, "r10") HTVM_LIKE(halve, "r11") HTVM_LIKE(halve, "r12") \
    "str r4, [r0, #-16]\n" HTVM_NEXT
#define HTVM_ALIKE "bne 5f\n" HTVM_LIKES(HTVM_HALVE_UP) "b 6f\n 5:\n" HTVM_LIKES(HTVM_HALVE) "6:\n"

/* The whole.  Of 16 steps at once, the first ones are left out where words are no multiple. */
#define HTVM_SCALED_ONE(own, multiplier_of, shift_of, before, requantized)                         \
    htvm_scaled_one_t now = {out, (uint32_t)(multiplier_of), 2 * zero + 1, (uint32_t)(shift_of),   \
                             column, 0, (uint32_t)(column + 2 * words) - (before), bias,           \
                             bias + channels, weights, words};                                     \
    register htvm_scaled_one_t *r0 __asm__("r0") = &now;                                           \
    __asm__ volatile(                                                                              \
        "push {r0, r7, r9}\n add r0, r0, #16\n ldrd r1, r3, [r0, #20]\n"                           \
        "rsb r3, r3, #0\n and r3, r3, #15\n mov r2, #72\n mul r3, r3, r2\n adr.w r2, 4f\n"         \
        "add r3, r3, r2\n orr r3, r3, #1\n str r3, [r0, #4]\n ldr r2, [r0, #12]\n"                 \
        "2:\n ldm r2!, {r8, r10, r11, r12}\n str r2, [r0, #12]\n ldm r0, {r0, r2, r6}\n bx r2\n"   \
        ".balign 4\n"                                                                              \
        "4:\n" HTVM_FOUR_TIMES(HTVM_FOURS) HTVM_FOUR_TIMES(HTVM_FOURS)                             \
        HTVM_FOUR_TIMES(HTVM_FOURS) HTVM_FOUR_TIMES(HTVM_FOURS) "cmp r0, r6\n blo 4b\n"            \
        "ldr r0, [sp]\n ldm r0!, {r4, r5, r6, r7}\n" requantized "pop {r0, r7, r9}\n"              \
        : "+r"(r0)                                                                                 \
        :                                                                                          \
        : HTVM_ALL_OTHERS)
#else
#define HTVM_SCALED_ONE(own, multiplier_of, shift_of, before, requantized)                         \
    htvm_scaled_fours(out, column, weights, bias, multiplier, shift, words, channels, zero, own)

/* `own`: each channel has its own multiplier and shift. */
HTVM_SHARED void htvm_scaled_fours(int8_t *out, const uint32_t *column, const int8_t *weights,
                                   const int32_t *bias, const int32_t *multiplier,
                                   const uint8_t *shift, uint32_t words, uint32_t channels,
                                   int32_t zero, _Bool own)
{
    for (uint32_t k = 0; k < channels; k += 4, weights += 16 * words) {
        int32_t sums[4] = {bias[k], bias[k + 1], bias[k + 2], bias[k + 3]};
        htvm_one_by_four(sums, column, weights, words);
        for (uint32_t i = 0; i < 4; i++) {
            const uint32_t factor = own ? k + i : 0;
            out[k + i] = htvm_scaled(sums[i], multiplier[factor], shift[factor], zero);
        }
    }
}
#endif

/* Multiplies one column with `channels` channels, multiples of 4, whose words alternate in fours. */
HTVM_SHARED void htvm_scaled_one(int8_t *out, const uint32_t *column, const int8_t *weights,
                                 const int32_t *bias, const int32_t *multiplier,
                                 const uint8_t *shift, uint32_t words, uint32_t channels,
                                 int32_t zero)
{
    HTVM_SCALED_ONE(1, multiplier, shift, 0, HTVM_OWN);
}

/* The same if all channels have one multiplier and one shift. */
HTVM_SHARED void htvm_scaled_one_alike(int8_t *out, const uint32_t *column, const int8_t *weights,
                                       const int32_t *bias, const int32_t *multiplier,
                                       const uint8_t *shift, uint32_t words, uint32_t channels,
                                       int32_t zero)
{
    HTVM_SCALED_ONE(0, *multiplier, *shift - 2u, zero != -128, HTVM_ALIKE);
}

/* Requantizes the sums of two pixels with one channel. */
HTVM_INLINE void htvm_spread_scaled(int8_t *out, const int32_t *sums, uint32_t multiplier,
                                    uint32_t shift, uint32_t apart, int32_t zero)
{
    if (zero == -128) {
        out[0] = (int8_t)htvm_scale_least(sums[0], multiplier, shift, 127);
        out[apart] = (int8_t)htvm_scale_least(sums[2], multiplier, shift, 127);
    } else {
        out[0] = htvm_scaled(sums[0], (int32_t)multiplier, shift, zero);
        out[apart] = htvm_scaled(sums[2], (int32_t)multiplier, shift, zero);
    }
}

/* Multiplies two columns of words (htvm_spread.h) with `channels` channels, multiples of 2, whose words
 * alternate, and requantizes them: one function for all layers, whose code takes flash once. */
HTVM_ONCE void htvm_spread_scaled_two(int8_t *out, const int32_t *column, const int8_t *weights,
                                      const int32_t *bias, const int32_t *multiplier,
                                      const uint8_t *shift, uint32_t words, uint32_t channels,
                                      uint32_t apart, int32_t zero)
{
    const int8_t *const end = out + channels;
    for (; out != end; out += 2, bias += 2, multiplier += 2, shift += 2, weights += 8 * words) {
        int32_t sums[4] = {bias[0], bias[1], bias[0], bias[1]};
        htvm_spread_two_by_two(sums, column, weights, words);
        htvm_spread_scaled(out, sums, (uint32_t)multiplier[0], shift[0], apart, zero);
        htvm_spread_scaled(out + 1, sums + 1, (uint32_t)multiplier[1], shift[1], apart, zero);
    }
}

#endif
