/* Functions of bytes; see htvm_bytes.h. */
#include "htvm_bytes.h"

#include "htvm_simd.h"

#define LANES 4u

void htvm_look_up(const uint8_t *in, uint8_t *out, const uint8_t *table, uint32_t count)
{
#if HTVM_SIMD
    uint32_t a, b, c, d;
    if (count >= LANES) {
        /* Words are loaded before any of their bytes is stored. */
        const uint32_t blocks = count / LANES;
        __asm__ volatile(
            HTVM_LOOP
            ".insn r 0x2b, 4, 0, x10, %[blocks], x0\n" /* cv.count 0 */
            "3: cv.lbu %[a], (%[in]), 1\ncv.lbu %[b], (%[in]), 1\n"
            "cv.lbu %[c], (%[in]), 1\ncv.lbu %[d], (%[in]), 1\n"
            "cv.lbu %[a], %[a](%[table])\ncv.lbu %[b], %[b](%[table])\n"
            "cv.lbu %[c], %[c](%[table])\ncv.lbu %[d], %[d](%[table])\n"
            "cv.sb %[a], (%[out]), 1\ncv.sb %[b], (%[out]), 1\n"
            "cv.sb %[c], (%[out]), 1\ncv.sb %[d], (%[out]), 1\n"
            "4:\n.option pop\n"
            : [a] "=&r"(a), [b] "=&r"(b), [c] "=&r"(c), [d] "=&r"(d), [in] "+&r"(in),
              [out] "+&r"(out)
            : [table] "r"(table), [blocks] "r"(blocks)
            : "memory");
        count %= LANES;
    }
#endif
    for (; count != 0; count--) {
        *out++ = table[*in++];
    }
}

void htvm_copy_words(uint8_t *out, const uint8_t *in, uint32_t count)
{
#if HTVM_SIMD
    uint32_t a, b, c, d;
    if (count >= LANES) {
        __asm__ volatile(
            HTVM_LOOP
            ".insn r 0x2b, 4, 0, x10, %[blocks], x0\n" /* cv.count 0 */
            "3: cv.lw %[a], (%[in]), 4\ncv.lw %[b], (%[in]), 4\n"
            "cv.lw %[c], (%[in]), 4\ncv.lw %[d], (%[in]), 4\n"
            "cv.sw %[a], (%[out]), 4\ncv.sw %[b], (%[out]), 4\n"
            "cv.sw %[c], (%[out]), 4\ncv.sw %[d], (%[out]), 4\n"
            "4:\n.option pop\n"
            : [a] "=&r"(a), [b] "=&r"(b), [c] "=&r"(c), [d] "=&r"(d), [in] "+&r"(in),
              [out] "+&r"(out)
            : [blocks] "r"(count / LANES)
            : "memory");
        count %= LANES;
    }
#endif
    for (; count != 0; count--, in += 4, out += 4) {
        htvm_store4(out, htvm_load4(in));
    }
}

#if HTVM_SIMD
/* Windows with rows of up to three words: loop 0 goes through rows, loop 1 through windows. */
#define SHORT_ROWS(loads, stores)                                                                  \
    __asm__ volatile(HTVM_LOOPS                                                                    \
                     ".insn r 0x2b, 4, 0, x11, %[count], x0\n"   /* cv.count 1 */                  \
                     "2: .insn r 0x2b, 4, 0, x10, %[rows], x0\n" /* cv.count 0 */                  \
                     "3: " loads "add %[in], %[in], %[in_row]\n" stores                            \
                     "add %[out], %[out], %[out_row]\n"                                            \
                     "4: add %[in], %[in], %[in_next]\nadd %[out], %[out], %[out_next]\n"          \
                     "5:\n.option pop\n"                                                           \
                     : [a] "=&r"(a), [b] "=&r"(b), [c] "=&r"(c), [in] "+&r"(in),                   \
                       [out] "+&r"(out)                                                            \
                     : [rows] "r"(p->rows), [in_row] "r"(p->in_row), [out_row] "r"(p->out_row),    \
                       [count] "r"(count), [in_next] "r"(in_next), [out_next] "r"(out_next)        \
                     : "memory")
#endif

void htvm_copy_windows(const htvm_windows_t *p, uint8_t *out, const uint8_t *in, uint32_t count)
{
    if (count == 0) {
        return;
    }
#if HTVM_SIMD
    const uint32_t in_next = p->in_window - p->rows * p->in_row;
    const uint32_t out_next = p->out_window - p->rows * p->out_row;
    uint32_t a, b, c;
    if (p->words == 1) {
        SHORT_ROWS("lw %[a], 0(%[in])\n", "sw %[a], 0(%[out])\n");
        return;
    }
    if (p->words == 2) {
        SHORT_ROWS("lw %[a], 0(%[in])\nlw %[b], 4(%[in])\n",
                   "sw %[a], 0(%[out])\nsw %[b], 4(%[out])\n");
        return;
    }
    if (p->words == 3) {
        SHORT_ROWS("lw %[a], 0(%[in])\nlw %[b], 4(%[in])\nlw %[c], 8(%[in])\n",
                   "sw %[a], 0(%[out])\nsw %[b], 4(%[out])\nsw %[c], 8(%[out])\n");
        return;
    }
#endif
    for (; count != 0; count--, in += p->in_window, out += p->out_window) {
        for (uint32_t i = 0; i < p->rows; i++) {
            htvm_copy_words(out + i * p->out_row, in + i * p->in_row, p->words);
        }
    }
}

void htvm_copy(uint8_t *out, const uint8_t *in, uint32_t count)
{
    const uint32_t whole = count & ~3u;
    if (whole != 0) {
        htvm_copy_words(out, in, count / 4u);
    }
    for (uint32_t i = whole; i < count; i++) {
        out[i] = in[i];
    }
}

void htvm_fill_words(uint8_t *out, uint32_t word, uint32_t count)
{
    for (; count >= LANES; count -= LANES, out += 4u * LANES) {
        HTVM_UNROLL(4)
        for (uint32_t i = 0; i < LANES; i++) {
            htvm_store4(out + 4u * i, word);
        }
    }
    for (; count != 0; count--, out += 4) {
        htvm_store4(out, word);
    }
}
