/* Maxima of windows of 2x2 in 16x16 pixels of 16 channels: lanes, in nested hardware loops. */
#include "corev.h"
#include "kernel.h"

enum { Y = 16, X = 16, WORDS = 4, ROW = X * WORDS * 4 };

static uint32_t in[Y][X][WORDS], out[Y / 2][X / 2][WORDS];

void kernel(void)
{
    const uint32_t *a = &in[0][0][0], *b = &in[1][0][0];
    uint32_t *to = &out[0][0][0];
    for (int32_t y = 0; y < Y / 2; ++y) {
        /* Loop 1 over pairs of pixels, loop 0 over words. */
        __asm__ volatile(COREV(
            ".balign 4\n.option push\n.option norvc\n.option norelax\n"
            "li t6, %[pairs]\n"
            "777: .word 0x47ab|(31<<15)|(((779f-777b)>>2)<<20)\n"
            "777: .word 0x462b|(((778f-777b)>>2)<<15)|(4<<20)\n"
            "lw t5, 16(%[a])\n"
            "cv.lw t3, (%[a]), 4\n"
            "lw t4, 16(%[b])\n"
            "cv.max.b t3, t3, t5\n"
            "cv.lw t5, (%[b]), 4\n"
            "cv.max.b t3, t3, t4\n"
            "cv.max.b t3, t3, t5\n"
            "cv.sw t3, (%[to]), 4\n"
            "778:\n"
            "addi %[a], %[a], 16\n"
            "addi %[b], %[b], 16\n"
            "779:\n.option pop\n")
            : [a] "+r"(a), [b] "+r"(b), [to] "+r"(to)
            : [pairs] "i"(X / 2)
            : "t3", "t4", "t5", "t6", "memory");
        a += ROW / 4;
        b += ROW / 4;
    }
}

const region_t inputs[] = {{in, sizeof in}, {0, 0}};
const region_t output = {out, sizeof out};
