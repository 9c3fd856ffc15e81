/* cluster_attention for cores with SIMD: heads and queries are shared among the cores. */
#include "htvm_attention.h"

#include <stdbool.h>
#include <stddef.h>

#include "cluster_kernels.h"
#include "cluster_records.h"
#include "htvm_scale.h"
#include "htvm_simd.h"

/* With this many positions or fewer, weights are computed one by one, else for each distance from the
 * largest score. */
#define FEW 96u

/* Sums of this many products of bytes fit 32 bits; with more, they are scaled in 64 bits. */
#define MOST_NARROW 0x8000u

/* How exponentials become weights. */
typedef struct {
    const uint32_t *top; /* exponential of score 0 */
    const int8_t *after;
    uint32_t highest, sum, reciprocal;
} weights_t;

/* Weights of a few positions together, so that no load or product stalls. */
HTVM_INLINE void weights_of(const weights_t *v, int8_t *scores, uint32_t lanes)
{
    uint32_t products[4], shares[4];
    for (uint32_t i = 0; i < lanes; i++) {
        products[i] = *(v->top - scores[i]);
    }
    for (uint32_t i = 0; i < lanes; i++) {
        products[i] *= v->highest;
    }
    /* Rounded down, they are at most 2 too small. */
    for (uint32_t i = 0; i < lanes; i++) {
        shares[i] = (uint32_t)((uint64_t)products[i] * v->reciprocal >> 32);
    }
    for (uint32_t i = 0; i < lanes; i++) {
        products[i] -= shares[i] * v->sum;
    }
    for (uint32_t i = 0; i < lanes; i++) {
        while (__builtin_expect(products[i] >= v->sum, 0)) {
            products[i] -= v->sum;
            shares[i]++;
        }
    }
    for (uint32_t i = 0; i < lanes; i++) {
        scores[i] = v->after[shares[i]];
    }
}

/* With fewer positions than this, calls would take longer than their loops save. */
#define FEWEST 4u

/* Turns masked scores into weights. */
HTVM_INLINE void weigh(const cluster_attention_t *v, int8_t *scores, uint32_t count, int8_t *table,
                       int32_t largest)
{
    const uint32_t *const exponentials = v->exponentials;
    uint32_t sum = 0;
    if (count >= FEWEST) {
        sum = htvm_attention_sum(scores, count, exponentials, largest);
    } else {
        for (uint32_t n = 0; n < count; n++) {
            sum += exponentials[largest - scores[n]];
        }
    }
    const uint32_t highest = v->levels - 1u;
    if (count <= FEW) {
        const weights_t how = {exponentials + largest, v->after, highest, sum, UINT32_MAX / sum};
        for (; count >= 4u; count -= 4u, scores += 4) {
            weights_of(&how, scores, 4);
        }
        if (count >= 2u) {
            weights_of(&how, scores, 2);
            scores += 2;
            count -= 2u;
        }
        if (count != 0) {
            weights_of(&how, scores, 1);
        }
        return;
    }
    /* Entry 255 - d is for distance d.  A quotient differs little from the one before it. */
    const uint32_t *e = exponentials, *const end = exponentials + v->distances;
    const uint32_t least = sum >> v->rise;
    uint32_t share = *e * highest / sum, product = share * sum;
    int8_t *to = table + 255;
    for (; e < end; e++) {
        const uint32_t wanted = *e * highest;
        if (wanted < least) {
            break; /* nor does any behind it reach the sum */
        }
        while (product > wanted) {
            product -= sum;
            share--;
        }
        while (wanted - product >= sum) {
            product += sum;
            share++;
        }
        *to-- = v->after[share];
    }
    const uint32_t none = 0x01010101u * (uint8_t)v->after[0];
    uint32_t at = (uint32_t)(to + 1 - table);
    for (; at % 4u != 0; at--) {
        table[at - 1u] = v->after[0];
    }
    for (; at % 16u != 0; at -= 4u) {
        htvm_store4(table + at - 4u, none);
    }
    for (int8_t *first = table; first < table + at; first += 16) {
        htvm_store4(first, none);
        htvm_store4(first + 4, none);
        htvm_store4(first + 8, none);
        htvm_store4(first + 12, none);
    }
    htvm_attention_weights(scores, count, table, largest);
}

/* What all rows have in common. */
typedef struct {
    const cluster_attention_t *args;
    htvm_scores_t scores;
    bool is_narrow; /* no scaled sum of weights times values leaves 32 bits */
} rows_t;

static rows_t rows_of(const cluster_attention_t *v, uint32_t positions)
{
    const cluster_requant_t *const r = &v->requant;
    const rows_t rows = {
        .args = v,
        .scores = {
            .mul = v->mul, .add = v->add, .shift = v->shift, .open = v->tables,
            .shut = v->tables + 256, .before = v->tables + 512, .mask = v->tables + 768,
            .sums = v->tables + 1024,
        },
        .is_narrow = r->mul >= 0 && r->add >= 0 && r->shift < 32u && positions <= MOST_NARROW &&
                     (uint64_t)(uint32_t)r->mul * (128u * 128u * positions) + (uint32_t)r->add <=
                         INT32_MAX,
    };
    return rows;
}

/* Scales four sums, and stores them. */
HTVM_INLINE void store_scaled(const rows_t *rows, const int32_t sums[4], int8_t *out)
{
    const cluster_requant_t r = rows->args->requant;
    int32_t y[4];
    if (rows->is_narrow) {
        for (uint32_t j = 0; j < 4u; j++) {
            y[j] = htvm_limit(htvm_scale(sums[j], r.mul, r.add, r.shift), r.low, r.high);
        }
    } else {
        for (uint32_t j = 0; j < 4u; j++) {
            y[j] = htvm_scale_wide(sums[j], r.mul, r.add, r.shift, r.low, r.high);
        }
    }
    for (uint32_t j = 0; j < 4u; j++) {
        out[j] = (int8_t)y[j];
    }
}

static void attend(const rows_t *rows, uint32_t head, uint32_t query, int8_t *table)
{
    const cluster_attention_t *const v = rows->args;
    const uint32_t size = v->size, words = size / 4u;
    const uint32_t positions = v->cached + (v->key != NULL ? 1u : 0u);
    const uint32_t row = head * v->queries + query;
    const uint8_t *const keys = (const uint8_t *)v->keys + head * v->cached * size;
    const uint8_t *const values = (const uint8_t *)v->values + head * v->cached * size;
    const uint8_t *const q = (const uint8_t *)v->query + row * size;
    const int8_t *const mask = v->mask + (v->masks > 1u ? query * positions : 0u);
    int8_t *const scores = table + 256;
    const uint32_t cached = v->cached;
    const htvm_scores_t *const how = &rows->scores;
    int32_t top = -128;
    if (cached >= FEWEST) {
        top = htvm_attention_scores(how, q, keys, mask, cached, words, scores, top);
    } else { /* without a call */
        for (uint32_t n = 0; n < cached; n++) {
            const int32_t one = htvm_attention_score(how, q, keys + n * size, mask[n], words);
            scores[n] = (int8_t)one;
            top = htvm_max(top, one);
        }
    }
    if (v->key != NULL) {
        const uint8_t *const own = (const uint8_t *)v->key + head * size;
        const int32_t one = htvm_attention_score(how, q, own, mask[cached], words);
        scores[cached] = (int8_t)one;
        top = htvm_max(top, one);
    }
    weigh(v, scores, positions, table, top);
    for (uint32_t i = 0; i < size; i += 4u) {
        int32_t sums[4] = {0, 0, 0, 0};
        if (cached >= FEWEST) {
            htvm_attention_mix(scores, values + i, cached, size, sums);
        } else {
            for (uint32_t n = 0; n < cached; n++) {
                htvm_attention_add(scores[n], values + n * size + i, sums);
            }
        }
        if (v->value != NULL) {
            htvm_attention_add(scores[cached], (const uint8_t *)v->value + head * size + i, sums);
        }
        store_scaled(rows, sums, (int8_t *)v->out + row * size + i);
    }
}

void cluster_attention(const void *args, uint32_t core, uint32_t cores)
{
    const cluster_attention_t *const v = args;
    if (v->workers != 0) {
        cores = v->workers;
        if (core >= cores) {
            return;
        }
    }
    const uint32_t positions = v->cached + (v->key != NULL ? 1u : 0u);
    int8_t *const scratch = (int8_t *)v->scratch + core * cluster_attention_scratch(positions);
    const cluster_share_t part = cluster_share(v->heads * v->queries, core, cores);
    const rows_t rows = rows_of(v, positions);
    for (uint32_t item = part.begin; item < part.end; item++) {
        const uint32_t head = v->queries == 1u ? item : item / v->queries;
        attend(&rows, head, item - head * v->queries, scratch);
    }
}
