/* Product with one vector, 64 -> 16: post-increment loads in a hardware loop. */
#include "corev.h"
#include "kernel.h"

enum { IN = 64, OUT = 16 };

static int8_t in[IN] __attribute__((aligned(4))), weights[OUT][IN] __attribute__((aligned(4)));
static int32_t out[OUT];

void kernel(void)
{
    for (int32_t k = 0; k < OUT; ++k) {
        const int8_t *x = in, *w = weights[k];
        int32_t sum = 0;
        __asm__ volatile(COREV(
            "li t6, %[n]\n"
            LOOP0(COUNT_IN_T6, "778f")
            "cv.lw t4, (%[x]), 4\n"
            "cv.lw t5, (%[w]), 4\n"
            "cv.sdotsp.b %[sum], t4, t5\n"
            "778:\n" END_LOOP0)
            : [x] "+r"(x), [w] "+r"(w), [sum] "+r"(sum)
            : [n] "i"(IN / 4)
            : "t4", "t5", "t6", "memory");
        out[k] = sum;
    }
}

const region_t inputs[] = {{in, sizeof in}, {weights, sizeof weights}, {0, 0}};
const region_t output = {out, sizeof out};
