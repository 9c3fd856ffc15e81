/* Ethos-U: weights as they are compressed: Golomb-Rice codes of indices into a palette, and of runs
 * of zeros between them.
 *
 * Bits come least significant first.  A stream has slices: a header, then chunks in which unary
 * parts of some weights and runs are followed by the remainders of the chunk before.  Weights and
 * runs are never far from each other, so few of them are kept. */
#include "ethos_u_model.h"

enum { NO_RUNS = 6, END = 7, PLAIN = 7, AHEAD = 8, WINDOW = 64, WEIGHT_CODES = 512 };

static uint32_t take(ethos_u_stream_t *stream, uint32_t count)
{
    if (count > stream->bits - stream->at) {
        stream->ended = true;
        stream->at = stream->bits;
        return 0;
    }
    /* At most 15 bits: three bytes have them. */
    const uint8_t *const at = stream->bytes + stream->at / 8u;
    const uint64_t left = (stream->bits - stream->at / 8u * 8u) / 8u;
    uint32_t value = left > 0 ? at[0] : 0;
    value |= left > 1 ? (uint32_t)at[1] << 8 : 0;
    value |= left > 2 ? (uint32_t)at[2] << 16 : 0;
    value >>= stream->at % 8u;
    stream->at += count;
    return value & ((1u << count) - 1u);
}

void ethos_u_stream(ethos_u_stream_t *stream, const uint8_t *bytes, uint64_t count)
{
    *stream = (ethos_u_stream_t){.bytes = bytes, .bits = count * 8u, .palette_bits = 2};
}

/* Bits of an index into a palette. */
static uint32_t index_bits(uint32_t size)
{
    uint32_t bits = 0;
    while (1u << bits < size) {
        ++bits;
    }
    return bits;
}

static void read_header(ethos_u_stream_t *stream)
{
    uint32_t run_width = take(stream, 3);
    while (run_width == END && !stream->ended) {
        /* The end of a part, which fills its last byte. */
        stream->at = (stream->at + 7u) / 8u * 8u;
        run_width = take(stream, 3);
    }
    stream->runs = run_width != NO_RUNS;
    stream->count = take(stream, 15) + 1u;
    stream->taken = 0;
    const uint32_t width = take(stream, 3);
    stream->truncated = take(stream, 1) != 0;
    stream->fresh = take(stream, 1) != 0;
    stream->plain = width == PLAIN;
    if (stream->fresh) {
        stream->offset = take(stream, 5);
        const uint32_t size = take(stream, 5);
        stream->palette_size = size + (size > 0 ? 1u : 0u);
        stream->palette_bits = take(stream, 3) + 2u;
        for (uint32_t i = 0; i < stream->palette_size; ++i) {
            stream->palette[i] = take(stream, stream->palette_bits);
        }
    }
    const uint32_t plain_width =
        stream->palette_size > 0 ? index_bits(stream->palette_size) : stream->palette_bits;
    stream->leading = stream->fresh && stream->runs;
    stream->weight = (struct ethos_u_rice){
        .want = stream->count,
        .width = stream->plain ? plain_width : width,
    };
    stream->run = (struct ethos_u_rice){
        .want = stream->runs ? stream->count + (stream->fresh ? 1u : 0u) : 0,
        .width = stream->runs ? run_width : 0,
    };
}

static void read_remainders(ethos_u_stream_t *stream, struct ethos_u_rice *code)
{
    for (uint32_t i = 0; i < code->waiting && code->have < code->want; ++i) {
        code->value[code->have++ % WINDOW] =
            (code->quotient[i] << code->width) + take(stream, code->width);
    }
    code->waiting = 0;
}

static uint32_t read_runs(ethos_u_stream_t *stream, uint32_t *quotient)
{
    struct ethos_u_rice *const code = &stream->run;
    const uint32_t count = code->width < 3 ? 12 : 8, bits = take(stream, count);
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; ++i) {
        if ((bits >> i & 1u) != 0) {
            ++code->carry;
        } else {
            quotient[found++] = code->carry;
            code->carry = 0;
        }
    }
    code->parsed += found;
    return found;
}

/* `first`: the first unary bits, one per place; places that have one get a second. */
static uint32_t read_weights(ethos_u_stream_t *stream, uint32_t first, uint32_t *quotient)
{
    struct ethos_u_rice *const code = &stream->weight;
    const uint32_t count = stream->plain && code->width > 5 ? 8 : 12;
    uint32_t ones = 0, found = 0;
    for (uint32_t i = 0; i < count; ++i) {
        ones += first >> i & 1u;
    }
    uint32_t second = take(stream, ones);
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t step = 0;
        if ((first >> i & 1u) != 0) {
            step = 1u + (second & 1u);
            second >>= 1;
        }
        code->carry += step;
        if (step < 2 || stream->truncated) {
            quotient[found++] = code->carry;
            code->carry = 0;
        }
    }
    code->parsed += found;
    return found;
}

static void keep(struct ethos_u_rice *code, const uint32_t *quotient, uint32_t count)
{
    for (uint32_t i = 0; i < count; ++i) {
        code->quotient[i] = quotient[i];
    }
    code->waiting = count;
}

static void read_chunk(ethos_u_stream_t *stream)
{
    struct ethos_u_rice *const weight = &stream->weight, *const run = &stream->run;
    uint32_t weights = 0, runs = 0, weight_quotient[12] = {0}, run_quotient[12] = {0};
    const bool takes_weights = weight->parsed < weight->want &&
                               (!stream->runs || weight->parsed < run->parsed + AHEAD);
    const bool takes_runs =
        stream->runs && weight->parsed >= run->parsed && run->parsed < run->want;
    const uint32_t first = takes_weights && !stream->plain ? take(stream, 12) : 0;
    if (takes_runs) {
        runs = read_runs(stream, run_quotient);
    }
    if (takes_weights) {
        weights = read_weights(stream, first, weight_quotient);
    }
    read_remainders(stream, weight);
    read_remainders(stream, run);
    keep(weight, weight_quotient, weights);
    keep(run, run_quotient, runs);
}

static int16_t weight_of(ethos_u_stream_t *stream, uint32_t index)
{
    const uint32_t code = index < stream->palette_size
                              ? stream->palette[index]
                              : index - stream->palette_size + stream->offset;
    stream->wide = stream->wide || code >= WEIGHT_CODES;
    const int32_t size = (int32_t)(code % WEIGHT_CODES >> 1);
    return (int16_t)((code & 1u) != 0 ? -size : size);
}

/* Takes what comes next of the slice, if it was read: the first run of zeros, or a weight and the
 * run behind it. */
static bool take_next(ethos_u_stream_t *stream, int16_t *weight, bool *has_weight)
{
    *has_weight = false;
    if (stream->leading) {
        if (stream->run.have == 0) {
            return false;
        }
        stream->leading = false;
        stream->zeros = stream->run.value[0];
        return true;
    }
    const uint32_t run = stream->taken + (stream->fresh ? 1u : 0u);
    if (stream->taken == stream->weight.have || (stream->runs && run >= stream->run.have)) {
        return false;
    }
    *weight = weight_of(stream, stream->weight.value[stream->taken % WINDOW]);
    *has_weight = true;
    stream->zeros = stream->runs ? stream->run.value[run % WINDOW] : 0;
    ++stream->taken;
    return true;
}

bool ethos_u_next_weights(ethos_u_stream_t *stream, int16_t *out, uint32_t count)
{
    uint32_t done = 0;
    bool has_weight = false;
    while (done < count) {
        if (stream->zeros != 0) {
            --stream->zeros;
            out[done++] = 0;
            continue;
        }
        if (stream->taken == stream->count) {
            read_header(stream);
        } else if (!take_next(stream, &out[done], &has_weight)) {
            read_chunk(stream);
        } else if (has_weight) {
            ++done;
        }
        if (stream->ended) {
            return false;
        }
    }
    return true;
}
