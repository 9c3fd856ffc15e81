/* Sums of products over columns of halfwords: operands that several sums share, widened once.
 *
 * A word of four int8 elements becomes two words of halfwords, elements 0 and 2 and elements 1 and 3,
 * as SXTB16 makes them, for products of pairs of halfwords (SMLAD).  On Cortex-M cores with the DSP
 * extension, each function is a loop of assembly in which all sums stay in registers; elsewhere it is
 * plain C with the same results.  Sums wrap around.  (htvm_spread.h is the same for other cores.)
 */
#ifndef HTVM_COLUMNS_H
#define HTVM_COLUMNS_H

#include <stdint.h>

#include "htvm_simd.h"

/* Without optimization compilers keep registers for themselves.  A build may set it to 0. */
#ifndef HTVM_DSP_LOOPS
#if HTVM_DSP && defined(__OPTIMIZE__)
#define HTVM_DSP_LOOPS 1
#else
#define HTVM_DSP_LOOPS 0
#endif
#endif

/* Returns elements 0 and 2 of a word as halfwords, and elements 1 and 3. */
HTVM_INLINE uint32_t htvm_widen_even(uint32_t word)
{
#if HTVM_DSP
    return (uint32_t)__sxtb16((int8x4_t)word);
#else
    const uint32_t low = (uint32_t)(int8_t)(uint8_t)word & 0xffffu;
    return low | (uint32_t)(int8_t)(uint8_t)(word >> 16) << 16;
#endif
}

HTVM_INLINE uint32_t htvm_widen_odd(uint32_t word)
{
#if HTVM_DSP
    return (uint32_t)__sxtb16((int8x4_t)htvm_rotate8(word));
#else
    return htvm_widen_even(word >> 8);
#endif
}

/* Returns sum + the products of both pairs of halfwords. */
HTVM_INLINE int32_t htvm_pair(uint32_t a, uint32_t b, int32_t sum)
{
#if HTVM_DSP
    return __smlad((int16x2_t)a, (int16x2_t)b, sum);
#else
    const int32_t low = (int16_t)(uint16_t)a * (int16_t)(uint16_t)b;
    const int32_t high = (int16_t)(uint16_t)(a >> 16) * (int16_t)(uint16_t)(b >> 16);
    return (int32_t)((uint32_t)sum + (uint32_t)low + (uint32_t)high);
#endif
}

/* Returns the sum with the products of a word of elements and both words of one of `columns` columns
 * that are side by side. */
HTVM_INLINE int32_t htvm_word(const uint32_t *x, uint32_t columns, uint32_t weights, int32_t sum)
{
    sum = htvm_pair(x[0], htvm_widen_even(weights), sum);
    return htvm_pair(x[columns], htvm_widen_odd(weights), sum);
}

/* Copies `rows` rows of `run` elements, `pitch` apart, side by side; then zeros up to `size`. */
HTVM_INLINE void htvm_window(int8_t *to, const int8_t *from, uint32_t rows, uint32_t pitch,
                             uint32_t run, uint32_t size)
{
    HTVM_UNROLL(8)
    for (uint32_t row = 0; row < rows; row++) {
        uint32_t i = 0;
        for (; i + 4 <= run; i += 4) {
            htvm_store4(to + row * run + i, htvm_load4(from + row * pitch + i));
        }
        for (; i < run; i++) {
            to[row * run + i] = from[row * pitch + i];
        }
    }
    for (uint32_t i = rows * run; i < size; i++) {
        to[i] = 0;
    }
}

#if HTVM_DSP_LOOPS
/* The text of a loop from which `pointer` comes out at `end`; four steps at once. */
#define HTVM_LOOP_TO(end, pointer, step)                                                           \
    "1:\n" step step step step "cmp %[" pointer "], %[" end "]\n bne 1b\n"
#endif

/* Widens `words` words at `a`, at any address: two words of the column each. */
HTVM_SHARED void htvm_widen_one(uint32_t *column, const int8_t *a, uint32_t words)
{
#if HTVM_DSP_LOOPS
#define HTVM_WIDENED(even, odd) "sxtb16 " even ", " odd "\n sxtb16 " odd ", " odd ", ror #8\n"
    const uint32_t *const end = column + 2 * words;
    for (uint32_t i = 0; i < (words & 3u); i++) {
        __asm__ volatile("ldr r3, [%[a]], #4\n" HTVM_WIDENED("r2", "r3") "stm %[x]!, {r2, r3}\n"
                         : [x] "+r"(column), [a] "+r"(a)
                         :
                         : "r2", "r3", "memory");
    }
    if (words >= 4) {
        __asm__ volatile("1:\n ldr r5, [%[a], #4]\n ldr r8, [%[a], #8]\n ldr r12, [%[a], #12]\n"
                         "ldr r3, [%[a]], #16\n" HTVM_WIDENED("r2", "r3") HTVM_WIDENED("r4", "r5")
                         HTVM_WIDENED("r6", "r8") HTVM_WIDENED("r10", "r12")
                         "stm %[x]!, {r2, r3, r4, r5, r6, r8, r10, r12}\n"
                         "cmp %[x], %[end]\n bne 1b\n"
                         : [x] "+r"(column), [a] "+r"(a)
                         : [end] "r"(end)
                         : "r2", "r3", "r4", "r5", "r6", "r8", "r10", "r12", "cc", "memory");
    }
#undef HTVM_WIDENED
#else
    for (uint32_t i = 0; i < words; i++) {
        const uint32_t x = htvm_load4(a + 4 * i);
        column[2 * i] = htvm_widen_even(x);
        column[2 * i + 1] = htvm_widen_odd(x);
    }
#endif
}

/* Widens words at `a` and at `b`, side by side: four words of the column for one of each, both with
 * elements 0 and 2 first. */
HTVM_SHARED void htvm_widen_two(uint32_t *column, const int8_t *a, const int8_t *b, uint32_t words)
{
#if HTVM_DSP_LOOPS
#define HTVM_STEP                                                                                  \
    "ldr r4, [%[a]], #4\n ldr r5, [%[b]], #4\n sxtb16 r2, r4\n sxtb16 r4, r4, ror #8\n"            \
    "sxtb16 r3, r5\n sxtb16 r5, r5, ror #8\n stm %[x]!, {r2, r3, r4, r5}\n"
    const uint32_t *const end = column + 4 * words;
    for (uint32_t i = 0; i < (words & 3u); i++) {
        __asm__ volatile(HTVM_STEP
                         : [x] "+r"(column), [a] "+r"(a), [b] "+r"(b)
                         :
                         : "r2", "r3", "r4", "r5", "memory");
    }
    if (words >= 4) {
        __asm__ volatile(HTVM_LOOP_TO("end", "x", HTVM_STEP)
                         : [x] "+r"(column), [a] "+r"(a), [b] "+r"(b)
                         : [end] "r"(end)
                         : "r2", "r3", "r4", "r5", "cc", "memory");
    }
#undef HTVM_STEP
#else
    for (uint32_t i = 0; i < words; i++) {
        const uint32_t x = htvm_load4(a + 4 * i), y = htvm_load4(b + 4 * i);
        column[4 * i] = htvm_widen_even(x);
        column[4 * i + 1] = htvm_widen_even(y);
        column[4 * i + 2] = htvm_widen_odd(x);
        column[4 * i + 3] = htvm_widen_odd(y);
    }
#endif
}

/* The same for three: six words of the column for one of each. */
HTVM_SHARED void htvm_widen_three(uint32_t *column, const int8_t *a, const int8_t *b,
                                  const int8_t *c, uint32_t words)
{
#if HTVM_DSP_LOOPS
#define HTVM_STEP                                                                                  \
    "ldr r2, [%[a]], #4\n ldr r3, [%[b]], #4\n ldr r4, [%[c]], #4\n"                               \
    "sxtb16 r5, r2, ror #8\n sxtb16 r6, r3, ror #8\n sxtb16 r8, r4, ror #8\n"                      \
    "sxtb16 r2, r2\n sxtb16 r3, r3\n sxtb16 r4, r4\n stm %[x]!, {r2, r3, r4, r5, r6, r8}\n"
    const uint32_t *const end = column + 6 * words;
    for (uint32_t i = 0; i < (words & 3u); i++) {
        __asm__ volatile(HTVM_STEP
                         : [x] "+&r"(column), [a] "+&r"(a), [b] "+&r"(b), [c] "+&r"(c)
                         :
                         : "r2", "r3", "r4", "r5", "r6", "r8", "memory");
    }
    if (words >= 4) {
        __asm__ volatile(HTVM_LOOP_TO("end", "x", HTVM_STEP)
                         : [x] "+&r"(column), [a] "+&r"(a), [b] "+&r"(b), [c] "+&r"(c)
                         : [end] "r"(end)
                         : "r2", "r3", "r4", "r5", "r6", "r8", "cc", "memory");
    }
#undef HTVM_STEP
#else
    for (uint32_t i = 0; i < words; i++) {
        const uint32_t three[] = {htvm_load4(a + 4 * i), htvm_load4(b + 4 * i),
                                  htvm_load4(c + 4 * i)};
        for (uint32_t p = 0; p < 3; p++) {
            column[6 * i + p] = htvm_widen_even(three[p]);
            column[6 * i + 3 + p] = htvm_widen_odd(three[p]);
        }
    }
#endif
}

/* Widens windows of three rows of nine elements at `x`, six elements apart, rows `pitch` apart.  Of each
 * six elements, every row has four words, elements 0 and 2, 1 and 3, 4 and 6, 5 and 7; a 13th word has
 * element 2 of the first two rows.  So a window's last elements are in two words behind its own 13, the
 * last three of which have only those. */
HTVM_SHARED void htvm_widen_image(uint32_t *column, const int8_t *x, uint32_t pixels, uint32_t pitch)
{
    const int8_t *y = x + pitch, *z = y + pitch;
#if HTVM_DSP_LOOPS
#define HTVM_SIX(from, a, b, c, d)                                                                 \
    "ldr " d ", [%[" from "], #4]\n ldr " b ", [%[" from "]], #6\n sxtb16 " a ", " b "\n"          \
    "sxtb16 " b ", " b ", ror #8\n sxtb16 " c ", " d "\n sxtb16 " d ", " d ", ror #8\n"
    const uint32_t *const end = column + 13 * pixels;
    __asm__ volatile("1:\n" HTVM_SIX("a", "r2", "r3", "r4", "r5")
                     HTVM_SIX("b", "r6", "r8", "r10", "r12")
                     "stm %[x]!, {r2, r3, r4, r5, r6, r8, r10, r12}\n pkhtb r6, r6, r2, asr #16\n"
                     HTVM_SIX("c", "r2", "r3", "r4", "r5") "stm %[x]!, {r2, r3, r4, r5, r6}\n"
                     "cmp %[x], %[end]\n bne 1b\n"
                     : [x] "+&r"(column), [a] "+&r"(x), [b] "+&r"(y), [c] "+&r"(z)
                     : [end] "r"(end)
                     : "r2", "r3", "r4", "r5", "r6", "r8", "r10", "r12", "cc", "memory");
#undef HTVM_SIX
#else
    for (uint32_t i = 0; i < pixels; i++, column += 13, x += 6, y += 6, z += 6) {
        const int8_t *const rows[] = {x, y, z};
        for (uint32_t word = 0; word < 12; word++) {
            const uint32_t elements = htvm_load4(rows[word / 4] + word % 4 / 2 * 4);
            column[word] = word % 2 == 0 ? htvm_widen_even(elements) : htvm_widen_odd(elements);
        }
        column[12] = (uint32_t)x[2] & 0xffffu;
        column[12] |= (uint32_t)y[2] << 16;
    }
#endif
    column[8] = (uint32_t)z[2] << 16;
    column[12] = (uint32_t)x[2] & 0xffffu;
    column[12] |= (uint32_t)y[2] << 16;
}

/* Adds to sums[0..1] the products of the first of two columns with two channels, whose words
 * alternate, and to sums[2..3] those of the second. */
HTVM_INLINE void htvm_two_by_two(int32_t *sums, const uint32_t *column, const int8_t *weights,
                                 uint32_t words)
{
#if HTVM_DSP_LOOPS
#define HTVM_STEP                                                                                  \
    "ldm %[x]!, {r2, r3, r4, r5}\n ldrd r7, r9, [%[w]], #8\n"                                      \
    "sxtb16 lr, r7\n smlad %[a], r2, lr, %[a]\n smlad %[c], r3, lr, %[c]\n"                        \
    "sxtb16 lr, r7, ror #8\n smlad %[a], r4, lr, %[a]\n smlad %[c], r5, lr, %[c]\n"                \
    "sxtb16 lr, r9\n smlad %[b], r2, lr, %[b]\n smlad %[d], r3, lr, %[d]\n"                        \
    "sxtb16 lr, r9, ror #8\n smlad %[b], r4, lr, %[b]\n smlad %[d], r5, lr, %[d]\n"
    register int32_t a __asm__("r8") = sums[0], b __asm__("r10") = sums[1];
    register int32_t c __asm__("r11") = sums[2], d __asm__("r12") = sums[3];
    register const uint32_t *x __asm__("r0") = column;
    register const int8_t *w __asm__("r1") = weights;
    register const int8_t *const end __asm__("r6") = weights + 8 * words;
    for (uint32_t i = 0; i < (words & 3u); i++) {
        __asm__ volatile(HTVM_BORROW HTVM_STEP HTVM_RETURN
                         : [a] "+r"(a), [b] "+r"(b), [c] "+r"(c), [d] "+r"(d), [x] "+r"(x),
                           [w] "+r"(w)
                         :
                         : "r2", "r3", "r4", "r5", "lr", "cc", "memory");
    }
    if (words >= 4) {
        __asm__ volatile(HTVM_BORROW HTVM_LOOP_TO("end", "w", HTVM_STEP) HTVM_RETURN
                         : [a] "+r"(a), [b] "+r"(b), [c] "+r"(c), [d] "+r"(d), [x] "+r"(x),
                           [w] "+r"(w)
                         : [end] "r"(end)
                         : "r2", "r3", "r4", "r5", "lr", "cc", "memory");
    }
#undef HTVM_STEP
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
#else
    for (uint32_t i = 0; i < words; i++, column += 4, weights += 8) {
        const uint32_t u = htvm_load4(weights), v = htvm_load4(weights + 4);
        sums[0] = htvm_word(column, 2, u, sums[0]);
        sums[1] = htvm_word(column, 2, v, sums[1]);
        sums[2] = htvm_word(column + 1, 2, u, sums[2]);
        sums[3] = htvm_word(column + 1, 2, v, sums[3]);
    }
#endif
}

/* The same, called: for so many words that the call does not count. */
HTVM_SHARED void htvm_two_by_two_long(int32_t *sums, const uint32_t *column, const int8_t *weights,
                                      uint32_t words)
{
    htvm_two_by_two(sums, column, weights, words);
}

/* Adds to each sum the products of one column with a channel; the words of four channels alternate. */
HTVM_INLINE void htvm_one_by_four(int32_t *sums, const uint32_t *column, const int8_t *weights,
                                  uint32_t words)
{
#if HTVM_DSP_LOOPS
#define HTVM_STEP                                                                                  \
    "ldrd r7, r9, [%[x]], #8\n ldm %[w]!, {r2, r3, r4, r5}\n"                                      \
    "sxtb16 lr, r2\n smlad %[a], r7, lr, %[a]\n"                                                   \
    "sxtb16 lr, r2, ror #8\n smlad %[a], r9, lr, %[a]\n"                                           \
    "sxtb16 lr, r3\n smlad %[b], r7, lr, %[b]\n"                                                   \
    "sxtb16 lr, r3, ror #8\n smlad %[b], r9, lr, %[b]\n"                                           \
    "sxtb16 lr, r4\n smlad %[c], r7, lr, %[c]\n"                                                   \
    "sxtb16 lr, r4, ror #8\n smlad %[c], r9, lr, %[c]\n"                                           \
    "sxtb16 lr, r5\n smlad %[d], r7, lr, %[d]\n"                                                   \
    "sxtb16 lr, r5, ror #8\n smlad %[d], r9, lr, %[d]\n"
    register int32_t a __asm__("r8") = sums[0], b __asm__("r10") = sums[1];
    register int32_t c __asm__("r11") = sums[2], d __asm__("r12") = sums[3];
    register const uint32_t *x __asm__("r0") = column;
    register const int8_t *w __asm__("r1") = weights;
    register const int8_t *const end __asm__("r6") = weights + 16 * words;
    for (uint32_t i = 0; i < (words & 3u); i++) {
        __asm__ volatile(HTVM_BORROW HTVM_STEP HTVM_RETURN
                         : [a] "+r"(a), [b] "+r"(b), [c] "+r"(c), [d] "+r"(d), [x] "+r"(x),
                           [w] "+r"(w)
                         :
                         : "r2", "r3", "r4", "r5", "lr", "cc", "memory");
    }
    if (words >= 4) {
        __asm__ volatile(HTVM_BORROW HTVM_LOOP_TO("end", "w", HTVM_STEP) HTVM_RETURN
                         : [a] "+r"(a), [b] "+r"(b), [c] "+r"(c), [d] "+r"(d), [x] "+r"(x),
                           [w] "+r"(w)
                         : [end] "r"(end)
                         : "r2", "r3", "r4", "r5", "lr", "cc", "memory");
    }
#undef HTVM_STEP
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
#else
    for (uint32_t i = 0; i < words; i++, column += 2, weights += 16) {
        for (uint32_t k = 0; k < 4; k++) {
            sums[k] = htvm_word(column, 1, htvm_load4(weights + 4 * k), sums[k]);
        }
    }
#endif
}

/* The same for two channels. */
HTVM_INLINE void htvm_one_by_two(int32_t *sums, const uint32_t *column, const int8_t *weights,
                                 uint32_t words)
{
#if HTVM_DSP_LOOPS
#define HTVM_STEP                                                                                  \
    "ldrd r2, r3, [%[x]], #8\n ldrd r4, r5, [%[w]], #8\n"                                          \
    "sxtb16 %[t], r4\n smlad %[a], r2, %[t], %[a]\n"                                               \
    "sxtb16 %[t], r4, ror #8\n smlad %[a], r3, %[t], %[a]\n"                                       \
    "sxtb16 %[t], r5\n smlad %[b], r2, %[t], %[b]\n"                                               \
    "sxtb16 %[t], r5, ror #8\n smlad %[b], r3, %[t], %[b]\n"
    int32_t a = sums[0], b = sums[1];
    uint32_t t;
    const int8_t *const end = weights + 8 * words;
    for (uint32_t i = 0; i < (words & 3u); i++) {
        __asm__ volatile(HTVM_STEP
                         : [a] "+r"(a), [b] "+r"(b), [x] "+r"(column), [w] "+r"(weights),
                           [t] "=&r"(t)
                         :
                         : "r2", "r3", "r4", "r5", "memory");
    }
    if (words >= 4) {
        __asm__ volatile(HTVM_LOOP_TO("end", "w", HTVM_STEP)
                         : [a] "+r"(a), [b] "+r"(b), [x] "+r"(column), [w] "+r"(weights),
                           [t] "=&r"(t)
                         : [end] "r"(end)
                         : "r2", "r3", "r4", "r5", "cc", "memory");
    }
#undef HTVM_STEP
    sums[0] = a;
    sums[1] = b;
#else
    for (uint32_t i = 0; i < words; i++, column += 2, weights += 8) {
        sums[0] = htvm_word(column, 1, htvm_load4(weights), sums[0]);
        sums[1] = htvm_word(column, 1, htvm_load4(weights + 4), sums[1]);
    }
#endif
}

#endif
