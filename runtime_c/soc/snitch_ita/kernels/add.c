/* snitch_add. */
#include "snitch_parts.h"

SNITCH_INLINE void store(uint8_t *out, int32_t *sums, const snitch_requant_t *r, uint32_t lanes)
{
    const int32_t mul = r->mul, add = r->add, low = r->low, high = r->high;
    const uint32_t shift = r->shift;
    for (uint32_t i = 0; i < lanes; i++) {
        sums[i] *= mul;
    }
    for (uint32_t i = 0; i < lanes; i++) {
        sums[i] = (sums[i] + add) >> shift;
    }
    snitch_hold_all(sums, lanes);
    for (uint32_t i = 0; i < lanes; i++) {
        out[i] = (uint8_t)snitch_clip(sums[i], low, high);
    }
}

/* Adds `count` operands, each given by a pointer. */
SNITCH_INLINE void sum_of(const uint8_t *const *x, uint32_t count, uint8_t *out,
                          const snitch_requant_t *r, uint32_t lanes, bool is_unsigned)
{
    int32_t sums[SNITCH_LANES] = {0};
    for (uint32_t n = 0; n < count; n++) {
        for (uint32_t i = 0; i < lanes; i++) {
            sums[i] += snitch_byte(x[n], i, is_unsigned);
        }
    }
    store(out, sums, r, lanes);
}

/* Adds two, three or four operands. */
SNITCH_INLINE void add_few(const snitch_add_t *a, uint32_t at, uint32_t end, uint32_t count,
                           bool is_unsigned)
{
    const snitch_requant_t r = a->requant; /* a copy: stored bytes may alias *a */
    const uint8_t *x[4];
    for (uint32_t n = 0; n < count; n++) {
        x[n] = (const uint8_t *)a->in[n] + at;
    }
    uint8_t *out = (uint8_t *)a->out + at;
    uint32_t left = end - at;
    for (; left >= SNITCH_LANES; left -= SNITCH_LANES) {
        sum_of(x, count, out, &r, SNITCH_LANES, is_unsigned);
        for (uint32_t n = 0; n < count; n++) {
            x[n] += SNITCH_LANES;
            SNITCH_HOLD(x[n]);
        }
        out += SNITCH_LANES;
        SNITCH_HOLD(out);
    }
    for (; left != 0; left--) {
        sum_of(x, count, out, &r, 1, is_unsigned);
        for (uint32_t n = 0; n < count; n++) {
            x[n]++;
        }
        out++;
    }
}

SNITCH_INLINE void several(const snitch_add_t *a, uint32_t at, const snitch_requant_t *r,
                           uint32_t lanes, bool is_unsigned)
{
    int32_t sums[SNITCH_LANES] = {0};
    const void *const *from = a->in, *const *const end = from + a->operands;
    while (from != end) {
        const uint8_t *const in = (const uint8_t *)*from++ + at;
        int32_t x[SNITCH_LANES];
        SNITCH_HOLD(from);
        for (uint32_t i = 0; i < lanes; i++) {
            x[i] = snitch_byte(in, i, is_unsigned);
        }
        snitch_hold_all(x, lanes);
        for (uint32_t i = 0; i < lanes; i++) {
            sums[i] += x[i];
        }
    }
    store((uint8_t *)a->out + at, sums, r, lanes);
}

SNITCH_INLINE void add_several(const snitch_add_t *a, uint32_t at, uint32_t end, bool is_unsigned)
{
    const snitch_requant_t r = a->requant;
    for (; at + SNITCH_LANES <= end; at += SNITCH_LANES) {
        several(a, at, &r, SNITCH_LANES, is_unsigned);
    }
    for (; at < end; at++) {
        several(a, at, &r, 1, is_unsigned);
    }
}

static void add_wide(const snitch_add_t *a, uint32_t at, uint32_t end)
{
    const snitch_requant_t *const r = &a->requant;
    for (; at < end; at++) {
        int32_t sum = 0;
        for (uint32_t n = 0; n < a->operands; n++) {
            sum += snitch_byte(a->in[n], at, (a->flags & SNITCH_IN_UNSIGNED) != 0);
        }
        ((uint8_t *)a->out)[at] =
            (uint8_t)snitch_requantize(sum, r->mul, r->add, r->shift, r->low, r->high, true);
    }
}

void snitch_add(const void *args, uint32_t core, uint32_t cores)
{
    const snitch_add_t *const a = args;
    const snitch_share_t part = snitch_share(a->elements, core, cores);
    const uint32_t start = part.begin + snitch_skew(part, core, cores);
    const bool is_unsigned = (a->flags & SNITCH_IN_UNSIGNED) != 0;
    SNITCH_TURNS(at, end, part.begin, start, part.end) {
        if ((a->flags & SNITCH_WIDE) != 0) {
            add_wide(a, at, end);
        } else if (a->operands == 2 && is_unsigned) {
            add_few(a, at, end, 2, true);
        } else if (a->operands == 2) {
            add_few(a, at, end, 2, false);
        } else if (a->operands == 3 && !is_unsigned) {
            add_few(a, at, end, 3, false);
        } else if (a->operands == 4 && !is_unsigned) {
            add_few(a, at, end, 4, false);
        } else if (is_unsigned) {
            add_several(a, at, end, true);
        } else {
            add_several(a, at, end, false);
        }
    }
}
