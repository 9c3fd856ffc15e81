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

/* Sum and sum of squares of a row; `start` says where to begin. */
typedef struct {
    int32_t sum;
    uint32_t squares;
} moments_t;

SNITCH_INLINE void gather(const uint8_t *in, moments_t *m, uint32_t lanes, bool is_unsigned)
{
    int32_t x[SNITCH_LANES], squares[SNITCH_LANES];
    for (uint32_t i = 0; i < lanes; i++) {
        x[i] = snitch_byte(in, i, is_unsigned);
    }
    for (uint32_t i = 0; i < lanes; i++) {
        squares[i] = x[i] * x[i];
    }
    for (uint32_t i = 0; i < lanes; i++) {
        m->sum += x[i];
        SNITCH_HOLD(m->sum);
    }
    for (uint32_t i = 0; i < lanes; i++) {
        m->squares += (uint32_t)squares[i];
        SNITCH_HOLD(m->squares);
    }
}

SNITCH_INLINE moments_t moments(const uint8_t *in, uint32_t n, uint32_t start, bool is_unsigned)
{
    moments_t m = {0, 0};
    SNITCH_TURNS(at, end, 0, start, n) {
        const uint8_t *x = in + at;
        uint32_t left = end - at;
        for (; left >= SNITCH_LANES; left -= SNITCH_LANES) {
            gather(x, &m, SNITCH_LANES, is_unsigned);
            x += SNITCH_LANES;
            SNITCH_HOLD(x);
        }
        for (; left != 0; left--) {
            gather(x++, &m, 1, is_unsigned);
        }
    }
    return m;
}

typedef struct {
    int32_t mean;
    uint32_t reciprocal, shift;
} scale_t;

SNITCH_INLINE void scale(const uint8_t *in, const int32_t *weight, const int32_t *bias, uint8_t *out,
                         scale_t s, uint32_t lanes, bool centred, bool is_unsigned)
{
    int32_t v[SNITCH_LANES], q[SNITCH_LANES];
    for (uint32_t i = 0; i < lanes; i++) {
        v[i] = snitch_byte(in, i, is_unsigned);
    }
    for (uint32_t i = 0; i < lanes; i++) {
        v[i] = (v[i] - s.mean) * weight[i];
    }
    snitch_hold_all(v, lanes);
    for (uint32_t i = 0; i < lanes; i++) {
        q[i] = (int32_t)((int64_t)v[i] * (int64_t)s.reciprocal >> 32);
    }
    for (uint32_t i = 0; i < lanes; i++) {
        v[i] = (int32_t)((uint32_t)v[i] >> 31) + (centred ? bias[i] : 0);
    }
    for (uint32_t i = 0; i < lanes; i++) {
        q[i] = (q[i] + v[i]) >> s.shift;
    }
    snitch_hold_all(q, lanes);
    for (uint32_t i = 0; i < lanes; i++) {
        out[i] = (uint8_t)snitch_clip(q[i], -128, 127);
    }
}

SNITCH_INLINE void scale_row(const snitch_norm_t *v, const uint8_t *in, uint8_t *out, scale_t s,
                             uint32_t start, bool centred, bool is_unsigned)
{
    const uint32_t n = v->n;
    SNITCH_TURNS(at, end, 0, start, n) {
        const int32_t *weight = v->weight + at, *bias = centred ? v->bias + at : weight;
        const uint8_t *x = in + at;
        uint8_t *y = out + at;
        uint32_t left = end - at;
        for (; left >= SNITCH_LANES; left -= SNITCH_LANES) {
            scale(x, weight, bias, y, s, SNITCH_LANES, centred, is_unsigned);
            x += SNITCH_LANES;
            y += SNITCH_LANES;
            weight += SNITCH_LANES;
            SNITCH_HOLD3(x, y, weight);
            if (centred) {
                bias += SNITCH_LANES;
                SNITCH_HOLD(bias);
            }
        }
        for (; left != 0; left--) {
            scale(x++, weight++, bias, y++, s, 1, centred, is_unsigned);
            bias += centred ? 1 : 0;
        }
    }
}

/* As long as it takes, for any weights. */
static void divide_row(const snitch_norm_t *v, const uint8_t *in, uint8_t *out, int32_t mean,
                       uint32_t root, bool centred)
{
    for (uint32_t i = 0; i < v->n; i++) {
        const int32_t x = snitch_byte(in, i, (v->flags & SNITCH_IN_UNSIGNED) != 0) - mean;
        int64_t value = wide_quotient(x, v->weight[i], root);
        value = (value + (centred ? v->bias[i] : 0)) >> v->shift;
        out[i] = (uint8_t)(value < -128 ? -128 : value > 127 ? 127 : (int32_t)value);
    }
}

SNITCH_INLINE void row_of(const snitch_norm_t *v, const uint8_t *in, uint8_t *out, uint32_t start,
                          bool centred, bool small, bool is_unsigned)
{
    const uint32_t n = v->n;
    const moments_t m = moments(in, n, start, is_unsigned);
    const int32_t mean = centred ? m.sum / (int32_t)n : 0;
    /* Of the distances from the mean; unsigned, as only the result surely fits. */
    const uint32_t excess = (uint32_t)mean * (2u * (uint32_t)m.sum - n * (uint32_t)mean);
    const uint32_t root = root_of((m.squares - excess) / n + 1);
    if (small && root > 1) {
        /* |x * weight| <= 255 * 2^15 and root < 2^8.  The factor exceeds 2^32 / root by between 1
         * and 2 * root - 1 parts in 2^32 * root, too little to reach the next integer; negative
         * quotients are rounded down, and never exact. */
        const scale_t s = {mean, UINT32_MAX / root + 2, v->shift};
        scale_row(v, in, out, s, start, centred, is_unsigned);
    } else {
        divide_row(v, in, out, mean, root, centred);
    }
}

SNITCH_INLINE void norm(const snitch_norm_t *v, uint32_t core, uint32_t cores, bool centred)
{
    const snitch_share_t rows = snitch_share(v->rows, core, cores);
    const uint32_t start = snitch_start(v->n, core, cores);
    const bool small = (v->flags & SNITCH_WIDE) == 0 && are_small(v->weight, v->n);
    for (uint32_t row = rows.begin; row < rows.end; row++) {
        const uint8_t *const in = (const uint8_t *)v->in + row * v->n;
        uint8_t *const out = (uint8_t *)v->out + row * v->n;
        if ((v->flags & SNITCH_IN_UNSIGNED) != 0) {
            row_of(v, in, out, start, centred, small, true);
        } else {
            row_of(v, in, out, start, centred, small, false);
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
