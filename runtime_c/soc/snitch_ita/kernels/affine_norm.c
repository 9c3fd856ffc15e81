/* snitch_affine_norm. */
#include "snitch_parts.h"

SNITCH_INLINE void row_of(const snitch_norm_t *v, const uint8_t *in, uint8_t *out, bool is_unsigned,
                          bool wide)
{
    for (uint32_t i = 0; i < v->n; i++) {
        const int32_t x = snitch_byte(in, i, is_unsigned);
        if (wide) {
            /* The sum takes up to 40 bits, times mul up to 72: more than a word pair where both are
             * extreme, which the layer's types exclude. */
            const int64_t value = ((int64_t)x * v->weight[i] + v->bias[i]) * v->mul >> v->shift;
            out[i] = (uint8_t)(value < -128 ? -128 : value > 127 ? 127 : (int32_t)value);
        } else {
            const int32_t value = (x * v->weight[i] + v->bias[i]) * v->mul >> v->shift;
            out[i] = (uint8_t)snitch_clip(value, -128, 127);
        }
    }
}

void snitch_affine_norm(const void *args, uint32_t core, uint32_t cores)
{
    const snitch_norm_t *const v = args;
    const snitch_share_t rows = snitch_share(v->rows, core, cores);
    const bool wide = (v->flags & SNITCH_WIDE) != 0;
    const bool is_unsigned = (v->flags & SNITCH_IN_UNSIGNED) != 0;
    for (uint32_t row = rows.begin; row < rows.end; row++) {
        const uint8_t *const in = (const uint8_t *)v->in + row * v->n;
        uint8_t *const out = (uint8_t *)v->out + row * v->n;
        if (wide && is_unsigned) {
            row_of(v, in, out, true, true);
        } else if (wide) {
            row_of(v, in, out, false, true);
        } else if (is_unsigned) {
            row_of(v, in, out, true, false);
        } else {
            row_of(v, in, out, false, false);
        }
    }
}
