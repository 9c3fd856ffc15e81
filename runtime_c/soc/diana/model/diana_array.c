/* The arithmetic of the digital core.
 *
 * Bit-exact, and arranged for speed of simulation: memory contents are put into plain order once
 * (the bytes of each aligned group of four are stored reversed), products of int8 fit int16, and
 * the innermost loops run over the 16 lanes, or over output columns when few lanes are in use
 * (depthwise).  Accumulators are unsigned because the core's int32 wraps.
 */
#include "diana_array.h"
#include "diana_model.h"

#include <stdlib.h>
#include <string.h>

#define LANES DIANA_DIGITAL_LANES
#define REVERSED (DIANA_DIGITAL_GROUP - 1u)
/* Up to this number of lanes, a loop over columns for each lane is faster than one over lanes. */
#define FEW_LANES 3u

_Static_assert(DIANA_DIGITAL_GROUP == 4, "the physical index is index ^ 3");

typedef struct {
    int16_t in[HTVM_L1_SIZE];                /* [c][iy][in_pitch], plain order */
    int16_t weights[DIANA_DIGITAL_WEIGHT_MEMORY]; /* [c][fy][fx][lane] of one block */
    uint32_t bias[LANES];
    uint32_t lanes[LANES]; /* number of lanes to compute */
    uint32_t lane_count;
    uint32_t *sums; /* [ox][lane], one output row */
} scratch_t;

/* Floor shift, clip.  The conversion to int32 wraps, and >> of a negative int32 is arithmetic, in
 * every compiler this is built with. */
static uint8_t requantize(uint32_t sum, uint32_t shift, bool relu)
{
    const int32_t value = (int32_t)sum >> shift;
    const int32_t low = relu ? 0 : -128;
    return (uint8_t)(value < low ? low : value > 127 ? 127 : value);
}

/* Output positions [*from, *to) whose window element `tap` falls inside `size`. */
static void valid_range(uint32_t size, uint32_t outputs, uint32_t stride, int32_t pad, uint32_t tap,
                        uint32_t *from, uint32_t *to)
{
    /* 0 <= o*stride - pad + tap < size */
    const int64_t shift = (int64_t)tap - pad;
    const int64_t step = stride;
    const int64_t low = shift >= 0 ? 0 : (-shift + step - 1) / step;
    const int64_t high = (int64_t)size - shift <= 0 ? 0 : ((int64_t)size - shift + step - 1) / step;
    *from = (uint32_t)(low < outputs ? low : outputs);
    *to = (uint32_t)(high < outputs ? high : outputs);
    if (*to < *from) {
        *to = *from;
    }
}

bool diana_touched(uint32_t size, uint32_t outputs, uint32_t filter, uint32_t stride, int32_t pad,
                   uint32_t *first, uint32_t *last)
{
    bool any = false;
    for (uint32_t tap = 0; tap < filter; tap++) {
        uint32_t from, to;
        valid_range(size, outputs, stride, pad, tap, &from, &to);
        if (from < to) {
            const uint32_t low = (uint32_t)((int64_t)from * stride + tap - pad);
            const uint32_t high = (uint32_t)((int64_t)(to - 1u) * stride + tap - pad);
            *first = any && *first < low ? *first : low;
            *last = any && *last > high ? *last : high;
            any = true;
        }
    }
    return any;
}

uint32_t diana_rows_inside(const diana_shape_t *s, uint32_t y)
{
    uint32_t rows = 0;
    for (uint32_t i = 0; i < s->fy; i++) {
        const int64_t row = (int64_t)y * s->stride - s->pad_top + i;
        rows += row >= 0 && row < s->iy;
    }
    return rows;
}

static void load_block(const diana_shape_t *s, const uint8_t *packed, scratch_t *t)
{
    const uint32_t taps = s->c * s->fy * s->fx;
    uint32_t used[LANES] = {0};
    for (uint32_t i = 0; i < taps * LANES; i++) {
        t->weights[i] = (int8_t)packed[i ^ REVERSED];
        used[i % LANES] |= packed[i ^ REVERSED];
    }
    const uint8_t *bias = packed + (size_t)taps * LANES;
    t->lane_count = 0;
    for (uint32_t lane = 0; lane < s->lanes; lane++) {
        t->bias[lane] = 0;
        for (uint32_t plane = 0; plane < 4; plane++) {
            t->bias[lane] |= (uint32_t)bias[(plane * LANES + lane) ^ REVERSED] << (8 * plane);
        }
        if (used[lane] != 0) {
            t->lanes[t->lane_count++] = lane;
        }
    }
}

static void taps_all_lanes(const int16_t *in, uint32_t stride, const int16_t *weights,
                           uint32_t count, uint32_t *sums)
{
    for (uint32_t x = 0; x < count; x++) {
        const int16_t value = in[(size_t)x * stride];
        for (uint32_t lane = 0; lane < LANES; lane++) {
            const int16_t product = (int16_t)(value * weights[lane]);
            sums[x * LANES + lane] += (uint32_t)product;
        }
    }
}

static void taps_one_lane(const int16_t *in, uint32_t stride, int16_t weight, uint32_t count,
                          uint32_t *sums)
{
    if (stride == 1) { /* a separate function, so that the compiler can vectorise it */
        for (uint32_t x = 0; x < count; x++) {
            sums[x] += (uint32_t)(int16_t)(in[x] * weight);
        }
    } else {
        for (uint32_t x = 0; x < count; x++) {
            sums[x] += (uint32_t)(int16_t)(in[(size_t)x * stride] * weight);
        }
    }
}

/* Adds all products of output row y.  sums: [ox][lane] if all lanes are computed, else
 * [lane][ox]. */
static void row_sums(const diana_shape_t *s, const scratch_t *t, uint32_t y, bool all)
{
    for (uint32_t c = 0; c < s->c; c++) {
        for (uint32_t i = 0; i < s->fy; i++) {
            const int64_t row = (int64_t)y * s->stride - s->pad_top + i;
            if (row < 0 || row >= s->iy) {
                continue;
            }
            const int16_t *line = t->in + ((size_t)c * s->iy + (size_t)row) * s->in_pitch;
            for (uint32_t j = 0; j < s->fx; j++) {
                uint32_t from, to;
                valid_range(s->ix, s->ox, s->stride, s->pad_left, j, &from, &to);
                if (from == to) {
                    continue;
                }
                const int16_t *first = line + ((int64_t)from * s->stride - s->pad_left + j);
                const int16_t *w = t->weights + (((size_t)c * s->fy + i) * s->fx + j) * LANES;
                if (all) {
                    taps_all_lanes(first, s->stride, w, to - from, t->sums + from * LANES);
                    continue;
                }
                for (uint32_t n = 0; n < t->lane_count; n++) {
                    const uint32_t lane = t->lanes[n];
                    taps_one_lane(first, s->stride, w[lane], to - from,
                                  t->sums + lane * s->ox + from);
                }
            }
        }
    }
}

static void write_row(const diana_shape_t *s, const scratch_t *t, uint32_t y, bool all,
                      uint8_t *out)
{
    for (uint32_t lane = 0; lane < s->lanes; lane++) {
        const uint32_t line = (lane * s->oy + y) * s->out_pitch;
        for (uint32_t x = 0; x < s->ox; x++) {
            const uint32_t sum = t->sums[all ? x * LANES + lane : lane * s->ox + x];
            out[(line + x) ^ REVERSED] = requantize(t->bias[lane] + sum, s->shift, s->relu);
        }
        for (uint32_t x = s->ox; x < s->out_pitch; x++) {
            out[(line + x) ^ REVERSED] = 0;
        }
    }
}

bool diana_array_conv(const diana_shape_t *s, const uint8_t *in, const uint8_t *weights,
                      uint8_t *out)
{
    scratch_t *t = malloc(sizeof *t);
    if (t == NULL) {
        return false;
    }
    t->sums = malloc(sizeof *t->sums * s->ox * LANES);
    if (t->sums == NULL) {
        free(t);
        return false;
    }
    const uint32_t in_bytes = s->c * s->iy * s->in_pitch;
    for (uint32_t i = 0; i < in_bytes; i++) {
        t->in[i] = (int8_t)in[i ^ REVERSED];
    }
    const uint32_t block_bytes = LANES * s->c * s->fy * s->fx + DIANA_DIGITAL_BIAS_BYTES;
    for (uint32_t block = 0; block < diana_blocks(s->k, LANES); block++) {
        load_block(s, weights + (size_t)block * block_bytes, t);
        const bool all = t->lane_count > FEW_LANES;
        uint8_t *maps = out + (size_t)block * LANES * s->oy * s->out_pitch;
        for (uint32_t y = 0; y < s->oy; y++) {
            memset(t->sums, 0, sizeof *t->sums * s->ox * LANES);
            row_sums(s, t, y, all);
            write_row(s, t, y, all, maps);
        }
    }
    free(t->sums);
    free(t);
    return true;
}

void diana_array_dense(uint32_t c, uint32_t shift, bool relu, const uint8_t *in,
                       const uint8_t *weights, uint8_t *out)
{
    const uint32_t columns = DIANA_DIGITAL_COLUMNS;
    const uint32_t blocks = diana_blocks(c, columns);
    const uint8_t *bias = weights + (size_t)blocks * LANES * columns;
    const uint32_t bias_bytes = DIANA_DIGITAL_DENSE_BIAS_BYTES / LANES;
    for (uint32_t k = 0; k < LANES; k++) {
        uint32_t sum = 0;
        for (uint32_t byte = 0; byte < 4; byte++) {
            sum |= (uint32_t)bias[(k * bias_bytes + byte) ^ REVERSED] << (8 * byte);
        }
        for (uint32_t i = 0; i < blocks * columns; i++) {
            const uint32_t at = (i / columns * LANES + k) * columns + i % columns;
            const int32_t product = (int8_t)in[i ^ REVERSED] * (int8_t)weights[at ^ REVERSED];
            sum += (uint32_t)product;
        }
        out[k ^ REVERSED] = requantize(sum, shift, relu);
    }
}

void diana_array_add(uint32_t elements, uint32_t shift, bool relu, const uint8_t *a,
                     const uint8_t *b, uint8_t *out)
{
    for (uint32_t i = 0; i < elements; i++) {
        const uint32_t at = i ^ REVERSED; /* matters only for the last, incomplete group */
        out[at] = requantize((uint32_t)((int8_t)a[at] + (int8_t)b[at]), shift, relu);
    }
}
