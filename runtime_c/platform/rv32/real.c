/* Float functions that the compiler's own library lacks. */
#include <math.h>

/* Rounds to the nearest integer, ties to even: adding 2^23 leaves no room for a fraction. */
float nearbyintf(float x)
{
    const float magnitude = fabsf(x);
    if (!(magnitude < 0x1p23f)) {
        return x; /* already an integer, infinite, or not a number */
    }
    volatile float sum = magnitude + 0x1p23f; /* volatile: the compiler must not cancel it */
    const float rounded = sum - 0x1p23f;
    return __builtin_copysignf(rounded, x);
}

float rintf(float x) { return nearbyintf(x); }
