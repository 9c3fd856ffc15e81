/* snitch_map. */
#include "snitch_parts.h"

void snitch_map(const void *args, uint32_t core, uint32_t cores)
{
    const snitch_map_t *const m = args;
    const snitch_share_t part = snitch_share(m->elements, core, cores);
    const uint8_t *const in = m->in, *const table = m->table;
    uint8_t *const out = m->out;
    for (uint32_t i = part.begin; i < part.end; i++) {
        out[i] = table[in[i]];
    }
}
