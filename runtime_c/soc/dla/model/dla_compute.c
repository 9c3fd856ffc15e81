/* dla: arithmetic.  Sums wrap at 32 bits. */
#include <string.h>

#include "dla_core.h"

/* Products of int8 are at most 2^14: this many of them cannot leave int32. */
enum { DLA_BLOCK = 65536, DLA_STEP = 16 };

/* What becomes of a sum. */
typedef struct {
    bool requant;
    uint32_t shift;
    int32_t low, high;
} dla_end_t;

static dla_end_t end_of(const dla_job_t *job)
{
    const uint32_t clip = job->reg[DLA_CLIP];
    dla_end_t end = {
        .requant = !dla_gives_int32(job->opcode, job->flags),
        .shift = job->reg[DLA_SHIFT],
        .low = (int16_t)dla_high(clip),
        .high = (int16_t)dla_low(clip),
    };
    if (job->opcode == DLA_OP_CONV_RELU) {
        end.low = end.low < 0 ? 0 : end.low;
        end.high = end.high < 0 ? 0 : end.high;
    }
    return end;
}

static void put(uint8_t *at, uint32_t number, int32_t sum, const dla_end_t *end)
{
    if (end->requant) {
        at[number] = (uint8_t)dla_requantized(sum, end->shift, end->low, end->high);
    } else {
        memcpy(at + 4u * (uint64_t)number, &sum, sizeof sum);
    }
}

static int32_t word_at(const uint8_t *at)
{
    int32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static int32_t bias_of(const dla_core_t *core, const dla_job_t *job, uint32_t number)
{
    if ((job->flags & DLA_FLAG_BIAS) == 0) {
        return 0;
    }
    return word_at(core->sram + job->reg[DLA_BIAS] + 4u * (uint64_t)number);
}

static uint32_t dot(const int16_t *a, const int16_t *b, uint64_t elements)
{
    uint32_t sum = 0;
    while (elements > 0) {
        const uint32_t now = elements < DLA_BLOCK ? (uint32_t)elements : DLA_BLOCK;
        int32_t part = 0;
        for (uint32_t i = 0; i < now; ++i) {
            part += (int32_t)a[i] * (int32_t)b[i];
        }
        sum += (uint32_t)part;
        a += now;
        b += now;
        elements -= now;
    }
    return sum;
}

static void widen(int16_t *to, const uint8_t *from, uint64_t elements)
{
    for (uint64_t i = 0; i < elements; ++i) {
        to[i] = (int16_t)(int8_t)from[i];
    }
}

/* The window of an instruction. */
typedef struct {
    uint32_t fy, fx, sy, sx, top, left;
} dla_window_t;

static dla_window_t window_of(const dla_job_t *job)
{
    const uint32_t *reg = job->reg;
    if (!dla_has_window(job->opcode)) {
        return (dla_window_t){1, 1, 1, 1, 0, 0};
    }
    return (dla_window_t){
        .fy = dla_high(reg[DLA_KERNEL]),
        .fx = dla_low(reg[DLA_KERNEL]),
        .sy = dla_high(reg[DLA_STRIDE]),
        .sx = dla_low(reg[DLA_STRIDE]),
        .top = dla_high(reg[DLA_PAD]),
        .left = dla_low(reg[DLA_PAD]),
    };
}

/* The taps of one axis that are inside the input, first to behind the last, and the input position
 * of the first. */
typedef struct {
    uint32_t first, last;
    uint64_t at;
} dla_taps_t;

static dla_taps_t taps_of(uint32_t out, uint32_t stride, uint32_t before, uint32_t kernel,
                          uint32_t size)
{
    const int64_t begin = (int64_t)out * stride - before;
    const int64_t first = begin < 0 ? -begin : 0;
    int64_t last = (int64_t)size - begin;
    last = last > (int64_t)kernel ? (int64_t)kernel : last;
    if (first >= last) {
        return (dla_taps_t){0, 0, 0};
    }
    return (dla_taps_t){(uint32_t)first, (uint32_t)last, (uint64_t)(begin + first)};
}

/* Copies what a window sees, [fy][fx][C], with zeros outside the input. */
static void gather(const dla_core_t *core, const dla_view_t *in, const dla_window_t *window,
                   uint32_t y, uint32_t x, int16_t *patch)
{
    const uint64_t channels = in->channels, row = window->fx * channels;
    const dla_taps_t ty = taps_of(y, window->sy, window->top, window->fy, in->height);
    const dla_taps_t tx = taps_of(x, window->sx, window->left, window->fx, in->width);
    if (ty.last - ty.first != window->fy || tx.last - tx.first != window->fx) {
        memset(patch, 0, window->fy * row * sizeof *patch);
    }
    for (uint32_t fy = ty.first; fy < ty.last; ++fy) {
        const uint8_t *from =
            core->sram + in->at + (ty.at + (fy - ty.first)) * in->row + tx.at * in->pixel;
        int16_t *to = patch + fy * row + tx.first * channels;
        if (in->pixel == channels) {
            widen(to, from, (tx.last - tx.first) * channels);
            continue;
        }
        for (uint32_t fx = tx.first; fx < tx.last; ++fx, from += in->pixel, to += channels) {
            widen(to, from, channels);
        }
    }
}

bool dla_convolve(dla_core_t *core, const dla_job_t *job)
{
    const dla_view_t in = dla_operand(job, 0), out = dla_result(job);
    const dla_window_t window = window_of(job);
    const dla_end_t end = end_of(job);
    const uint64_t length = (uint64_t)window.fy * window.fx * in.channels;
    /* whole steps, of which the last ones are zero */
    const uint64_t pitch = (length + DLA_STEP - 1u) / DLA_STEP * DLA_STEP;
    int16_t *patch = dla_scratch(core, pitch * (out.channels + 1u));
    if (patch == NULL) {
        return false;
    }
    int16_t *weights = patch + pitch;
    memset(patch, 0, pitch * sizeof *patch);
    for (uint32_t k = 0; k < out.channels; ++k) {
        widen(weights + k * pitch, core->sram + job->reg[DLA_WEIGHTS] + k * length, length);
        memset(weights + k * pitch + length, 0, (pitch - length) * sizeof *weights);
    }
    for (uint32_t y = 0; y < out.height; ++y) {
        for (uint32_t x = 0; x < out.width; ++x) {
            uint8_t *to =
                core->sram + out.at + (uint64_t)y * out.row + (uint64_t)x * out.pixel;
            gather(core, &in, &window, y, x, patch);
            for (uint32_t k = 0; k < out.channels; ++k) {
                const uint32_t sum = dot(patch, weights + k * pitch, pitch);
                put(to, k, (int32_t)(sum + (uint32_t)bias_of(core, job, k)), &end);
            }
        }
    }
    return true;
}

/* sums[c] += in[c] * weights[c] */
static void multiply_add(uint32_t *sums, const uint8_t *in, const int16_t *weights,
                         uint32_t channels)
{
    for (uint32_t c = 0; c < channels; ++c) {
        sums[c] += (uint32_t)((int32_t)(int8_t)in[c] * (int32_t)weights[c]);
    }
}

bool dla_convolve_depthwise(dla_core_t *core, const dla_job_t *job)
{
    const dla_view_t in = dla_operand(job, 0), out = dla_result(job);
    const dla_window_t window = window_of(job);
    const dla_end_t end = end_of(job);
    const uint64_t taps = (uint64_t)window.fy * window.fx, channels = out.channels;
    /* sums first, as they are aligned to 4 bytes */
    int16_t *scratch = dla_scratch(core, (taps + 2u) * channels);
    if (scratch == NULL) {
        return false;
    }
    uint32_t *sums = (uint32_t *)(void *)scratch;
    int16_t *weights = scratch + 2u * channels; /* [fy][fx][C] */
    for (uint64_t c = 0; c < channels; ++c) {
        for (uint64_t tap = 0; tap < taps; ++tap) {
            weights[tap * channels + c] =
                (int16_t)(int8_t)core->sram[job->reg[DLA_WEIGHTS] + c * taps + tap];
        }
    }
    for (uint32_t y = 0; y < out.height; ++y) {
        const dla_taps_t ty = taps_of(y, window.sy, window.top, window.fy, in.height);
        for (uint32_t x = 0; x < out.width; ++x) {
            const dla_taps_t tx = taps_of(x, window.sx, window.left, window.fx, in.width);
            for (uint32_t c = 0; c < channels; ++c) {
                sums[c] = (uint32_t)bias_of(core, job, c);
            }
            for (uint32_t fy = ty.first; fy < ty.last; ++fy) {
                const uint8_t *from =
                    core->sram + in.at + (ty.at + (fy - ty.first)) * in.row + tx.at * in.pixel;
                for (uint32_t fx = tx.first; fx < tx.last; ++fx, from += in.pixel) {
                    const uint64_t tap = (uint64_t)fy * window.fx + fx;
                    multiply_add(sums, from, weights + tap * channels, out.channels);
                }
            }
            uint8_t *to = core->sram + out.at + (uint64_t)y * out.row + (uint64_t)x * out.pixel;
            for (uint32_t c = 0; c < channels; ++c) {
                put(to, c, (int32_t)sums[c], &end);
            }
        }
    }
    return true;
}

/* floor(sum / count + 1/2) */
static int32_t average(int32_t sum, int32_t count)
{
    const int64_t twice = 2 * (int64_t)sum + count, whole = 2 * (int64_t)count;
    const int64_t quotient = twice / whole;
    return (int32_t)(twice % whole < 0 ? quotient - 1 : quotient);
}

void dla_pool(dla_core_t *core, const dla_job_t *job)
{
    const dla_view_t in = dla_operand(job, 0), out = dla_result(job);
    const dla_window_t window = window_of(job);
    for (uint32_t y = 0; y < out.height; ++y) {
        const dla_taps_t ty = taps_of(y, window.sy, window.top, window.fy, in.height);
        for (uint32_t x = 0; x < out.width; ++x) {
            const dla_taps_t tx = taps_of(x, window.sx, window.left, window.fx, in.width);
            const int32_t count = (int32_t)((ty.last - ty.first) * (tx.last - tx.first));
            uint8_t *to = core->sram + out.at + (uint64_t)y * out.row + (uint64_t)x * out.pixel;
            for (uint32_t c = 0; c < out.channels; ++c) {
                int32_t sum = 0, most = -128;
                for (uint32_t fy = 0; fy < ty.last - ty.first; ++fy) {
                    const uint8_t *from =
                        core->sram + in.at + (ty.at + fy) * in.row + tx.at * in.pixel + c;
                    for (uint32_t fx = tx.first; fx < tx.last; ++fx, from += in.pixel) {
                        const int32_t value = (int8_t)*from;
                        sum += value;
                        most = value > most ? value : most;
                    }
                }
                if (count == 0) {
                    sum = most = 0;
                }
                const bool mean = (job->flags & DLA_FLAG_AVERAGE) != 0;
                to[c] = (uint8_t)(mean && count != 0 ? average(sum, count) : most);
            }
        }
    }
}

static int32_t element(const dla_job_t *job, const dla_end_t *end, int32_t a, int32_t b)
{
    switch (job->opcode) {
    case DLA_OP_ACT_RELU: return a < 0 ? 0 : a;
    case DLA_OP_ACT_LRELU: return a < 0 ? dla_shift(a, job->reg[DLA_ALPHA]) : a;
    case DLA_OP_E_ABS: return a == -128 ? 127 : a < 0 ? -a : a;
    case DLA_OP_C_MIN: return a < b ? a : b;
    case DLA_OP_C_MAX: return a > b ? a : b;
    case DLA_OP_E_ADD: return dla_requantized(a + b, end->shift, end->low, end->high);
    case DLA_OP_E32_ADD: return (int32_t)((uint32_t)a + (uint32_t)b);
    case DLA_OP_E32_SHL: return (int32_t)((uint32_t)a << end->shift);
    default:
        return end->requant ? dla_requantized(a, end->shift, end->low, end->high)
                            : dla_shift(a, end->shift);
    }
}

void dla_elements(dla_core_t *core, const dla_job_t *job)
{
    const bool two = dla_has_two(job->opcode);
    const dla_view_t in = dla_operand(job, 0), in1 = dla_operand(job, two ? 1 : 0);
    const dla_view_t out = dla_result(job);
    const dla_end_t end = end_of(job);
    for (uint32_t y = 0; y < out.height; ++y) {
        for (uint32_t x = 0; x < out.width; ++x) {
            const uint8_t *a = core->sram + in.at + (uint64_t)y * in.row + (uint64_t)x * in.pixel;
            const uint8_t *b =
                core->sram + in1.at + (uint64_t)y * in1.row + (uint64_t)x * in1.pixel;
            uint8_t *to = core->sram + out.at + (uint64_t)y * out.row + (uint64_t)x * out.pixel;
            for (uint32_t c = 0; c < out.channels; ++c) {
                const bool wide = in.size == 4u;
                const int32_t first = wide ? word_at(a + 4u * (uint64_t)c) : (int8_t)a[c];
                const int32_t second = wide ? word_at(b + 4u * (uint64_t)c) : (int8_t)b[c];
                const int32_t value = element(job, &end, first, second);
                if (out.size == 4u) {
                    memcpy(to + 4u * (uint64_t)c, &value, sizeof value);
                } else {
                    to[c] = (uint8_t)value;
                }
            }
        }
    }
}
