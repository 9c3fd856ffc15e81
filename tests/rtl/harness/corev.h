/* CORE-V instructions for kernels, as inline assembly. */
#ifndef COREV_H
#define COREV_H

#include <stdint.h>

#define COREV(text) ".option push\n.option arch, +xcvmem, +xcvalu, +xcvmac, +xcvsimd\n" text "\n.option pop\n"

/* sum of the products of four pairs of signed bytes */
static inline int32_t sdotsp4(uint32_t a, uint32_t b, int32_t sum)
{
    __asm__(COREV("cv.sdotsp.b %0, %1, %2") : "+r"(sum) : "r"(a), "r"(b));
    return sum;
}

/* to -128 ... 127 */
static inline int32_t clip8(int32_t value)
{
    __asm__(COREV("cv.clip %0, %0, 8") : "+r"(value));
    return value;
}

static inline int32_t mac(int32_t a, int32_t b, int32_t sum)
{
    __asm__(COREV("cv.mac %0, %1, %2") : "+r"(sum) : "r"(a), "r"(b));
    return sum;
}

/* (a + b + (1 << shift - 1)) >> shift */
#define ADD_ROUND_SHIFT(a, b, shift)                                                          \
    ({                                                                                        \
        int32_t sum_;                                                                         \
        __asm__(COREV("cv.addRN %0, %1, %2, " #shift) : "=r"(sum_) : "r"(a), "r"(b));         \
        sum_;                                                                                 \
    })

/* Sets hardware loop 0 up, of the instructions from here to the local label. */
#define LOOP0(count, end)                                                                        \
    ".balign 4\n.option push\n.option norvc\n.option norelax\n"                                  \
    "777: .word 0x472b|((" count ")<<15)|(((" end "-777b)>>2)<<20)\n"
#define END_LOOP0 ".option pop\n"

/* The number of the register that %0 stands for, which .word needs: t6 is set to the count. */
#define COUNT_IN_T6 "31"

#endif
