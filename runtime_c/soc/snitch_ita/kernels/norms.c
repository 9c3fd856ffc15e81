/* snitch_layer_norm and snitch_rms_norm. */
#include "snitch_parts.h"

/* floor(sqrt(value)), value below 2^18. */
static uint32_t root_of(uint32_t value)
{
    uint32_t root = 0;
    for (uint32_t bit = 1u << 16; bit != 0; bit >>= 2) {
        const uint32_t trial = root + bit;
        root >>= 1;
        if (value >= trial) {
            value -= trial;
            root += bit;
        }
    }
    return root;
}

/* x * weight / by, rounded toward zero, for x below 2^9 and by below 2^16. */
static int64_t wide_quotient(int32_t x, int32_t weight, uint32_t by)
{
    const int64_t product = (int64_t)x * weight;
    const uint64_t size = product < 0 ? 0u - (uint64_t)product : (uint64_t)product;
    const uint32_t high = (uint32_t)(size >> 16), low = (uint32_t)size & 0xFFFFu;
    const uint32_t first = high / by, rest = high - first * by;
    const uint64_t result = ((uint64_t)first << 16) + ((rest << 16) | low) / by;
    return product < 0 ? -(int64_t)result : (int64_t)result;
}

/* Whether all weights fit 16 bits, so that quotients can be taken by multiplication. */
static bool are_small(const int32_t *weight, uint32_t n)
{
    uint32_t high = 0;
    for (uint32_t i = 0; i < n; i++) {
        high |= (uint32_t)weight[i] + 0x8000u;
    }
    return high >> 16 == 0;
}

SNITCH_INLINE void row_of(const snitch_norm_t *v, const uint8_t *in, uint8_t *out, bool centred,
                          bool small, bool is_unsigned)
{
    const uint32_t n = v->n, shift = v->shift;
    const int32_t *const weight = v->weight, *const bias = v->bias;
    int32_t sum = 0;
    uint32_t squares = 0;
    for (uint32_t i = 0; i < n; i++) {
        const int32_t x = snitch_byte(in, i, is_unsigned);
        sum += x;
        squares += (uint32_t)(x * x);
    }
    const int32_t mean = centred ? sum / (int32_t)n : 0;
    if (centred) { /* sum of (x - mean)^2 */
        squares += (uint32_t)mean * (n * (uint32_t)mean - 2u * (uint32_t)sum);
    }
    const uint32_t root = root_of(squares / n + 1);
    if (small && root > 1) {
        /* |x * weight| <= 255 * 2^15 and root < 2^8.  The factor exceeds 2^32 / root by between 1
         * and 2 * root - 1 parts in 2^32 * root, too little to reach the next integer; negative
         * quotients are rounded down, and never exact. */
        const uint32_t reciprocal = UINT32_MAX / root + 2;
        for (uint32_t i = 0; i < n; i++) {
            const int32_t product = (snitch_byte(in, i, is_unsigned) - mean) * weight[i];
            int32_t value = (int32_t)((int64_t)product * (int64_t)reciprocal >> 32);
            value += (int32_t)((uint32_t)product >> 31);
            value += centred ? bias[i] : 0;
            out[i] = (uint8_t)snitch_clip(value >> shift, -128, 127);
        }
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        const int32_t x = snitch_byte(in, i, is_unsigned) - mean;
        int64_t value = wide_quotient(x, weight[i], root);
        value = (value + (centred ? bias[i] : 0)) >> shift;
        out[i] = (uint8_t)(value < -128 ? -128 : value > 127 ? 127 : (int32_t)value);
    }
}

SNITCH_INLINE void norm(const snitch_norm_t *v, uint32_t core, uint32_t cores, bool centred)
{
    const snitch_share_t rows = snitch_share(v->rows, core, cores);
    const bool small = (v->flags & SNITCH_WIDE) == 0 && are_small(v->weight, v->n);
    for (uint32_t row = rows.begin; row < rows.end; row++) {
        const uint8_t *const in = (const uint8_t *)v->in + row * v->n;
        uint8_t *const out = (uint8_t *)v->out + row * v->n;
        if ((v->flags & SNITCH_IN_UNSIGNED) != 0) {
            row_of(v, in, out, centred, small, true);
        } else {
            row_of(v, in, out, centred, small, false);
        }
    }
}

void snitch_layer_norm(const void *args, uint32_t core, uint32_t cores)
{
    norm(args, core, cores, true);
}

void snitch_rms_norm(const void *args, uint32_t core, uint32_t cores)
{
    norm(args, core, cores, false);
}
