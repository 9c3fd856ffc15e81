/* snitch_ita_softmax. */
#include "snitch_parts.h"

/* value >> R(distance); distances are below 512. */
SNITCH_INLINE uint32_t halved(uint32_t value, int32_t distance, uint32_t half, uint32_t step_bits)
{
    const uint32_t by = ((uint32_t)distance + half) >> step_bits;
    return by < 32 ? value >> by : 0;
}

SNITCH_INLINE void row_of(const snitch_ita_softmax_t *s, const uint8_t *in, uint8_t *out,
                          bool is_unsigned)
{
    const uint32_t bits = s->step_bits, half = bits != 0 ? 1u << (bits - 1) : 0;
    const uint32_t width = s->group != 0 ? s->group : s->n;
    int32_t largest = -128;
    uint32_t sum = 0;
    for (uint32_t start = 0; start < s->n;) {
        const uint32_t end = s->n - start < width ? s->n : start + width;
        int32_t now = largest;
        for (uint32_t i = start; i < end; i++) {
            const int32_t x = snitch_byte(in, i, is_unsigned);
            now = x > now ? x : now;
        }
        sum = halved(sum, now - largest, half, bits);
        for (uint32_t i = start; i < end; i++) {
            sum += halved(256, now - snitch_byte(in, i, is_unsigned), half, bits);
        }
        largest = now;
        start = end;
    }
    const uint32_t inverse = s->numerator / sum;
    for (uint32_t i = 0; i < s->n; i++) {
        out[i] = (uint8_t)halved(inverse, largest - snitch_byte(in, i, is_unsigned), half, bits);
    }
}

void snitch_ita_softmax(const void *args, uint32_t core, uint32_t cores)
{
    const snitch_ita_softmax_t *const s = args;
    const snitch_share_t rows = snitch_share(s->rows, core, cores);
    for (uint32_t row = rows.begin; row < rows.end; row++) {
        const uint8_t *const in = (const uint8_t *)s->in + row * s->n;
        uint8_t *const out = (uint8_t *)s->out + row * s->n;
        if ((s->flags & SNITCH_IN_UNSIGNED) != 0) {
            row_of(s, in, out, true);
        } else {
            row_of(s, in, out, false);
        }
    }
}
