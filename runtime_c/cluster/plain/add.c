/* cluster_add. */
#include "cluster_parts.h"

CLUSTER_INLINE void store(uint8_t *out, int32_t *sums, const cluster_requant_t *r, uint32_t lanes)
{
    const int32_t mul = r->mul, add = r->add, low = r->low, high = r->high;
    const uint32_t shift = r->shift;
    for (uint32_t i = 0; i < lanes; i++) {
        sums[i] *= mul;
    }
    for (uint32_t i = 0; i < lanes; i++) {
        sums[i] = (sums[i] + add) >> shift;
    }
    cluster_hold_all(sums, lanes);
    for (uint32_t i = 0; i < lanes; i++) {
        out[i] = (uint8_t)cluster_clip(sums[i], low, high);
    }
}

/* Adds `count` operands, each given by a pointer. */
CLUSTER_INLINE void sum_of(const uint8_t *const *x, uint32_t count, uint8_t *out,
                          const cluster_requant_t *r, uint32_t lanes, bool is_unsigned)
{
    int32_t sums[CLUSTER_LANES] = {0};
    for (uint32_t n = 0; n < count; n++) {
        for (uint32_t i = 0; i < lanes; i++) {
            sums[i] += cluster_byte(x[n], i, is_unsigned);
        }
    }
    store(out, sums, r, lanes);
}

/* Adds two, three or four operands. */
CLUSTER_INLINE void add_few(const cluster_add_t *a, uint32_t at, uint32_t end, uint32_t count,
                           bool is_unsigned)
{
    const cluster_requant_t r = a->requant; /* a copy: stored bytes may alias *a */
    const uint8_t *x[4];
    for (uint32_t n = 0; n < count; n++) {
        x[n] = (const uint8_t *)a->in[n] + at;
    }
    uint8_t *out = (uint8_t *)a->out + at;
    uint32_t left = end - at;
    for (; left >= CLUSTER_LANES; left -= CLUSTER_LANES) {
        sum_of(x, count, out, &r, CLUSTER_LANES, is_unsigned);
        for (uint32_t n = 0; n < count; n++) {
            x[n] += CLUSTER_LANES;
            CLUSTER_HOLD(x[n]);
        }
        out += CLUSTER_LANES;
        CLUSTER_HOLD(out);
    }
    for (; left != 0; left--) {
        sum_of(x, count, out, &r, 1, is_unsigned);
        for (uint32_t n = 0; n < count; n++) {
            x[n]++;
        }
        out++;
    }
}

CLUSTER_INLINE void several(const cluster_add_t *a, uint32_t at, const cluster_requant_t *r,
                           uint32_t lanes, bool is_unsigned)
{
    int32_t sums[CLUSTER_LANES] = {0};
    const void *const *from = a->in, *const *const end = from + a->operands;
    while (from != end) {
        const uint8_t *const in = (const uint8_t *)*from++ + at;
        int32_t x[CLUSTER_LANES];
        CLUSTER_HOLD(from);
        for (uint32_t i = 0; i < lanes; i++) {
            x[i] = cluster_byte(in, i, is_unsigned);
        }
        cluster_hold_all(x, lanes);
        for (uint32_t i = 0; i < lanes; i++) {
            sums[i] += x[i];
        }
    }
    store((uint8_t *)a->out + at, sums, r, lanes);
}

CLUSTER_INLINE void add_several(const cluster_add_t *a, uint32_t at, uint32_t end, bool is_unsigned)
{
    const cluster_requant_t r = a->requant;
    for (; at + CLUSTER_LANES <= end; at += CLUSTER_LANES) {
        several(a, at, &r, CLUSTER_LANES, is_unsigned);
    }
    for (; at < end; at++) {
        several(a, at, &r, 1, is_unsigned);
    }
}

static void add_wide(const cluster_add_t *a, uint32_t at, uint32_t end)
{
    const cluster_requant_t *const r = &a->requant;
    for (; at < end; at++) {
        int32_t sum = 0;
        for (uint32_t n = 0; n < a->operands; n++) {
            sum += cluster_byte(a->in[n], at, (a->flags & CLUSTER_IN_UNSIGNED) != 0);
        }
        ((uint8_t *)a->out)[at] =
            (uint8_t)cluster_requantize(sum, r->mul, r->add, r->shift, r->low, r->high, true);
    }
}

void cluster_add(const void *args, uint32_t core, uint32_t cores)
{
    const cluster_add_t *const a = args;
    const cluster_share_t part = cluster_share(a->elements, core, cores);
    const uint32_t start = part.begin + cluster_skew(part, core, cores);
    const bool is_unsigned = (a->flags & CLUSTER_IN_UNSIGNED) != 0;
    CLUSTER_TURNS(at, end, part.begin, start, part.end) {
        if ((a->flags & CLUSTER_WIDE) != 0) {
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
