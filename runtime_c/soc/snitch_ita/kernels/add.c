/* snitch_add. */
#include "snitch_parts.h"

SNITCH_INLINE void add_two(const snitch_add_t *a, snitch_share_t part, bool is_unsigned, bool wide)
{
    const snitch_requant_t *const r = &a->requant;
    const int32_t mul = r->mul, add = r->add, low = r->low, high = r->high;
    const uint32_t shift = r->shift;
    const uint8_t *x = (const uint8_t *)a->in[0] + part.begin;
    const uint8_t *y = (const uint8_t *)a->in[1] + part.begin;
    uint8_t *out = (uint8_t *)a->out + part.begin;
    const uint8_t *const end = x + (part.end - part.begin);
    for (; x != end; x++, y++, out++) {
        const int32_t sum = snitch_byte(x, 0, is_unsigned) + snitch_byte(y, 0, is_unsigned);
        *out = (uint8_t)snitch_requantize(sum, mul, add, shift, low, high, wide);
    }
}

SNITCH_INLINE void add_all(const snitch_add_t *a, snitch_share_t part, bool is_unsigned)
{
    const snitch_requant_t *const r = &a->requant;
    for (uint32_t i = part.begin; i < part.end; i++) {
        int32_t sum = 0;
        for (uint32_t n = 0; n < a->operands; n++) {
            sum += snitch_byte(a->in[n], i, is_unsigned);
        }
        ((uint8_t *)a->out)[i] = (uint8_t)snitch_requantize(
            sum, r->mul, r->add, r->shift, r->low, r->high, (a->flags & SNITCH_WIDE) != 0);
    }
}

void snitch_add(const void *args, uint32_t core, uint32_t cores)
{
    const snitch_add_t *const a = args;
    const snitch_share_t part = snitch_share(a->elements, core, cores);
    const bool is_unsigned = (a->flags & SNITCH_IN_UNSIGNED) != 0;
    if (a->operands == 2 && (a->flags & SNITCH_WIDE) == 0) {
        if (is_unsigned) {
            add_two(a, part, true, false);
        } else {
            add_two(a, part, false, false);
        }
    } else if (is_unsigned) {
        add_all(a, part, true);
    } else {
        add_all(a, part, false);
    }
}
