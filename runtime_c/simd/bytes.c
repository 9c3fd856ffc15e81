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
