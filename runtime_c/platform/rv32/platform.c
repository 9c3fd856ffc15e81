/* What a firmware needs beside crt0.S: the end of the run, and what the compiler's own library
 * lacks. */
#include "htvm_hal_platform.h"

#include <math.h>
#include <string.h>

_Noreturn void htvm_exit(int32_t code)
{
    const uint32_t low = (uint32_t)code & 0xffffu;
    htvm_hal_write(HTVM_SIM_EXIT, code == 0 ? 0x5555u : low << 16 | 0x3333u);
    for (;;) {
    }
}

/* Rounds to the nearest integer, ties to even: adding 2^23 leaves no room for a fraction. */
float nearbyintf(float x)
{
    const float magnitude = fabsf(x);
    if (!(magnitude < 0x1p23f)) {
        return x; /* an integer already, infinite, or no number */
    }
    volatile float sum = magnitude + 0x1p23f; /* volatile: the compiler must not cancel it */
    const float rounded = sum - 0x1p23f;
    return __builtin_copysignf(rounded, x);
}

float rintf(float x) { return nearbyintf(x); }
