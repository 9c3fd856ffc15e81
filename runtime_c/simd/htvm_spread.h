/* Sums of products over columns of words, for Cortex-M cores without SIMD instructions.
 *
 * Each int8 element that several sums share becomes a word, loaded with others by one LDM.  Weights are
 * stored with 128 added, because the M0+ loads unsigned bytes at constant distances in one instruction,
 * and signed ones in two; a column ends with -128 times the sum of its elements (of each of both
 * columns), which the products then lack.  On Cortex-M cores each function is a loop of assembly in
 * which all sums stay in registers; elsewhere it is plain C with the same results.  Sums wrap around.
 */
#ifndef HTVM_SPREAD_H
#define HTVM_SPREAD_H

#include <stdint.h>

#include "htvm_float_product.h"
#include "htvm_simd.h"

#if defined(__thumb__) && !HTVM_DSP
#define HTVM_THUMB 1
#else
#define HTVM_THUMB 0
#endif

/* Loops of Thumb (1) or Thumb-2 (2).  Without optimization compilers keep registers for themselves.  A
 * build may set it to 0. */
#ifndef HTVM_THUMB_LOOPS
#if HTVM_THUMB && defined(__OPTIMIZE__) && !defined(__thumb2__)
#define HTVM_THUMB_LOOPS 1
#elif HTVM_THUMB && defined(__OPTIMIZE__)
#define HTVM_THUMB_LOOPS 2
#else
#define HTVM_THUMB_LOOPS 0
#endif
#endif

#if HTVM_THUMB_LOOPS == 1
/* Defines HTVM_THUMB_LOOP: repeats steps until `column` is at `end`, with four sums in high registers.
 * The assembler is told its syntax, because GCC chooses the older one here. */
#if defined(__OPTIMIZE_SIZE__) && !defined(__clang__)
/* With -Os, GCC neither uses r8 to r11 nor saves them: the statement does both. */
#define HTVM_A "r8"
#define HTVM_B "r9"
#define HTVM_C "r10"
#define HTVM_D "r11"
#define HTVM_THUMB_LOOP(steps)                                                                     \
    int32_t *t = sums;                                                                             \
    const int32_t *v = end;                                                                        \
    __asm__ volatile(                                                                              \
        ".syntax unified\n mov r4, r8\n mov r5, r9\n push {r4, r5}\n mov r4, r10\n mov r5, r11\n"  \
        "push {r4, r5}\n mov r12, %[v]\n ldm %[t]!, {r4, r5}\n mov r8, r4\n mov r9, r5\n"          \
        "ldm %[t]!, {r4, r5}\n mov r10, r4\n mov r11, r5\n push {%[t]}\n"                          \
        "1:\n" steps "cmp %[x], r12\n bne 1b\n"                                                    \
        "pop {%[t]}\n subs %[t], #16\n mov r4, r8\n mov r5, r9\n stm %[t]!, {r4, r5}\n"            \
        "mov r4, r10\n mov r5, r11\n stm %[t]!, {r4, r5}\n"                                        \
        "pop {r4, r5}\n mov r10, r4\n mov r11, r5\n pop {r4, r5}\n mov r8, r4\n mov r9, r5\n"      \
        : [x] "+l"(column), [w] "+l"(weights), [v] "+l"(v), [t] "+l"(t)                            \
        :                                                                                          \
        : "r4", "r5", "r12", "cc", "memory")
#else
#define HTVM_A "%[a]"
#define HTVM_B "%[b]"
#define HTVM_C "%[c]"
#define HTVM_D "%[d]"
#define HTVM_THUMB_LOOP(steps)                                                                     \
    int32_t a = sums[0], b = sums[1], c = sums[2], d = sums[3], v, t;                              \
    __asm__ volatile(".syntax unified\n 1:\n" steps "cmp %[x], %[end]\n bne 1b\n"                  \
                     : [a] "+h"(a), [b] "+h"(b), [c] "+h"(c), [d] "+h"(d), [x] "+l"(column),       \
                       [w] "+l"(weights), [v] "=&l"(v), [t] "=&l"(t)                               \
                     : [end] "l"(end)                                                              \
                     : "r4", "r5", "cc", "memory");                                                \
    sums[0] = a, sums[1] = b, sums[2] = c, sums[3] = d
#endif
#endif

/* Columns are filled by one function where that takes no more instructions. */
#if HTVM_THUMB_LOOPS == 1
#define HTVM_FILLING HTVM_SHARED
#else
#define HTVM_FILLING HTVM_INLINE
#endif

#if HTVM_THUMB
/* Returns round(sum * doubled / 2^32), halves up; |sum| < 3 * 2^29. */
HTVM_INLINE int32_t htvm_high_product(int32_t sum, uint32_t doubled)
{
#if defined(__thumb2__)
    const int64_t product = (int64_t)sum * (int32_t)doubled;
    return (int32_t)(product >> 32) + sum + (int32_t)((uint32_t)product >> 31);
#else
    return htvm_rounded_high(sum, doubled);
#endif
}
#endif

/* Spreads `words` words of elements at `a`: four words of the column each.  Adds to *less. */
HTVM_FILLING void htvm_spread_one(int32_t *column, const int8_t *a, uint32_t words, int32_t *less)
{
    int32_t sum = 0;
    for (uint32_t i = 0; i < 4 * words; i++) {
        const int32_t x = a[i];
        column[i] = x;
        sum += x;
    }
    *less -= 128 * sum;
}

/* The same for two columns side by side: element by element one of each.  Adds to less[0] and [1]. */
HTVM_FILLING void htvm_spread_two(int32_t *column, const int8_t *a, const int8_t *b, uint32_t words,
                                 int32_t *less)
{
    int32_t first = 0, second = 0;
    for (uint32_t i = 0; i < 4 * words; i++) {
        const int32_t x = a[i], y = b[i];
        column[2 * i] = x;
        column[2 * i + 1] = y;
        first += x;
        second += y;
    }
    less[0] -= 128 * first;
    less[1] -= 128 * second;
}

/* Returns the sum with the product of a weight, which has 128 added. */
HTVM_INLINE int32_t htvm_lifted(int32_t x, int8_t weight, int32_t sum)
{
    return (int32_t)((uint32_t)sum + (uint32_t)x * (uint8_t)weight);
}

/* Adds to sums[0..1] the products of the first of two columns with two channels, whose words
 * alternate, and to sums[2..3] those of the second. */
HTVM_INLINE void htvm_spread_two_by_two(int32_t *sums, const int32_t *column, const int8_t *weights,
                                        uint32_t words)
{
    const int32_t *const end = column + 8 * words;
#if HTVM_THUMB_LOOPS == 1
#define HTVM_STEP(first, second)                                                                   \
    "ldm %[x]!, {r4, r5}\n ldrb %[v], [%[w], #" first "]\n movs %[t], r4\n muls %[t], %[v], %[t]\n"\
    "add " HTVM_A ", %[t]\n muls %[v], r5, %[v]\n add " HTVM_C ", %[v]\n"                          \
    "ldrb %[v], [%[w], #" second "]\n muls r4, %[v], r4\n add " HTVM_B ", r4\n"                    \
    "muls r5, %[v], r5\n add " HTVM_D ", r5\n"
    HTVM_THUMB_LOOP(HTVM_STEP("0", "4") HTVM_STEP("1", "5") HTVM_STEP("2", "6")
                        HTVM_STEP("3", "7") "adds %[w], #8\n");
#undef HTVM_STEP
#elif HTVM_THUMB_LOOPS
#define HTVM_STEP(first, second, then, last)                                                       \
    "ldm %[x]!, {r2, r3, r4, r5}\n ldrb r7, [%[w], #" first "]\n ldrb r9, [%[w], #" second         \
    "]\n mla %[a], r2, r7, %[a]\n mla %[b], r2, r9, %[b]\n mla %[c], r3, r7, %[c]\n"               \
    "mla %[d], r3, r9, %[d]\n ldrb r7, [%[w], #" then "]\n ldrb r9, [%[w], #" last                 \
    "]\n mla %[a], r4, r7, %[a]\n mla %[b], r4, r9, %[b]\n mla %[c], r5, r7, %[c]\n"               \
    "mla %[d], r5, r9, %[d]\n"
    register int32_t a __asm__("r8") = sums[0], b __asm__("r10") = sums[1];
    register int32_t c __asm__("r11") = sums[2], d __asm__("r12") = sums[3];
    register const int32_t *x __asm__("r0") = column;
    register const int8_t *w __asm__("r1") = weights;
    register const int32_t *const last __asm__("r6") = end;
    __asm__ volatile(HTVM_BORROW "1:\n" HTVM_STEP("0", "4", "1", "5") HTVM_STEP("2", "6", "3", "7")
                     "adds %[w], %[w], #8\n cmp %[x], %[end]\n bne 1b\n" HTVM_RETURN
                     : [a] "+r"(a), [b] "+r"(b), [c] "+r"(c), [d] "+r"(d), [x] "+r"(x),
                       [w] "+r"(w)
                     : [end] "r"(last)
                     : "r2", "r3", "r4", "r5", "cc", "memory");
#undef HTVM_STEP
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
#else
    for (const int32_t *x = column; x != end; x += 8, weights += 8) {
        for (uint32_t i = 0; i < 4; i++) {
            sums[0] = htvm_lifted(x[2 * i], weights[i], sums[0]);
            sums[1] = htvm_lifted(x[2 * i], weights[4 + i], sums[1]);
            sums[2] = htvm_lifted(x[2 * i + 1], weights[i], sums[2]);
            sums[3] = htvm_lifted(x[2 * i + 1], weights[4 + i], sums[3]);
        }
    }
#endif
    for (uint32_t i = 0; i < 2; i++) {
        sums[i] = (int32_t)((uint32_t)sums[i] + (uint32_t)end[0]);
        sums[2 + i] = (int32_t)((uint32_t)sums[2 + i] + (uint32_t)end[1]);
    }
}

/* The same, called: for so many words that the call does not count. */
HTVM_SHARED void htvm_spread_two_by_two_long(int32_t *sums, const int32_t *column,
                                             const int8_t *weights, uint32_t words)
{
    htvm_spread_two_by_two(sums, column, weights, words);
}

/* Adds to each of `channels` sums the products of one column with a channel; their words alternate. */
HTVM_INLINE void htvm_spread_by(int32_t *sums, const int32_t *column, const int8_t *weights,
                                uint32_t words, uint32_t channels)
{
    for (uint32_t i = 0; i < words; i++, column += 4, weights += 4 * channels) {
        for (uint32_t k = 0; k < channels; k++) {
            for (uint32_t e = 0; e < 4; e++) {
                sums[k] = htvm_lifted(column[e], weights[4 * k + e], sums[k]);
            }
        }
    }
    for (uint32_t k = 0; k < channels; k++) {
        sums[k] = (int32_t)((uint32_t)sums[k] + (uint32_t)column[0]);
    }
}

HTVM_INLINE void htvm_spread_one_by_two(int32_t *sums, const int32_t *column, const int8_t *weights,
                                        uint32_t words)
{
    htvm_spread_by(sums, column, weights, words, 2);
}

/* The same for four channels. */
HTVM_INLINE void htvm_spread_one_by_four(int32_t *sums, const int32_t *column,
                                         const int8_t *weights, uint32_t words)
{
#if HTVM_THUMB_LOOPS == 1
    const int32_t *const end = column + 4 * words;
#define HTVM_STEP(sum, first, second)                                                              \
    "ldrb %[v], [%[w], #" first "]\n muls %[v], r4, %[v]\n add " sum ", %[v]\n"                    \
    "ldrb %[v], [%[w], #" second "]\n muls %[v], r5, %[v]\n add " sum ", %[v]\n"
    HTVM_THUMB_LOOP("ldm %[x]!, {r4, r5}\n" HTVM_STEP(HTVM_A, "0", "1") HTVM_STEP(HTVM_B, "4", "5")
                        HTVM_STEP(HTVM_C, "8", "9") HTVM_STEP(HTVM_D, "12", "13")
                            "ldm %[x]!, {r4, r5}\n" HTVM_STEP(HTVM_A, "2", "3")
                                HTVM_STEP(HTVM_B, "6", "7") HTVM_STEP(HTVM_C, "10", "11")
                                    HTVM_STEP(HTVM_D, "14", "15") "adds %[w], #16\n");
#undef HTVM_STEP
    const int32_t less = end[0];
    for (uint32_t k = 0; k < 4; k++) {
        sums[k] += less;
    }
#else
    htvm_spread_by(sums, column, weights, words, 4);
#endif
}

#endif
