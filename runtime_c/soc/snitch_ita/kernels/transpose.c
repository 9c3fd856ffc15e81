/* snitch_transpose. */
#include "snitch_parts.h"

void snitch_transpose(const void *args, uint32_t core, uint32_t cores)
{
    const snitch_transpose_t *const t = args;
    const snitch_share_t part = snitch_share(t->columns, core, cores);
    for (uint32_t c = part.begin; c < part.end; c++) {
        const uint8_t *in = (const uint8_t *)t->in + c;
        uint8_t *out = (uint8_t *)t->out + c * t->rows;
        for (uint32_t r = 0; r < t->rows; r++) {
            out[r] = *in;
            in += t->columns;
        }
    }
}
