/* snitch_map. */
#include "snitch_parts.h"

SNITCH_INLINE void look_up(const uint8_t *in, uint8_t *out, const uint8_t *table, uint32_t lanes)
{
    int32_t values[SNITCH_LANES];
    for (uint32_t i = 0; i < lanes; i++) {
        values[i] = in[i];
    }
    for (uint32_t i = 0; i < lanes; i++) {
        values[i] = table[values[i]];
    }
    snitch_hold_all(values, lanes);
    for (uint32_t i = 0; i < lanes; i++) {
        out[i] = (uint8_t)values[i];
    }
}

void snitch_map(const void *args, uint32_t core, uint32_t cores)
{
    const snitch_map_t *const m = args;
    const snitch_share_t part = snitch_share(m->elements, core, cores);
    const uint32_t start = part.begin + snitch_skew(part, core, cores);
    const uint8_t *const table = m->table;
    SNITCH_TURNS(at, end, part.begin, start, part.end) {
        const uint8_t *in = (const uint8_t *)m->in + at;
        uint8_t *out = (uint8_t *)m->out + at;
        uint32_t left = end - at;
        for (; left >= SNITCH_LANES; left -= SNITCH_LANES) {
            look_up(in, out, table, SNITCH_LANES);
            in += SNITCH_LANES;
            out += SNITCH_LANES;
            SNITCH_HOLD(in);
            SNITCH_HOLD(out);
        }
        for (; left != 0; left--) {
            look_up(in++, out++, table, 1);
        }
    }
}
