/* Blocks of 4 x 4 bytes are transposed. */
#ifndef HTVM_TRANSPOSE_H
#define HTVM_TRANSPOSE_H

#include <stdint.h>

#include "htvm_simd.h"

/* Four rows.  From a block to the next one it is step[i] bytes in row i: 0, if all blocks are to read
 * the same word. */
typedef struct {
    const uint8_t *row[4];
    uint32_t step[4];
} htvm_rows_t;

/* Of each block, word j of the result is byte j of each row, xor `flip`.  Words are `step` bytes apart,
 * blocks `next`.  No address need be aligned. */
typedef struct {
    uint32_t blocks, step, next, flip;
} htvm_transposed_t;

void htvm_transpose(const htvm_transposed_t *what, const htvm_rows_t *rows, uint8_t *out);

/* The same, inlined. */
#if HTVM_SIMD
/* The lower halves of rows 2 and 0, and of 3 and 1, have bytes 0 and 1; the upper halves 2 and 3. */
#define HTVM_TRANSPOSE(first)                                                                           \
    __asm__ volatile(                                                                              \
        HTVM_LOOP                                                                                  \
        ".insn r 0x2b, 4, 0, x10, %[count], x0\n" /* cv.count 0 */                                 \
        "3: cv.lw %[a], (%[p0]), %[i0]\ncv.lw %[b], (%[p1]), %[i1]\n"                              \
        "cv.lw %[c], (%[p2]), %[i2]\ncv.lw %[d], (%[p3]), %[i3]\n"                                 \
        first                                                                                      \
        "cv.pack %[e], %[c], %[a]\ncv.pack %[f], %[d], %[b]\n"                                     \
        "cv.pack.h %[a], %[c], %[a]\ncv.pack.h %[b], %[d], %[b]\n"                                 \
        "mv %[c], %[e]\nmv %[d], %[a]\n"                                                           \
        "cv.shuffle2.b %[e], %[f], %[even]\ncv.shuffle2.b %[c], %[f], %[odd]\n"                    \
        "cv.shuffle2.b %[a], %[b], %[even]\ncv.shuffle2.b %[d], %[b], %[odd]\n"                    \
        "cv.sw %[e], (%[out]), %[step]\ncv.sw %[c], (%[out]), %[step]\n"                           \
        "cv.sw %[a], (%[out]), %[step]\ncv.sw %[d], (%[out]), %[back]\n"                           \
        "4:\n.option pop\n"                                                                        \
        : [a] "=&r"(a), [b] "=&r"(b), [c] "=&r"(c), [d] "=&r"(d), [e] "=&r"(e), [f] "=&r"(f),      \
          [p0] "+&r"(p0), [p1] "+&r"(p1), [p2] "+&r"(p2), [p3] "+&r"(p3), [out] "+&r"(out)         \
        : [i0] "r"(rows->step[0]), [i1] "r"(rows->step[1]), [i2] "r"(rows->step[2]),               \
          [i3] "r"(rows->step[3]), [step] "r"(step), [back] "r"(back), [count] "r"(p->blocks),     \
          [even] "r"(0x06020400u), [odd] "r"(0x07030501u), [sign] "r"(p->flip)                     \
        : "memory")
#define HTVM_FLIP                                                                                       \
    "xor %[a], %[a], %[sign]\nxor %[b], %[b], %[sign]\n"                                           \
    "xor %[c], %[c], %[sign]\nxor %[d], %[d], %[sign]\n"

HTVM_INLINE void htvm_transpose_here(const htvm_transposed_t *p, const htvm_rows_t *rows, uint8_t *out)
{
    const uint8_t *p0 = rows->row[0], *p1 = rows->row[1], *p2 = rows->row[2], *p3 = rows->row[3];
    const uint32_t step = p->step, back = p->next - 3u * step;
    uint32_t a, b, c, d, e, f;
    if (p->blocks == 0) {
        return;
    }
    if (p->flip != 0) {
        HTVM_TRANSPOSE(HTVM_FLIP);
    } else {
        HTVM_TRANSPOSE("");
    }
}
#else
HTVM_INLINE void htvm_transpose_here(const htvm_transposed_t *p, const htvm_rows_t *rows, uint8_t *out)
{
    for (uint32_t n = 0; n < p->blocks; n++, out += p->next) {
        uint32_t words[4];
        for (uint32_t i = 0; i < 4; i++) {
            words[i] = htvm_load4(rows->row[i] + n * rows->step[i]) ^ p->flip;
        }
        for (uint32_t j = 0; j < 4; j++) {
            uint32_t word = 0;
            for (uint32_t i = 0; i < 4; i++) {
                word |= (words[i] >> (8 * j) & 255u) << (8 * i);
            }
            htvm_store4(out + j * p->step, word);
        }
    }
}
#endif

#endif
