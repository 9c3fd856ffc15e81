/* cluster_ita_softmax. */
#include "cluster_parts.h"

/* Returns the distance of an element from the row's maximum, in halvings: R(m - x) =
 * (top - x) >> bits, with top = m + 2^(bits - 1), or m if bits is 0. */
typedef struct {
    int32_t top;
    uint32_t bits;
    bool any; /* may be 32 or more halvings */
} steps_t;

CLUSTER_INLINE uint32_t halved(uint32_t value, uint32_t by, bool any)
{
    return any && by > 31 ? 0 : value >> by;
}

/* Computes value >> R(m - x) of some elements. */
CLUSTER_INLINE void halve(const uint8_t *in, uint32_t *values, uint32_t value, steps_t s,
                         uint32_t lanes, bool is_unsigned)
{
    int32_t x[CLUSTER_LANES];
    for (uint32_t i = 0; i < lanes; i++) {
        x[i] = cluster_byte(in, i, is_unsigned);
    }
    for (uint32_t i = 0; i < lanes; i++) {
        values[i] = halved(value, (uint32_t)(s.top - x[i]) >> s.bits, s.any);
    }
}

CLUSTER_INLINE uint32_t sum_of(const uint8_t *in, uint32_t count, uint32_t sum, steps_t s,
                              bool is_unsigned)
{
    uint32_t values[CLUSTER_LANES];
    for (; count >= CLUSTER_LANES; count -= CLUSTER_LANES) {
        halve(in, values, 256, s, CLUSTER_LANES, is_unsigned);
        for (uint32_t i = 0; i < CLUSTER_LANES; i++) {
            sum += values[i];
        }
        in += CLUSTER_LANES;
        CLUSTER_HOLD(in);
        CLUSTER_HOLD(sum);
    }
    for (uint32_t i = 0; i < count; i++) {
        halve(in + i, values, 256, s, 1, is_unsigned);
        sum += values[0];
    }
    return sum;
}

CLUSTER_INLINE void normalize(const uint8_t *in, uint8_t *out, uint32_t count, uint32_t inverse,
                             steps_t s, bool is_unsigned)
{
    uint32_t values[CLUSTER_LANES];
    for (; count >= CLUSTER_LANES; count -= CLUSTER_LANES) {
        halve(in, values, inverse, s, CLUSTER_LANES, is_unsigned);
        for (uint32_t i = 0; i < CLUSTER_LANES; i++) {
            out[i] = (uint8_t)values[i];
        }
        in += CLUSTER_LANES;
        out += CLUSTER_LANES;
        CLUSTER_HOLD(in);
        CLUSTER_HOLD(out);
    }
    for (uint32_t i = 0; i < count; i++) {
        halve(in + i, values, inverse, s, 1, is_unsigned);
        out[i] = (uint8_t)values[0];
    }
}

CLUSTER_INLINE void row_of(const cluster_ita_softmax_t *v, const uint8_t *in, uint8_t *out,
                          const cluster_rows_t *part, bool is_unsigned, bool any)
{
    const uint32_t n = v->n, bits = v->step_bits, width = v->group != 0 ? v->group : n;
    const int32_t half = bits != 0 ? 1 << (bits - 1) : 0;
    int32_t largest = -128;
    uint32_t sum = 0;
    for (uint32_t at = 0; at < n;) { /* in order, because sums are truncated */
        const uint32_t count = n - at < width ? n - at : width;
        const int32_t now = cluster_maximum(in + at, count, largest, is_unsigned);
        const steps_t s = {now + half, bits, any};
        sum = halved(sum, (uint32_t)(s.top - largest) >> bits, true);
        sum = sum_of(in + at, count, sum, s, is_unsigned);
        largest = now;
        at += count;
    }
    const steps_t s = {largest + half, bits, any};
    const uint32_t inverse = v->numerator / sum;
    CLUSTER_TURNS(at, end, part->columns.begin, part->start, part->columns.end) {
        normalize(in + at, out + at, end - at, inverse, s, is_unsigned);
    }
}

void cluster_ita_softmax(const void *args, uint32_t core, uint32_t cores)
{
    const cluster_ita_softmax_t *const v = args;
    const cluster_rows_t part = cluster_share_rows(v->rows, v->n, core, cores);
    const bool is_unsigned = (v->flags & CLUSTER_IN_UNSIGNED) != 0;
    const bool any = v->step_bits < 4; /* (255 + 8) >> 4 is 16, (255 + 4) >> 3 is 32 */
    for (uint32_t row = part.rows.begin; row < part.rows.end; row++) {
        const uint8_t *const in = (const uint8_t *)v->in + row * v->n;
        uint8_t *const out = (uint8_t *)v->out + row * v->n;
        if (is_unsigned) {
            row_of(v, in, out, &part, true, true);
        } else if (any) {
            row_of(v, in, out, &part, false, true);
        } else {
            row_of(v, in, out, &part, false, false);
        }
    }
}
