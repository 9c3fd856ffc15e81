/* snitch_table_softmax. */
#include "snitch_parts.h"

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

SNITCH_INLINE void row_of(const uint8_t *in, uint8_t *out, const uint32_t *exponentials, uint32_t n,
                          uint32_t highest, bool is_unsigned)
{
    int32_t largest = snitch_byte(in, 0, is_unsigned);
    for (uint32_t i = 1; i < n; i++) {
        const int32_t x = snitch_byte(in, i, is_unsigned);
        largest = x > largest ? x : largest;
    }
    uint32_t sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        sum += exponentials[largest - snitch_byte(in, i, is_unsigned)];
    }
    if (sum > UINT32_MAX / 256u) {
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t e = exponentials[largest - snitch_byte(in, i, is_unsigned)];
            out[i] = (uint8_t)quotient(e, highest, sum);
        }
        return;
    }
    /* The product with the reciprocal, rounded down, is too small by at most 2. */
    const uint32_t reciprocal = UINT32_MAX / sum;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t e = exponentials[largest - snitch_byte(in, i, is_unsigned)] * highest;
        uint32_t result = (uint32_t)((uint64_t)e * reciprocal >> 32);
        uint32_t left = e - result * sum;
        while (left >= sum) {
            left -= sum;
            result++;
        }
        out[i] = (uint8_t)result;
    }
}

void snitch_table_softmax(const void *args, uint32_t core, uint32_t cores)
{
    const snitch_table_softmax_t *const s = args;
    const snitch_share_t rows = snitch_share(s->rows, core, cores);
    for (uint32_t row = rows.begin; row < rows.end; row++) {
        const uint8_t *const in = (const uint8_t *)s->in + row * s->n;
        uint8_t *const out = (uint8_t *)s->out + row * s->n;
        if ((s->flags & SNITCH_IN_UNSIGNED) != 0) {
            row_of(in, out, s->exponentials, s->n, s->levels - 1, true);
        } else {
            row_of(in, out, s->exponentials, s->n, s->levels - 1, false);
        }
    }
}
