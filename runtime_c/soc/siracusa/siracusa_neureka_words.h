/* Four bytes at a time, for the kernels of this folder. */
#ifndef SIRACUSA_NEUREKA_WORDS_H
#define SIRACUSA_NEUREKA_WORDS_H

#include <stdint.h>

#include "htvm_soc.h"

/* Four bytes of a tensor, which others access as bytes. */
typedef uint32_t __attribute__((may_alias)) word_t;

/* Clears the bytes whose sign is set. */
static inline uint32_t clipped(uint32_t word)
{
#if defined(HTVM_CORE_COREV) && defined(__riscv)
    __asm__(".option push\n.option arch, +xcvsimd\ncv.max.sci.b %0, %0, 0\n.option pop"
            : "+r"(word));
    return word;
#else
    const uint32_t negative = word >> 7 & 0x01010101u;
    return word & ~((negative << 8) - negative);
#endif
}

#endif
