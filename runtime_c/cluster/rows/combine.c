/* cluster_combine.  Cores take turns with fours of elements, so that all access different banks. */
#include "cluster_parts.h"

/* Other clusters do not have the folder of these. */
#ifdef __riscv_xcvsimd
#include "htvm_scale.h"
#define LIMITED htvm_limit
#define ADD_SHIFT htvm_add_shift
#else
#define LIMITED cluster_clip
#define ADD_SHIFT(value, add, shift) (((value) + (add)) >> (shift))
#endif

/* What is known when a loop is specialised. */
typedef struct {
    bool multiplies, tables[2];
} cluster_combination_t;

/* What a loop keeps in registers. */
typedef struct {
    const int8_t *in[2], *tables[2];
    int8_t *out;
    int32_t mul, add, low, high;
    uint32_t shift;
} cluster_operands_t;

CLUSTER_INLINE void combine(cluster_operands_t *v, uint32_t lanes, uint32_t step,
                            cluster_combination_t kind)
{
    int32_t values[2][CLUSTER_LANES];
    for (uint32_t n = 0; n < 2u; n++) {
        for (uint32_t i = 0; i < lanes; i++) {
            const int8_t x = v->in[n][i];
            values[n][i] = kind.tables[n] ? (uint8_t)x : x;
        }
    }
    for (uint32_t n = 0; n < 2u; n++) {
        for (uint32_t i = 0; i < lanes && kind.tables[n]; i++) {
            values[n][i] = v->tables[n][values[n][i]];
        }
        cluster_hold_all(values[n], lanes);
    }
    for (uint32_t i = 0; i < lanes; i++) {
        const int32_t a = values[0][i], b = values[1][i];
        values[0][i] = (kind.multiplies ? a * b : a + b) * v->mul;
    }
    for (uint32_t i = 0; i < lanes; i++) {
        values[0][i] = LIMITED(ADD_SHIFT(values[0][i], v->add, v->shift), v->low, v->high);
    }
    for (uint32_t i = 0; i < lanes; i++) {
        v->out[i] = (int8_t)values[0][i];
    }
    v->in[0] += step;
    v->in[1] += step;
    v->out += step;
    CLUSTER_HOLD3(v->in[0], v->in[1], v->out);
}

CLUSTER_INLINE void combine_all(const cluster_combine_t *args, uint32_t core, uint32_t cores,
                                cluster_combination_t kind)
{
    const cluster_requant_t *const r = &args->requant;
    const uint32_t begin = CLUSTER_LANES * core;
    cluster_operands_t v = {
        {args->in[0] + begin, args->in[1] + begin}, {args->tables[0], args->tables[1]},
        args->out + begin, r->mul, r->add, r->low, r->high, r->shift,
    };
    const uint32_t step = CLUSTER_LANES * cores;
    uint32_t at = begin, elements = args->elements;
    CLUSTER_HOLD3(v.mul, v.add, v.shift);
    CLUSTER_HOLD3(v.low, v.high, elements);
    for (; at + CLUSTER_LANES <= elements; at += step) {
        combine(&v, CLUSTER_LANES, step, kind);
    }
    for (; at < elements; at++) { /* one core has the last, incomplete four */
        combine(&v, 1, 1, kind);
    }
}

CLUSTER_INLINE void combine_as(const cluster_combine_t *v, uint32_t core, uint32_t cores,
                               bool multiplies)
{
    const bool first = v->tables[0] != NULL, second = v->tables[1] != NULL;
    if (first && second) {
        combine_all(v, core, cores, (cluster_combination_t){multiplies, {true, true}});
    } else if (first) {
        combine_all(v, core, cores, (cluster_combination_t){multiplies, {true, false}});
    } else if (second) {
        combine_all(v, core, cores, (cluster_combination_t){multiplies, {false, true}});
    } else {
        combine_all(v, core, cores, (cluster_combination_t){multiplies, {false, false}});
    }
}

void cluster_combine(const void *args, uint32_t core, uint32_t cores)
{
    const cluster_combine_t *const v = args;
    if ((v->flags & CLUSTER_MULTIPLY) != 0) {
        combine_as(v, core, cores, true);
    } else {
        combine_as(v, core, cores, false);
    }
}
