/* cluster_map. */
#include "cluster_parts.h"

CLUSTER_INLINE void look_up(const uint8_t *in, uint8_t *out, const uint8_t *table, uint32_t lanes)
{
    int32_t values[CLUSTER_LANES];
    for (uint32_t i = 0; i < lanes; i++) {
        values[i] = in[i];
    }
    for (uint32_t i = 0; i < lanes; i++) {
        values[i] = table[values[i]];
    }
    cluster_hold_all(values, lanes);
    for (uint32_t i = 0; i < lanes; i++) {
        out[i] = (uint8_t)values[i];
    }
}

void cluster_map(const void *args, uint32_t core, uint32_t cores)
{
    const cluster_map_t *const m = args;
    const cluster_share_t part = cluster_share(m->elements, core, cores);
    const uint32_t start = part.begin + cluster_skew(part, core, cores);
    const uint8_t *const table = m->table;
    CLUSTER_TURNS(at, end, part.begin, start, part.end) {
        const uint8_t *in = (const uint8_t *)m->in + at;
        uint8_t *out = (uint8_t *)m->out + at;
        uint32_t left = end - at;
        for (; left >= CLUSTER_LANES; left -= CLUSTER_LANES) {
            look_up(in, out, table, CLUSTER_LANES);
            in += CLUSTER_LANES;
            out += CLUSTER_LANES;
            CLUSTER_HOLD(in);
            CLUSTER_HOLD(out);
        }
        for (; left != 0; left--) {
            look_up(in++, out++, table, 1);
        }
    }
}
