/* snitch_depthwise: blocks of 4 pixels beside each other by 3 channels, else single sums. */
#include "snitch_parts.h"
#include "snitch_window.h"

/* Taps of one or several pixels of a row. */
typedef struct {
    const uint8_t *in;
    const int8_t *weights;
    uint32_t taps_y, taps_x;
} taps_t;

#define PIXEL3(x, n)                                                                        \
    {                                                                                       \
        const int32_t t0 = u0 * snitch_byte(x, 0, is_unsigned);                             \
        const int32_t t1 = u1 * snitch_byte(x, 1, is_unsigned);                             \
        const int32_t t2 = u2 * snitch_byte(x, 2, is_unsigned);                             \
        x += pitch;                                                                         \
        s[n] += t0;                                                                         \
        s[(n) + 1] += t1;                                                                   \
        s[(n) + 2] += t2;                                                                   \
        SNITCH_HOLD3(s[n], s[(n) + 1], s[(n) + 2]);                                         \
        SNITCH_HOLD(x);                                                                     \
    }

SNITCH_INLINE void dots_4x3(const snitch_conv_t *v, int32_t *s, const taps_t *taps, uint32_t channel,
                            bool is_unsigned)
{
    const uint32_t pitch = v->in_pitch, step = v->stride_x * pitch, channels = v->c;
    const uint8_t *in = taps->in + channel;
    const int8_t *weights = taps->weights + channel;
    for (uint32_t y = 0; y < taps->taps_y; y++) {
        const uint8_t *x0 = in, *x1 = x0 + step, *x2 = x1 + step, *x3 = x2 + step;
        const uint8_t *const end = x0 + taps->taps_x * pitch;
        const int8_t *w = weights;
        while (x0 != end) {
            const int32_t u0 = w[0], u1 = w[1], u2 = w[2];
            w += channels;
            SNITCH_HOLD(w);
            PIXEL3(x0, 0)
            PIXEL3(x1, 3)
            PIXEL3(x2, 6)
            PIXEL3(x3, 9)
        }
        in += v->ix * pitch;
        weights += v->fx * channels;
    }
}

SNITCH_INLINE int32_t dot(const snitch_conv_t *v, int32_t sum, const taps_t *taps, uint32_t channel,
                          bool is_unsigned)
{
    const uint8_t *in = taps->in + channel;
    const int8_t *weights = taps->weights + channel;
    for (uint32_t y = 0; y < taps->taps_y; y++) {
        const uint8_t *x = in;
        const int8_t *w = weights;
        for (uint32_t i = 0; i < taps->taps_x; i++) {
            sum += snitch_byte(x, 0, is_unsigned) * *w;
            x += v->in_pitch;
            w += v->c;
        }
        in += v->ix * v->in_pitch;
        weights += v->fx * v->c;
    }
    return sum;
}

static void store(const snitch_conv_t *v, const int32_t *sums, uint8_t *out, uint32_t channel,
                  uint32_t pixels, uint32_t channels)
{
    const snitch_requant_t *const r = &v->requant;
    const bool per_channel = (v->flags & SNITCH_PER_CHANNEL) != 0;
    const bool wide = (v->flags & SNITCH_WIDE) != 0;
    for (uint32_t j = 0; j < channels; j++) {
        const int32_t mul = per_channel ? r->muls[channel + j] : r->mul;
        const int32_t add = per_channel ? r->adds[channel + j] : r->add;
        const uint32_t shift = per_channel ? r->shifts[channel + j] : r->shift;
        uint8_t *to = out + channel + j;
        for (uint32_t i = 0; i < pixels; i++) {
            const int32_t sum = sums[i * channels + j];
            *to = (uint8_t)(wide ? snitch_requantize(sum, mul, add, shift, r->low, r->high, true)
                                 : snitch_requantize(sum, mul, add, shift, r->low, r->high, false));
            to += v->out_pitch;
        }
    }
}

/* Pixels beside each other, whose windows have the same taps. */
SNITCH_INLINE void run(const snitch_conv_t *v, taps_t taps, uint8_t *out, uint32_t pixels,
                       snitch_share_t channels, bool is_unsigned)
{
    int32_t s[12];
    uint32_t left = pixels;
    for (; left >= 4; left -= 4) {
        uint32_t c = channels.begin;
        for (; c + 3 <= channels.end; c += 3) {
            for (uint32_t i = 0; i < 12; i++) {
                s[i] = v->bias != NULL ? v->bias[c + i % 3] : 0;
            }
            dots_4x3(v, s, &taps, c, is_unsigned);
            store(v, s, out, c, 4, 3);
        }
        for (; c < channels.end; c++) {
            taps_t one = taps;
            for (uint32_t i = 0; i < 4; i++) {
                s[i] = dot(v, v->bias != NULL ? v->bias[c] : 0, &one, c, is_unsigned);
                one.in += v->stride_x * v->in_pitch;
            }
            store(v, s, out, c, 4, 1);
        }
        taps.in += 4 * v->stride_x * v->in_pitch;
        out += 4 * v->out_pitch;
    }
    for (; left != 0; left--) {
        for (uint32_t c = channels.begin; c < channels.end; c++) {
            s[0] = dot(v, v->bias != NULL ? v->bias[c] : 0, &taps, c, is_unsigned);
            store(v, s, out, c, 1, 1);
        }
        taps.in += v->stride_x * v->in_pitch;
        out += v->out_pitch;
    }
}

static void run_s8(const snitch_conv_t *v, taps_t taps, uint8_t *out, uint32_t pixels,
                   snitch_share_t channels)
{
    run(v, taps, out, pixels, channels, false);
}

static void run_u8(const snitch_conv_t *v, taps_t taps, uint8_t *out, uint32_t pixels,
                   snitch_share_t channels)
{
    run(v, taps, out, pixels, channels, true);
}

void snitch_depthwise(const void *args, uint32_t core, uint32_t cores)
{
    const snitch_conv_t *const v = args;
    snitch_share_t all = {0, v->oy * v->ox}, channels = {0, v->c};
    if (snitch_by_columns(all.end, v->c, cores)) {
        channels = snitch_share(v->c, core, cores);
    } else {
        all = snitch_share(all.end, core, cores);
    }
    for (uint32_t pixel = all.begin; pixel < all.end;) {
        const uint32_t y = pixel / v->ox, x = pixel - y * v->ox, left = all.end - pixel;
        const uint32_t count = snitch_run(v, x, v->ox - x < left ? v->ox : x + left);
        const snitch_window_t rows = snitch_window(y, v->stride_y, v->pad_top, v->fy, v->iy);
        const snitch_window_t first = snitch_window(x, v->stride_x, v->pad_left, v->fx, v->ix);
        const taps_t taps = {
            .in = (const uint8_t *)v->in + (rows.at * v->ix + first.at) * v->in_pitch,
            .weights = v->weights + (rows.tap * v->fx + first.tap) * v->c,
            .taps_y = rows.count,
            .taps_x = first.count,
        };
        uint8_t *const out = (uint8_t *)v->out + pixel * v->out_pitch;
        if ((v->flags & SNITCH_IN_UNSIGNED) != 0) {
            run_u8(v, taps, out, count, channels);
        } else {
            run_s8(v, taps, out, count, channels);
        }
        pixel += count;
    }
}
