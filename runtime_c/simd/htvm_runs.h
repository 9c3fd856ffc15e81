/* Runs of bytes.  Short ones, whose length is known, become a few instructions where they are. */
#ifndef HTVM_RUNS_H
#define HTVM_RUNS_H

#include <stdint.h>
#include <string.h>

#include "htvm_simd.h"

enum { HTVM_SHORT_RUN = 8 };

#if HTVM_DSP
#define HTVM_SINGLY(move, at)                                                                      \
    move " r3, " at ", #4\n" move " r4, " at ", #4\n" move " r5, " at ", #4\n" move " r6, " at ", #4\n" \
    move " r8, " at ", #4\n" move " r10, " at ", #4\n" move " r12, " at ", #4\n" move " lr, " at ", #4\n"
#define HTVM_ALIGNED                                                                               \
    "ldm %[from]!, {r3, r4, r5, r6, r8, r10, r12, lr}\n"                                           \
    "stm %[to]!, {r3, r4, r5, r6, r8, r10, r12, lr}\n"
#define HTVM_EIGHT_WORDS(moves, end)                                                               \
    __asm__ volatile("1:\n" moves "cmp %[from], %[until]\n bne 1b\n"                               \
                     : [to] "+&r"(to), [from] "+&r"(from)                                          \
                     : [until] "r"(end)                                                            \
                     : "r3", "r4", "r5", "r6", "r8", "r10", "r12", "lr", "cc", "memory")
#endif

HTVM_SHARED void htvm_copy_run(int8_t *to, const int8_t *from, uint32_t count)
{
#if HTVM_RVV
    for (size_t vl; count > 0; count -= (uint32_t)vl, to += vl, from += vl) {
        vl = __riscv_vsetvl_e8m8(count);
        __riscv_vse8_v_i8m8(to, __riscv_vle8_v_i8m8(from, vl), vl);
    }
#else
#if HTVM_DSP
    /* Eight words at once, whatever the library does; LDM and STM do not reach any address. */
    if (count >= 32) {
        const int8_t *const fours = from + (count & ~127u), *const end = from + (count & ~31u);
        if ((((uintptr_t)to | (uintptr_t)from) & 3u) == 0) {
            if (from != fours) {
                HTVM_EIGHT_WORDS(HTVM_ALIGNED HTVM_ALIGNED HTVM_ALIGNED HTVM_ALIGNED, fours);
            }
            if (from != end) {
                HTVM_EIGHT_WORDS(HTVM_ALIGNED, end);
            }
        } else {
            HTVM_EIGHT_WORDS(HTVM_SINGLY("ldr", "[%[from]]") HTVM_SINGLY("str", "[%[to]]"), end);
        }
        count &= 31u;
    }
#endif
    if (count > 0) {
        memcpy(to, from, count);
    }
#endif
}

HTVM_SHARED void htvm_fill_run(int8_t *to, int32_t value, uint32_t count)
{
#if HTVM_RVV
    const vint8m8_t bytes = __riscv_vmv_v_x_i8m8((int8_t)value, __riscv_vsetvlmax_e8m8());
    for (size_t vl; count > 0; count -= (uint32_t)vl, to += vl) {
        vl = __riscv_vsetvl_e8m8(count);
        __riscv_vse8_v_i8m8(to, bytes, vl);
    }
#else
    memset(to, value, count);
#endif
}

/* Copies bytes to a place that does not overlap theirs. */
HTVM_INLINE void htvm_copy(int8_t *to, const int8_t *from, uint32_t count)
{
    if (count <= HTVM_SHORT_RUN) {
        memcpy(to, from, count);
    } else {
        htvm_copy_run(to, from, count);
    }
}

/* Copies `runs` runs of `bytes` bytes, each followed by `more` bytes with a value. */
HTVM_SHARED void htvm_copy_runs(int8_t *to, const int8_t *from, uint32_t runs, uint32_t bytes,
                                uint32_t more, int8_t value)
{
    uint32_t i = 0;
#if HTVM_DSP
    /* The colours of pixels become words: four pixels are three words. */
    if (bytes == 3 && more == 1) {
        const uint32_t last = (uint32_t)(uint8_t)value << 24;
        for (; i + 4 <= runs; i += 4, to += 16, from += 12) {
            const uint32_t a = htvm_load4(from), b = htvm_load4(from + 4);
            const uint32_t c = htvm_load4(from + 8);
            htvm_store4(to, (a & 0xffffffu) | last);
            htvm_store4(to + 4, a >> 24 | (b & 0xffffu) << 8 | last);
            htvm_store4(to + 8, b >> 16 | (c & 0xffu) << 16 | last);
            htvm_store4(to + 12, c >> 8 | last);
        }
    }
#endif
    for (; i < runs; i++) {
        for (uint32_t b = 0; b < bytes; b++) {
            *to++ = *from++;
        }
        for (uint32_t b = 0; b < more; b++) {
            *to++ = value;
        }
    }
}

/* Writes the same byte everywhere. */
HTVM_INLINE void htvm_fill(int8_t *to, int8_t value, uint32_t count)
{
    if (count <= HTVM_SHORT_RUN) {
#if HTVM_DSP
        uint32_t i = 0;
        for (; i + 4 <= count; i += 4) {
            htvm_store4(to + i, (uint32_t)(uint8_t)value * 0x01010101u);
        }
        for (; i < count; i++) {
            to[i] = value;
        }
#else
        memset(to, value, count);
#endif
    } else {
        htvm_fill_run(to, value, count);
    }
}

#endif
