/* cluster_table_softmax. */
#include "cluster_parts.h"

/* e * highest / sum, rounded down, for any e up to sum: an estimate from the leading bits, which is
 * then corrected. */
static uint32_t quotient(uint32_t e, uint32_t highest, uint32_t sum)
{
    uint32_t lost = 0;
    while ((sum >> lost) >> 24 != 0) {
        lost++;
    }
    const uint64_t product = (uint64_t)e * highest;
    uint32_t result = (e >> lost) * highest / (sum >> lost);
    while ((uint64_t)result * sum > product) {
        result--;
    }
    while ((uint64_t)(result + 1) * sum <= product) {
        result++;
    }
    return result;
}

/* Looks up the exponentials of some elements; `top` is that of element 0. */
CLUSTER_INLINE void look_up(const uint8_t *in, uint32_t *values, const uint32_t *top, uint32_t lanes,
                           bool is_unsigned)
{
    int32_t x[CLUSTER_LANES];
    for (uint32_t i = 0; i < lanes; i++) {
        x[i] = cluster_byte(in, i, is_unsigned);
    }
    for (uint32_t i = 0; i < lanes; i++) {
        values[i] = *(top - x[i]);
    }
}

CLUSTER_INLINE uint32_t sum_of(const uint8_t *in, uint32_t count, const uint32_t *top,
                              bool is_unsigned)
{
    uint32_t sum = 0, values[CLUSTER_LANES];
    for (; count >= CLUSTER_LANES; count -= CLUSTER_LANES) {
        look_up(in, values, top, CLUSTER_LANES, is_unsigned);
        for (uint32_t i = 0; i < CLUSTER_LANES; i++) {
            sum += values[i];
        }
        in += CLUSTER_LANES;
        CLUSTER_HOLD(in);
        CLUSTER_HOLD(sum);
    }
    for (uint32_t i = 0; i < count; i++) {
        sum += *(top - cluster_byte(in, i, is_unsigned));
    }
    return sum;
}

/* For products that fit 32 bits.  The product with the reciprocal, rounded down, is at most 2 too
 * small. */
CLUSTER_INLINE void share(uint8_t *out, uint32_t *values, uint32_t highest, uint32_t sum,
                         uint32_t reciprocal, uint32_t lanes)
{
    uint32_t results[CLUSTER_LANES];
    for (uint32_t i = 0; i < lanes; i++) {
        values[i] *= highest;
    }
    for (uint32_t i = 0; i < lanes; i++) {
        results[i] = (uint32_t)((uint64_t)values[i] * reciprocal >> 32);
    }
    for (uint32_t i = 0; i < lanes; i++) {
        values[i] -= results[i] * sum;
    }
    for (uint32_t i = 0; i < lanes; i++) {
        CLUSTER_HOLD(values[i]);
    }
    for (uint32_t i = 0; i < lanes; i++) {
        while (CLUSTER_RARELY(values[i] >= sum)) {
            values[i] -= sum;
            results[i]++;
        }
        out[i] = (uint8_t)results[i];
    }
}

CLUSTER_INLINE void normalize(const uint8_t *in, uint8_t *out, uint32_t count, const uint32_t *top,
                             uint32_t highest, uint32_t sum, bool is_unsigned)
{
    const uint32_t reciprocal = UINT32_MAX / sum;
    uint32_t values[CLUSTER_LANES];
    for (; count >= CLUSTER_LANES; count -= CLUSTER_LANES) {
        look_up(in, values, top, CLUSTER_LANES, is_unsigned);
        share(out, values, highest, sum, reciprocal, CLUSTER_LANES);
        in += CLUSTER_LANES;
        out += CLUSTER_LANES;
        CLUSTER_HOLD(in);
        CLUSTER_HOLD(out);
    }
    for (; count != 0; count--) {
        look_up(in++, values, top, 1, is_unsigned);
        share(out++, values, highest, sum, reciprocal, 1);
    }
}

CLUSTER_INLINE void row_of(const cluster_table_softmax_t *v, const uint8_t *in, uint8_t *out,
                          const cluster_rows_t *part, bool is_unsigned)
{
    const uint32_t n = v->n, highest = v->levels - 1;
    int32_t largest = is_unsigned ? 0 : -128;
    CLUSTER_TURNS(at, end, 0, part->start, n) {
        largest = cluster_maximum(in + at, end - at, largest, is_unsigned);
    }
    const uint32_t *const top = v->exponentials + largest;
    uint32_t sum = 0;
    CLUSTER_TURNS(at, end, 0, part->start, n) {
        sum += sum_of(in + at, end - at, top, is_unsigned);
    }
    if (sum > UINT32_MAX / 256u) {
        for (uint32_t i = part->columns.begin; i < part->columns.end; i++) {
            out[i] = (uint8_t)quotient(*(top - cluster_byte(in, i, is_unsigned)), highest, sum);
        }
        return;
    }
    CLUSTER_TURNS(at, end, part->columns.begin, part->start, part->columns.end) {
        normalize(in + at, out + at, end - at, top, highest, sum, is_unsigned);
    }
}

void cluster_table_softmax(const void *args, uint32_t core, uint32_t cores)
{
    const cluster_table_softmax_t *const v = args;
    const cluster_rows_t part = cluster_share_rows(v->rows, v->n, core, cores);
    for (uint32_t row = part.rows.begin; row < part.rows.end; row++) {
        const uint8_t *const in = (const uint8_t *)v->in + row * v->n;
        uint8_t *const out = (uint8_t *)v->out + row * v->n;
        if ((v->flags & CLUSTER_IN_UNSIGNED) != 0) {
            row_of(v, in, out, &part, true);
        } else {
            row_of(v, in, out, &part, false);
        }
    }
}
