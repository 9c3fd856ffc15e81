/* cluster_combine. */
#include "cluster_parts.h"

/* What is known when a loop is specialised. */
typedef struct {
    bool multiplies, tables[2];
} cluster_combination_t;

CLUSTER_INLINE void combine(const cluster_combine_t *v, uint32_t at, uint32_t lanes,
                            cluster_combination_t kind)
{
    const cluster_requant_t *const r = &v->requant;
    int32_t values[2][CLUSTER_LANES];
    for (uint32_t n = 0; n < 2u; n++) {
        for (uint32_t i = 0; i < lanes; i++) {
            const int8_t x = v->in[n][at + i];
            values[n][i] = kind.tables[n] ? (uint8_t)x : x;
        }
        if (kind.tables[n]) {
            for (uint32_t i = 0; i < lanes; i++) {
                values[n][i] = v->tables[n][values[n][i]];
            }
        }
        cluster_hold_all(values[n], lanes);
    }
    for (uint32_t i = 0; i < lanes; i++) {
        const int32_t a = values[0][i], b = values[1][i];
        const int32_t value = kind.multiplies ? a * b : a + b;
        v->out[at + i] =
            (int8_t)cluster_requantize(value, r->mul, r->add, r->shift, r->low, r->high, false);
    }
}

CLUSTER_INLINE void combine_all(const cluster_combine_t *args, cluster_share_t part,
                                cluster_combination_t kind)
{
    const cluster_combine_t v = *args; /* so that results cannot change it */
    uint32_t at = part.begin;
    for (; at + CLUSTER_LANES <= part.end; at += CLUSTER_LANES) {
        combine(&v, at, CLUSTER_LANES, kind);
    }
    for (; at < part.end; at++) {
        combine(&v, at, 1, kind);
    }
}

CLUSTER_INLINE void combine_as(const cluster_combine_t *v, cluster_share_t part, bool multiplies)
{
    const bool first = v->tables[0] != NULL, second = v->tables[1] != NULL;
    if (first && second) {
        combine_all(v, part, (cluster_combination_t){multiplies, {true, true}});
    } else if (first) {
        combine_all(v, part, (cluster_combination_t){multiplies, {true, false}});
    } else if (second) {
        combine_all(v, part, (cluster_combination_t){multiplies, {false, true}});
    } else {
        combine_all(v, part, (cluster_combination_t){multiplies, {false, false}});
    }
}

void cluster_combine(const void *args, uint32_t core, uint32_t cores)
{
    const cluster_combine_t *const v = args;
    const cluster_share_t part = cluster_share(v->elements, core, cores);
    if ((v->flags & CLUSTER_MULTIPLY) != 0) {
        combine_as(v, part, true);
    } else {
        combine_as(v, part, false);
    }
}
