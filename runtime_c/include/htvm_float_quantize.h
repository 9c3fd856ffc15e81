/* Steps of float32 numbers, rounded to integers as float32 arithmetic does it, in integers where a core
 * has no floating-point unit: in about 30 instructions instead of 300.
 *
 *   htvm_times_even(x, scale, ...)    rint(x * scale)
 *   htvm_over_even(x, step, ...)      rint(x / step), ties to even as the one above
 *   htvm_over_away(x, step, ...)      the same, ties away from zero
 *
 * `factor` * 2^-31 is the mantissa of the scale or of 1 / step, between 1 and 2, and `exponent` 149 less
 * the power of two that it is multiplied by.  A product with it is next to the quotient or product of
 * float32; where that may be next to a tie, float32 arithmetic itself decides.  From 256 steps on a
 * result is one that any zero point of 8 bits saturates, and so is that of a NaN, as a positive one. */
#ifndef HTVM_FLOAT_QUANTIZE_H
#define HTVM_FLOAT_QUANTIZE_H

#include <stdint.h>
#include <string.h>

#if defined(__SOFTFP__) || (defined(__riscv) && !defined(__riscv_flen))
#define HTVM_FLOATS_IN_SOFTWARE
#endif

/* The bounds, written such that a NaN, for which all comparisons are false, goes to the upper one. */
static inline __attribute__((always_inline, unused)) float htvm_steps_inside(float steps)
{
    const float below = steps < 512.0f ? steps : 512.0f;
    return -512.0f < below ? below : -512.0f;
}

static inline __attribute__((always_inline, unused)) int32_t htvm_steps_even(float steps)
{
    /* Floats of this magnitude are integers: the sum is rounded to one, ties to even. */
    const float moved = htvm_steps_inside(steps) + 12000000.0f;
    return (int32_t)(moved - 12000000.0f);
}

static inline __attribute__((always_inline, unused)) int32_t htvm_steps_away(float steps)
{
    const float value = htvm_steps_inside(steps);
    const int32_t whole = (int32_t)value;
    const float rest = value - (float)whole;
    return whole + (rest >= 0.5f) - (rest <= -0.5f);
}

#ifdef HTVM_FLOATS_IN_SOFTWARE

#define HTVM_STEPS_UNKNOWN INT32_MIN

/* Returns the rounded product, or HTVM_STEPS_UNKNOWN next to a tie. */
static inline __attribute__((always_inline, unused)) int32_t htvm_steps_of(float x, uint32_t factor,
                                                                           int32_t exponent)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t mantissa = bits << 8 | 0x80000000u;
    const uint32_t steps = (uint32_t)((uint64_t)mantissa * factor >> 40); /* 2^22 to 2^24 */
    const int32_t drop = exponent - (int32_t)(bits >> 23 & 0xffu);
    uint32_t size;
    if (drop > 25) {
        return 0; /* below a quarter */
    }
    if (drop < 15) {
        size = 512u;
        bits = (bits & 0x7fffffffu) > 0x7f800000u ? 0u : bits; /* a NaN */
    } else {
        /* The product is at most one unit too small, and float32's rounding moves less than one. */
        const uint32_t raised = steps + (1u << (drop - 1));
        if (((raised + 3u) & ((1u << drop) - 1u)) < 7u) {
            return HTVM_STEPS_UNKNOWN;
        }
        size = raised >> drop;
    }
    return bits >> 31 != 0u ? -(int32_t)size : (int32_t)size;
}

static __attribute__((noinline, unused)) int32_t htvm_times_even_beside(float x, float scale)
{
    return htvm_steps_even(x * scale);
}

static __attribute__((noinline, unused)) int32_t htvm_over_even_beside(float x, float step)
{
    return htvm_steps_even(x / step);
}

static __attribute__((noinline, unused)) int32_t htvm_over_away_beside(float x, float step)
{
    return htvm_steps_away(x / step);
}

#define HTVM_STEPS(name)                                                                            \
    static inline __attribute__((always_inline, unused)) int32_t name(float x, float scale,         \
                                                                      uint32_t factor,              \
                                                                      int32_t exponent)             \
    {                                                                                               \
        const int32_t steps = htvm_steps_of(x, factor, exponent);                                   \
        return steps == HTVM_STEPS_UNKNOWN ? name##_beside(x, scale) : steps;                       \
    }

HTVM_STEPS(htvm_times_even)
HTVM_STEPS(htvm_over_even)
HTVM_STEPS(htvm_over_away)

#else

#define HTVM_STEPS(name, rounded, ratio)                                                            \
    static inline __attribute__((always_inline, unused)) int32_t name(float x, float scale,         \
                                                                      uint32_t factor,              \
                                                                      int32_t exponent)             \
    {                                                                                               \
        (void)factor;                                                                               \
        (void)exponent;                                                                             \
        return rounded(ratio);                                                                      \
    }

HTVM_STEPS(htvm_times_even, htvm_steps_even, x *scale)
HTVM_STEPS(htvm_over_even, htvm_steps_even, x / scale)
HTVM_STEPS(htvm_over_away, htvm_steps_away, x / scale)

#endif

#endif
