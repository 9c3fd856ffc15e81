/* Sums of products of int8 on cores with vectors of 16 bytes (Helium, MVE).
 *
 * Operands are copied into a column: for each pixel the elements of its window, filled up to a
 * multiple of 16, where weights are 0.  Weights are packed alike, some channels side by side (`htvm_rows_side`):
 * [channels / side][steps][side][16].  With MVE, a step of three pixels and two channels is 11 or 12
 * instructions for 96 products; elsewhere everything is plain C with the same results.  Sums wrap
 * around.
 */
#ifndef HTVM_ROWS_H
#define HTVM_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "htvm_lanes.h"

/* Operands that a loop changes are early clobbers ("+&r"): two of equal value would share a register. */

/* Without optimization compilers keep registers for themselves.  A build may set it to 0. */
#ifndef HTVM_MVE_LOOPS
#if HTVM_MVE && defined(__OPTIMIZE__)
#define HTVM_MVE_LOOPS 1
#else
#define HTVM_MVE_LOOPS 0
#endif
#endif

/* Copies `rows` runs of `run` elements, each `pitch` behind the other in `from`, to neighbours in a
 * column, followed by zeros up to `room`. */
HTVM_INLINE void htvm_rows_copy(int8_t *column, const int8_t *from, uint32_t rows, uint32_t pitch,
                                uint32_t run, uint32_t room)
{
    for (uint32_t i = 0; i < room; i++) {
        column[i] = i < rows * run ? from[i / run * pitch + i % run] : 0;
    }
}

/* The window of one pixel.  What follows it has weights of 0, so that only plain C sets it to 0. */
HTVM_INLINE void htvm_rows_window(int8_t *column, const int8_t *x, uint32_t rows, uint32_t pitch,
                                  uint32_t run, uint32_t each, uint32_t room)
{
    (void)each;
#if HTVM_MVE_LOOPS
    (void)room;
    const uint32_t whole = (run + 15) / 16 * 16;
    __asm__ volatile("1:\n dlstp.8 lr, %[run]\n"
                     "2:\n vldrb.8 q0, [%[x]], #16\n vstrb.8 q0, [%[u]], #16\n letp lr, 2b\n"
                     "add %[x], %[x], %[on]\n add %[u], %[u], %[back]\n"
                     "subs %[rows], %[rows], #1\n bne 1b\n"
                     : [x] "+&r"(x), [u] "+&r"(column), [rows] "+&r"(rows)
                     : [run] "r"(run), [on] "r"(pitch - whole), [back] "r"(run - whole)
                     : "lr", "cc", "q0", "memory");
#else
    htvm_rows_copy(column, x, rows, pitch, run, room);
#endif
}

/* The windows of three pixels, each `each` elements behind the other. */
HTVM_INLINE void htvm_rows_windows(int8_t *column, const int8_t *x, const int8_t *y, const int8_t *z,
                                   uint32_t rows, uint32_t pitch, uint32_t run, uint32_t each,
                                   uint32_t room)
{
    int8_t *second = column + each, *third = second + each;
#if HTVM_MVE_LOOPS
    (void)room;
    const uint32_t whole = (run + 15) / 16 * 16;
    __asm__ volatile("1:\n dlstp.8 lr, %[run]\n"
                     "2:\n vldrb.8 q0, [%[x]], #16\n vldrb.8 q1, [%[y]], #16\n"
                     "vldrb.8 q2, [%[z]], #16\n vstrb.8 q0, [%[u]], #16\n"
                     "vstrb.8 q1, [%[v]], #16\n vstrb.8 q2, [%[w]], #16\n letp lr, 2b\n"
                     "add %[x], %[x], %[on]\n add %[y], %[y], %[on]\n add %[z], %[z], %[on]\n"
                     "add %[u], %[u], %[back]\n add %[v], %[v], %[back]\n"
                     "add %[w], %[w], %[back]\n subs %[rows], %[rows], #1\n bne 1b\n"
                     : [x] "+&r"(x), [y] "+&r"(y), [z] "+&r"(z), [u] "+&r"(column), [v] "+&r"(second),
                       [w] "+&r"(third), [rows] "+&r"(rows)
                     : [run] "r"(run), [on] "r"(pitch - whole), [back] "r"(run - whole)
                     : "lr", "cc", "q0", "q1", "q2", "memory");
#else
    htvm_rows_copy(column, x, rows, pitch, run, room);
    htvm_rows_copy(second, y, rows, pitch, run, room);
    htvm_rows_copy(third, z, rows, pitch, run, room);
#endif
}

/* Returns the channels whose vectors of weights alternate: two for blocks of several pixels, in which
 * each vector is used as often as it can be kept. */
HTVM_INLINE uint32_t htvm_rows_side(uint32_t pixels, uint32_t block)
{
    return pixels > 1 && block > 2 ? 2 : block;
}

/* Returns the sum of the products of 16 * steps elements; vectors of a channel are `apart` bytes
 * apart. */
HTVM_INLINE int32_t htvm_rows_dot(const int8_t *x, const int8_t *weights, uint32_t steps,
                                  uint32_t apart)
{
    int32_t sum = 0;
    for (uint32_t i = 0; i < steps; i++) {
#if HTVM_MVE
        sum = vmladavaq_s8(sum, vldrbq_s8(x + 16 * i), vldrbq_s8(weights + apart * i));
#else
        for (uint32_t j = 0; j < 16; j++) {
            const int32_t product = x[16 * i + j] * weights[apart * i + j];
            sum = (int32_t)((uint32_t)sum + (uint32_t)product);
        }
#endif
    }
    return sum;
}

#if HTVM_MVE_LOOPS
/* Names of the six sums of three pixels (a and b, c and d, e and f) with two channels, which must be
 * in even registers. */
#define HTVM_SIX                                                                                   \
    [a] "=&Te"(a), [b] "=&Te"(b), [c] "=&Te"(c), [d] "=&Te"(d), [e] "=&Te"(e), [f] "=&Te"(f)

/* Stores the sums of channels 0 and 1 of a four, and of channels 2 and 3. */
#define HTVM_FIRST_TWO                                                                             \
    "strd %[a], %[b], [%[s]], #8\n strd %[c], %[d], [%[s], #8]\n strd %[e], %[f], [%[s], #24]\n"
#define HTVM_LAST_TWO                                                                              \
    "strd %[a], %[b], [%[s]], #40\n strd %[c], %[d], [%[s], #-24]\n strd %[e], %[f], [%[s], #-8]\n"

/* Two vectors of weights, and their products with three pixels: `how` is empty to begin with them, or
 * "a" to add them. */
#define HTVM_TWO(how, x, y, z, u, v)                                                               \
    "vldrb.8 " u ", [%[w]], #16\n vldrb.8 " v ", [%[w]], #16\n"                                    \
    "vmladav" how ".s8 %[a], " x ", " u "\n vmladav" how ".s8 %[c], " y ", " u "\n"                \
    "vmladav" how ".s8 %[e], " z ", " u "\n vmladav" how ".s8 %[b], " x ", " v "\n"                \
    "vmladav" how ".s8 %[d], " y ", " v "\n vmladav" how ".s8 %[f], " z ", " v "\n"

/* Windows of one vector stay in registers. */
HTVM_INLINE void htvm_rows_short(int32_t *sums, const int8_t *x, const int8_t *weights,
                                 uint32_t fours)
{
    int32_t a, b, c, d, e, f;
    __asm__ volatile("vldrb.8 q0, [%[x]]\n vldrb.8 q1, [%[x], #16]\n vldrb.8 q2, [%[x], #32]\n"
                     "dls lr, %[fours]\n"
                     "1:\n" HTVM_TWO("", "q0", "q1", "q2", "q3", "q4") HTVM_FIRST_TWO
                     HTVM_TWO("", "q0", "q1", "q2", "q3", "q4") HTVM_LAST_TWO "le lr, 1b\n"
                     : HTVM_SIX, [w] "+&r"(weights), [s] "+&r"(sums)
                     : [x] "r"(x), [fours] "r"(fours)
                     : "lr", "q0", "q1", "q2", "q3", "q4", "memory");
}

/* So do those of two. */
HTVM_INLINE void htvm_rows_double(int32_t *sums, const int8_t *x, const int8_t *weights,
                                  uint32_t fours)
{
    int32_t a, b, c, d, e, f;
#define HTVM_TWO_TWICE                                                                             \
    HTVM_TWO("", "q0", "q2", "q4", "q6", "q7") HTVM_TWO("a", "q1", "q3", "q5", "q6", "q7")
    __asm__ volatile("vldrb.8 q0, [%[x]]\n vldrb.8 q1, [%[x], #16]\n vldrb.8 q2, [%[x], #32]\n"
                     "vldrb.8 q3, [%[x], #48]\n vldrb.8 q4, [%[x], #64]\n vldrb.8 q5, [%[x], #80]\n"
                     "dls lr, %[fours]\n"
                     "1:\n" HTVM_TWO_TWICE HTVM_FIRST_TWO HTVM_TWO_TWICE HTVM_LAST_TWO "le lr, 1b\n"
                     : HTVM_SIX, [w] "+&r"(weights), [s] "+&r"(sums)
                     : [x] "r"(x), [fours] "r"(fours)
                     : "lr", "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "memory");
#undef HTVM_TWO_TWICE
}

/* Longer ones are read again for every two channels: 12 instructions for 96 products.  All registers
 * are used: r7 has the bytes of a window but 16, r9 the fours that are left. */
HTVM_INLINE void htvm_rows_long(int32_t *sums, const int8_t *column, const int8_t *weights,
                                uint32_t steps, uint32_t fours)
{
    register uint32_t a __asm__("r0") = 16 * (steps - 1), b __asm__("r2") = fours;
    register int32_t c __asm__("r4"), d __asm__("r6"), e __asm__("r8"), f __asm__("r10");
    register const int8_t *x __asm__("r1") = column;
    register const int8_t *y __asm__("r3") = column + 16 * steps;
    register const int8_t *z __asm__("r5") = column + 32 * steps;
    register const int8_t *w __asm__("r11") = weights;
    register int32_t *s __asm__("r12") = sums;
#define HTVM_ALL                                                                                   \
    "vldrb.8 q0, [%[x]]\n vldrb.8 q1, [%[y]]\n vldrb.8 q2, [%[z]]\n lsr lr, r7, #4\n"              \
    HTVM_TWO("", "q0", "q1", "q2", "q3", "q4") "dls lr, lr\n"                                      \
    "2:\n vldrb.8 q3, [%[w]], #16\n vldrb.8 q0, [%[x], #16]!\n"                                    \
    "vmladava.s8 %[a], q0, q3\n vldrb.8 q1, [%[y], #16]!\n"                                        \
    "vmladava.s8 %[c], q1, q3\n vldrb.8 q2, [%[z], #16]!\n"                                        \
    "vmladava.s8 %[e], q2, q3\n vldrb.8 q3, [%[w]], #16\n"                                         \
    "vmladava.s8 %[b], q0, q3\n vmladava.s8 %[d], q1, q3\n"                                        \
    "vmladava.s8 %[f], q2, q3\n le lr, 2b\n"                                                       \
    "sub %[x], %[x], r7\n sub %[y], %[y], r7\n sub %[z], %[z], r7\n"
    __asm__ volatile(HTVM_BORROW "mov r7, %[a]\n mov r9, %[b]\n"
                     "1:\n" HTVM_ALL HTVM_FIRST_TWO HTVM_ALL HTVM_LAST_TWO
                     "subs r9, r9, #1\n bne 1b\n" HTVM_RETURN
                     : [a] "+&r"(a), [b] "+&r"(b), [c] "=&r"(c), [d] "=&r"(d), [e] "=&r"(e),
                       [f] "=&r"(f), [x] "+&r"(x), [y] "+&r"(y), [z] "+&r"(z), [w] "+&r"(w), [s] "+&r"(s)
                     :
                     : "lr", "cc", "q0", "q1", "q2", "q3", "q4", "memory");
#undef HTVM_ALL
}

/* One pixel. */
HTVM_INLINE void htvm_rows_one(int32_t *sums, const int8_t *column, const int8_t *weights,
                               uint32_t steps, uint32_t fours)
{
    register int32_t a __asm__("r0"), b __asm__("r2"), c __asm__("r4"), d __asm__("r6");
    const uint32_t more = 16 * (steps - 1);
    __asm__ volatile("1:\n vldrb.8 q0, [%[x]]\n vldrb.8 q1, [%[w]], #16\n lsr lr, %[more], #4\n"
                     "vmladav.s8 %[a], q0, q1\n vldrb.8 q1, [%[w]], #16\n"
                     "vmladav.s8 %[b], q0, q1\n vldrb.8 q1, [%[w]], #16\n"
                     "vmladav.s8 %[c], q0, q1\n vldrb.8 q1, [%[w]], #16\n"
                     "vmladav.s8 %[d], q0, q1\n wls lr, lr, 3f\n"
                     "2:\n vldrb.8 q0, [%[x], #16]!\n vldrb.8 q1, [%[w]], #16\n"
                     "vmladava.s8 %[a], q0, q1\n vldrb.8 q1, [%[w]], #16\n"
                     "vmladava.s8 %[b], q0, q1\n vldrb.8 q1, [%[w]], #16\n"
                     "vmladava.s8 %[c], q0, q1\n vldrb.8 q1, [%[w]], #16\n"
                     "vmladava.s8 %[d], q0, q1\n le lr, 2b\n"
                     "3:\n stm %[s]!, {%[a], %[b], %[c], %[d]}\n sub %[x], %[x], %[more]\n"
                     "subs %[fours], %[fours], #1\n bne 1b\n"
                     : [a] "=&r"(a), [b] "=&r"(b), [c] "=&r"(c), [d] "=&r"(d), [x] "+&r"(column),
                       [w] "+&r"(weights), [s] "+&r"(sums), [fours] "+&r"(fours)
                     : [more] "r"(more)
                     : "lr", "cc", "q0", "q1", "memory");
}

/* One pixel, where channels are no fours. */
HTVM_INLINE void htvm_rows_single(int32_t *sums, const int8_t *column, const int8_t *weights,
                                  uint32_t steps, uint32_t channels)
{
    register int32_t a __asm__("r0");
    const uint32_t more = 16 * (steps - 1);
    __asm__ volatile("1:\n vldrb.8 q0, [%[x]]\n vldrb.8 q1, [%[w]], #16\n lsr lr, %[more], #4\n"
                     "vmladav.s8 %[a], q0, q1\n wls lr, lr, 3f\n"
                     "2:\n vldrb.8 q0, [%[x], #16]!\n vldrb.8 q1, [%[w]], #16\n"
                     "vmladava.s8 %[a], q0, q1\n le lr, 2b\n"
                     "3:\n str %[a], [%[s]], #4\n sub %[x], %[x], %[more]\n"
                     "subs %[k], %[k], #1\n bne 1b\n"
                     : [a] "=&r"(a), [x] "+&r"(column), [w] "+&r"(weights), [s] "+&r"(sums),
                       [k] "+&r"(channels)
                     : [more] "r"(more)
                     : "lr", "cc", "q0", "q1", "memory");
}
#endif

/* Products of the column of `pixels` (1 or 3) with all channels, in blocks of 1 or 4.  The four sums of
 * a block and a pixel are neighbours: sums[(k / block * pixels + p) * block + k % block]. */
HTVM_INLINE void htvm_rows_products(int32_t *sums, const int8_t *column, const int8_t *weights,
                                    uint32_t steps, uint32_t pixels, uint32_t channels,
                                    uint32_t block)
{
#if HTVM_MVE_LOOPS
    if (block == 4 && pixels == 1) {
        htvm_rows_one(sums, column, weights, steps, channels / 4);
        return;
    }
    if (block == 1 && pixels == 1) {
        htvm_rows_single(sums, column, weights, steps, channels);
        return;
    }
    if (block == 4 && pixels == 3) {
        if (steps == 1) {
            htvm_rows_short(sums, column, weights, channels / 4);
        } else if (steps == 2) {
            htvm_rows_double(sums, column, weights, channels / 4);
        } else {
            htvm_rows_long(sums, column, weights, steps, channels / 4);
        }
        return;
    }
#endif
    const uint32_t side = htvm_rows_side(pixels, block);
    for (uint32_t k = 0; k < channels; k++) {
        for (uint32_t p = 0; p < pixels; p++) {
            sums[(k / block * pixels + p) * block + k % block] =
                htvm_rows_dot(column + 16 * steps * p,
                              weights + 16 * (k / side * side * steps + k % side), steps, 16 * side);
        }
    }
}

#endif
