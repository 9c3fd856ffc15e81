/* snitch_affine_norm. */
#include "snitch_parts.h"

typedef struct {
    int32_t mul;
    uint32_t shift;
} scale_t;

SNITCH_INLINE void scale(const uint8_t *in, const int32_t *weight, const int32_t *bias, uint8_t *out,
                         scale_t s, uint32_t lanes, bool is_unsigned)
{
    int32_t v[SNITCH_LANES];
    for (uint32_t i = 0; i < lanes; i++) {
        v[i] = snitch_byte(in, i, is_unsigned);
    }
    for (uint32_t i = 0; i < lanes; i++) {
        v[i] *= weight[i];
    }
    for (uint32_t i = 0; i < lanes; i++) {
        v[i] = (v[i] + bias[i]) * s.mul;
    }
    for (uint32_t i = 0; i < lanes; i++) {
        v[i] >>= s.shift;
    }
    snitch_hold_all(v, lanes);
    for (uint32_t i = 0; i < lanes; i++) {
        out[i] = (uint8_t)snitch_clip(v[i], -128, 127);
    }
}

SNITCH_INLINE void row_of(const snitch_norm_t *v, const uint8_t *in, uint8_t *out, uint32_t start,
                          bool is_unsigned)
{
    const scale_t s = {v->mul, v->shift};
    const uint32_t n = v->n;
    SNITCH_TURNS(at, end, 0, start, n) {
        const int32_t *weight = v->weight + at, *bias = v->bias + at;
        const uint8_t *x = in + at;
        uint8_t *y = out + at;
        uint32_t left = end - at;
        for (; left >= SNITCH_LANES; left -= SNITCH_LANES) {
            scale(x, weight, bias, y, s, SNITCH_LANES, is_unsigned);
            x += SNITCH_LANES;
            y += SNITCH_LANES;
            weight += SNITCH_LANES;
            bias += SNITCH_LANES;
            SNITCH_HOLD3(x, weight, bias);
            SNITCH_HOLD(y);
        }
        for (; left != 0; left--) {
            scale(x++, weight++, bias++, y++, s, 1, is_unsigned);
        }
    }
}

/* As the layer promises, 64 bits hold all of it. */
static void wide_row(const snitch_norm_t *v, const uint8_t *in, uint8_t *out)
{
    for (uint32_t i = 0; i < v->n; i++) {
        const int32_t x = snitch_byte(in, i, (v->flags & SNITCH_IN_UNSIGNED) != 0);
        const int64_t value = ((int64_t)x * v->weight[i] + v->bias[i]) * v->mul >> v->shift;
        out[i] = (uint8_t)(value < -128 ? -128 : value > 127 ? 127 : (int32_t)value);
    }
}

void snitch_affine_norm(const void *args, uint32_t core, uint32_t cores)
{
    const snitch_norm_t *const v = args;
    const snitch_share_t rows = snitch_share(v->rows, core, cores);
    const uint32_t start = snitch_start(v->n, core, cores);
    for (uint32_t row = rows.begin; row < rows.end; row++) {
        const uint8_t *const in = (const uint8_t *)v->in + row * v->n;
        uint8_t *const out = (uint8_t *)v->out + row * v->n;
        if ((v->flags & SNITCH_WIDE) != 0) {
            wide_row(v, in, out);
        } else if ((v->flags & SNITCH_IN_UNSIGNED) != 0) {
            row_of(v, in, out, start, true);
        } else {
            row_of(v, in, out, start, false);
        }
    }
}
