/* cluster_layer_norm and cluster_rms_norm.
 *
 * Up to 16 rows are computed at a time: first the statistics of each row, then all rows of four
 * columns after four others, whose weights and biases stay in registers. */
#include "cluster_parts.h"

/* Other clusters do not have the folder of these. */
#ifdef __riscv_xcvsimd
#include "htvm_simd.h"
#define HAS_DOTS HTVM_SIMD
#else
#define HAS_DOTS 0
#endif

enum { MOST_ROWS = 16 };

/* The mean of a row, and 2^(31 + shift) over its deviation. */
typedef struct {
    int32_t mean;
    uint32_t reciprocal, shift;
} scale_t;

/* floor(sqrt(value)), value below 2^16. */
static uint32_t root_of(uint32_t value)
{
    uint32_t root = 0;
#if defined(__GNUC__) /* and Clang */
#pragma GCC unroll 8
#endif
    for (uint32_t step = 0; step < 8; step++) {
        const uint32_t bit = 0x4000u >> 2u * step, trial = root + bit;
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

typedef struct {
    int32_t sum;
    uint32_t squares;
} moments_t;

#if !HAS_DOTS
CLUSTER_INLINE void gather(const uint8_t *in, moments_t *m, uint32_t lanes, bool centred,
                          bool is_unsigned)
{
    int32_t x[CLUSTER_LANES], squares[CLUSTER_LANES];
    for (uint32_t i = 0; i < lanes; i++) {
        x[i] = cluster_byte(in, i, is_unsigned);
    }
    for (uint32_t i = 0; i < lanes; i++) {
        squares[i] = x[i] * x[i];
    }
    for (uint32_t i = 0; centred && i < lanes; i++) {
        m->sum += x[i];
        CLUSTER_HOLD(m->sum);
    }
    for (uint32_t i = 0; i < lanes; i++) {
        m->squares += (uint32_t)squares[i];
        CLUSTER_HOLD(m->squares);
    }
}

CLUSTER_INLINE moments_t moments(const uint8_t *in, uint32_t n, uint32_t start, bool centred,
                                bool is_unsigned)
{
    moments_t m = {0, 0};
    CLUSTER_TURNS(at, end, 0, start, n) {
        const uint8_t *x = in + at;
        uint32_t left = end - at;
        for (; left >= 2 * CLUSTER_LANES; left -= 2 * CLUSTER_LANES) {
            gather(x, &m, CLUSTER_LANES, centred, is_unsigned);
            gather(x + CLUSTER_LANES, &m, CLUSTER_LANES, centred, is_unsigned);
            x += 2 * CLUSTER_LANES;
            CLUSTER_HOLD(x);
        }
        for (; left != 0; left--) {
            gather(x++, &m, 1, centred, is_unsigned);
        }
    }
    return m;
}

#else
/* The same with products of four bytes: those of unsigned elements less 128. */
CLUSTER_INLINE moments_t moments(const uint8_t *in, uint32_t n, uint32_t start, bool centred,
                                 bool is_unsigned)
{
    const bool summed = centred || is_unsigned;
    const uint32_t flip = is_unsigned ? 0x80808080u : 0, ones = 0x01010101u;
    int32_t sum = 0, squares = 0;
    CLUSTER_TURNS(at, end, 0, start, n) {
        const uint8_t *x = in + at;
        uint32_t left = end - at;
        for (; left >= 8; left -= 8, x += 8) {
            const uint32_t a = htvm_load4(x) ^ flip, b = htvm_load4(x + 4) ^ flip;
            sum = summed ? htvm_dot4(b, ones, htvm_dot4(a, ones, sum)) : 0;
            squares = htvm_dot4(b, b, htvm_dot4(a, a, squares));
        }
        for (; left != 0; left--, x++) {
            const int32_t value = (int8_t)(*x ^ (flip & 0x80u));
            sum += value;
            squares += value * value;
        }
    }
    moments_t m = {sum, (uint32_t)squares};
    if (is_unsigned) {
        m.squares += 256u * (uint32_t)sum + 128u * 128u * n;
        m.sum += (int32_t)(128u * n);
    }
    return m;
}
#endif

/* The mean of a row and its deviation, from 1 to 255. */
CLUSTER_INLINE uint32_t deviation(const uint8_t *in, uint32_t n, uint32_t start, int32_t *mean,
                                 bool centred, bool is_unsigned)
{
    const moments_t m = moments(in, n, start, centred, is_unsigned);
    *mean = centred ? m.sum / (int32_t)n : 0;
    /* Of the distances from the mean; unsigned, as only the result surely fits. */
    const uint32_t excess = (uint32_t)*mean * (2u * (uint32_t)m.sum - n * (uint32_t)*mean);
    return root_of((m.squares - excess) / n + 1);
}

/* What to multiply by instead of dividing by a deviation: too large by up to 255 parts in 2^31 *
 * deviation, which for a product of up to 255 * 2^15 is too little to reach the next integer.  For
 * weights of up to 2^22 it is longer by as many bits as the deviation has, and so always has 32. */
CLUSTER_INLINE void take_reciprocal(scale_t *scale, uint32_t by, bool is_long)
{
    const uint32_t whole = 0x80000000u / by;
    uint32_t shift = 0;
    scale->reciprocal = whole + 1u;
    if (is_long) { /* the bits of by - 1, of which there are up to 8 */
        const uint32_t most = by - 1u;
        shift = most >> 4 != 0 ? 4u : 0u;
        shift += most >> shift >> 2 != 0 ? 2u : 0u;
        shift += most >> shift >> 1 != 0 ? 1u : 0u;
        shift += most >> shift;
        /* The bits behind `whole`, divided without a division: exact, as the remainder is small. */
        const uint32_t rest = (0x80000000u - whole * by) << shift;
        const uint32_t bits = (uint32_t)((uint64_t)(2u * rest) * (whole + 1u) >> 32);
        scale->reciprocal = (whole << shift) + bits + 1u;
    }
    scale->shift = shift;
}

/* Some columns of all rows.  Negative quotients are rounded down, and never exact. */
CLUSTER_INLINE void strip(const cluster_norm_t *v, const uint8_t *in, uint8_t *out,
                         const scale_t *scales, uint32_t rows, uint32_t column, uint32_t lanes,
                         bool centred, bool is_unsigned, bool is_long)
{
    const uint32_t shift = v->shift, n = v->n;
    const scale_t *const end = scales + rows;
    int32_t low = -128, high = 127, weight[CLUSTER_LANES], bias[CLUSTER_LANES];
    CLUSTER_HOLD(low);
    CLUSTER_HOLD(high);
    for (uint32_t i = 0; i < lanes; i++) {
        weight[i] = 2 * v->weight[column + i];
        bias[i] = centred ? v->bias[column + i] : 0;
    }
    in += column;
    out += column;
    while (scales != end) {
        int32_t x[CLUSTER_LANES], q[CLUSTER_LANES];
        for (uint32_t i = 0; i < lanes; i++) {
            x[i] = cluster_byte(in, i, is_unsigned);
        }
        const int32_t mean = scales->mean;
        const uint32_t reciprocal = scales->reciprocal, more = is_long ? scales->shift : 0;
        for (uint32_t i = 0; i < lanes; i++) {
            x[i] -= centred ? mean : 0;
        }
        for (uint32_t i = 0; i < lanes; i++) {
            x[i] *= weight[i];
        }
        cluster_hold_all(x, lanes);
        for (uint32_t i = 0; i < lanes; i++) {
            q[i] = (int32_t)((int64_t)x[i] * (int64_t)reciprocal >> 32) >> more;
        }
        for (uint32_t i = 0; i < lanes; i++) {
            x[i] = (int32_t)((uint32_t)x[i] >> 31) + (centred ? bias[i] : 0);
        }
        for (uint32_t i = 0; i < lanes; i++) {
            q[i] = (q[i] + x[i]) >> shift;
        }
        cluster_hold_all(q, lanes);
        for (uint32_t i = 0; i < lanes; i++) {
            out[i] = (uint8_t)cluster_clip(q[i], low, high);
        }
        scales++;
        in += n;
        out += n;
        CLUSTER_HOLD3(scales, in, out);
    }
}

CLUSTER_INLINE void scale_rows(const cluster_norm_t *v, cluster_rows_t part, bool centred,
                              bool is_unsigned, bool is_long)
{
    const uint32_t n = v->n;
    scale_t scales[MOST_ROWS];
    for (uint32_t row = part.rows.begin; row < part.rows.end;) {
        const uint8_t *const in = (const uint8_t *)v->in + row * n;
        uint8_t *const out = (uint8_t *)v->out + row * n;
        const uint32_t left = part.rows.end - row, rows = left < MOST_ROWS ? left : MOST_ROWS;
        for (uint32_t i = 0; i < rows; i++) {
            const uint32_t by =
                deviation(in + i * n, n, part.start, &scales[i].mean, centred, is_unsigned);
            take_reciprocal(&scales[i], by, is_long);
        }
        CLUSTER_TURNS(at, end, part.columns.begin, part.start, part.columns.end) {
            for (; at + CLUSTER_LANES <= end; at += CLUSTER_LANES) {
                strip(v, in, out, scales, rows, at, CLUSTER_LANES, centred, is_unsigned, is_long);
            }
            for (; at < end; at++) {
                strip(v, in, out, scales, rows, at, 1, centred, is_unsigned, is_long);
            }
        }
        row += rows;
    }
}

/* The slow version, for any weights. */
static void divide_rows(const cluster_norm_t *v, cluster_rows_t part, bool centred)
{
    const bool is_unsigned = (v->flags & CLUSTER_IN_UNSIGNED) != 0;
    for (uint32_t row = part.rows.begin; row < part.rows.end; row++) {
        const uint8_t *const in = (const uint8_t *)v->in + row * v->n;
        uint8_t *const out = (uint8_t *)v->out + row * v->n;
        int32_t mean;
        const uint32_t root = deviation(in, v->n, part.start, &mean, centred, is_unsigned);
        for (uint32_t i = part.columns.begin; i < part.columns.end; i++) {
            const int32_t x = cluster_byte(in, i, is_unsigned) - mean;
            int64_t value = wide_quotient(x, v->weight[i], root);
            value = (value + (centred ? v->bias[i] : 0)) >> v->shift;
            out[i] = (uint8_t)(value < -128 ? -128 : value > 127 ? 127 : (int32_t)value);
        }
    }
}

CLUSTER_INLINE void norm(const cluster_norm_t *v, uint32_t core, uint32_t cores, bool centred)
{
    const cluster_rows_t part = cluster_share_rows(v->rows, v->n, core, cores);
    const bool is_unsigned = (v->flags & CLUSTER_IN_UNSIGNED) != 0;
    const bool is_long = (v->flags & CLUSTER_LONG) != 0;
    if ((v->flags & CLUSTER_WIDE) != 0) {
        divide_rows(v, part, centred);
    } else if (is_unsigned) {
        scale_rows(v, part, centred, true, is_long);
    } else if (is_long) {
        scale_rows(v, part, centred, false, true);
    } else {
        scale_rows(v, part, centred, false, false);
    }
}

void cluster_layer_norm(const void *args, uint32_t core, uint32_t cores)
{
    norm(args, core, cores, true);
}

void cluster_rms_norm(const void *args, uint32_t core, uint32_t cores)
{
    norm(args, core, cores, false);
}
