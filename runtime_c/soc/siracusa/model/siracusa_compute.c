/* What a job computes, in the engine's order: Ko tiles, blocks, Ki tiles. */
#include <inttypes.h>
#include <string.h>

#include "siracusa_model.h"

/* A patch of inputs, padded; channels that a tile lacks are 0. */
typedef int32_t patch_t[SIRACUSA_PATCH][SIRACUSA_PATCH][SIRACUSA_CHANNELS];

/* Sums of a block by channel, modulo 2^32. */
typedef uint32_t sums_t[SIRACUSA_CHANNELS][SIRACUSA_BLOCK][SIRACUSA_BLOCK];

/* One channel's weights for a Ki tile, the offset included. */
typedef uint32_t weights_t[SIRACUSA_TAPS][SIRACUSA_CHANNELS];

/* Block (i, j) of Ko tile `ko`. */
typedef struct {
    uint32_t ko, i, j, rows, columns;
} block_t;

static int32_t as_signed(uint32_t value)
{
    int32_t result;
    memcpy(&result, &value, sizeof result);
    return result;
}

static uint32_t read_word(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* Arithmetic shift, rounding down. */
static int64_t shift_right(int64_t value, uint32_t shift)
{
    return value >= 0 ? value >> shift : ~(~value >> shift);
}

static const uint8_t *pixel_of(const siracusa_area_t *area, uint32_t row, uint32_t column)
{
    return area->memory + (size_t)row * area->row_stride + (size_t)column * area->pixel_stride;
}

/* The place of output channel 0 of the Ko tile at row y, column x of the block. */
static uint8_t *output_of(const siracusa_job_t *job, const block_t *b, uint32_t y, uint32_t x,
                          uint32_t wide)
{
    const siracusa_area_t *out = &job->areas[OUTPUT];
    const size_t channel = (size_t)b->ko * siracusa_ko_channels(job->mode);
    return out->memory + (size_t)(b->i * SIRACUSA_BLOCK + y) * out->row_stride +
           (size_t)(b->j * SIRACUSA_BLOCK + x) * out->pixel_stride + channel * wide;
}

static void load(const siracusa_job_t *job, const block_t *b, uint32_t ki, patch_t patch)
{
    const siracusa_area_t *in = &job->areas[INPUT];
    const bool is_signed = siracusa_flag(job, SIRACUSA_NEUREKA_SIGNED_INPUT);
    const size_t first = (size_t)ki * siracusa_ki_channels(job->mode);
    const uint32_t channels = siracusa_ki(job, ki);
    memset(patch, 0, sizeof(patch_t));
    for (uint32_t y = 0; y < b->rows + siracusa_filter(job) - 1u; y++) {
        for (uint32_t x = 0; x < b->columns + siracusa_filter(job) - 1u; x++) {
            /* Above and left of the input these wrap around, and are as far outside. */
            const uint32_t row = b->i * SIRACUSA_BLOCK + y - job->rows.before;
            const uint32_t column = b->j * SIRACUSA_BLOCK + x - job->columns.before;
            const bool padded = row >= in->rows || column >= in->pixels;
            const uint8_t *at = padded ? NULL : pixel_of(in, row, column) + first;
            for (uint32_t c = 0; c < channels; c++) {
                const int32_t value = padded ? job->padding : at[c];
                const bool negative = is_signed && !padded && value > INT8_MAX;
                patch[y][x][c] = negative ? value - 256 : value;
            }
        }
    }
}

static uint32_t bit(const uint8_t *word, uint32_t number)
{
    return (uint32_t)word[number / 8u] >> number % 8u & 1u;
}

/* The weights that begin at word number `word`: one word for each plane, or with 1x1 one for all. */
static void unpack(const siracusa_job_t *job, size_t word, uint32_t channels, weights_t weights)
{
    const uint8_t *from = job->areas[WEIGHTS].memory + word * SIRACUSA_NEUREKA_WORD_BYTES;
    const uint32_t taps = siracusa_filter(job) * siracusa_filter(job);
    for (uint32_t tap = 0; tap < taps; tap++) {
        for (uint32_t c = 0; c < channels; c++) {
            uint32_t value = 0;
            for (uint32_t plane = 0; plane < job->weight_bits; plane++) {
                const uint32_t set =
                    job->mode == SIRACUSA_NEUREKA_MODE_1X1
                        ? bit(from, 32u * (c / 4u) + 4u * plane + c % 4u)
                        : bit(from + plane * SIRACUSA_NEUREKA_WORD_BYTES,
                              siracusa_ki_channels(job->mode) * tap + c);
                value |= set << plane;
            }
            weights[tap][c] = (job->mask >> tap & 1u) != 0 ? 0 : value + job->offset;
        }
    }
}

/* Adds the products of channels [from, to) to the sums of one output channel. */
static void accumulate(const siracusa_job_t *job, const block_t *b, patch_t patch,
                       weights_t weights, uint32_t from, uint32_t to,
                       uint32_t sums[SIRACUSA_BLOCK][SIRACUSA_BLOCK])
{
    const uint32_t filter = siracusa_filter(job);
    for (uint32_t y = 0; y < b->rows; y++) {
        for (uint32_t x = 0; x < b->columns; x++) {
            uint32_t sum = sums[y][x];
            for (uint32_t tap = 0; tap < filter * filter; tap++) {
                const int32_t *values = patch[y + tap / filter][x + tap % filter];
                for (uint32_t c = from; c < to; c++) {
                    sum += (uint32_t)values[c] * weights[tap][c];
                }
            }
            sums[y][x] = sum;
        }
    }
}

static void multiply(const siracusa_job_t *job, const block_t *b, sums_t sums)
{
    patch_t patch;
    weights_t weights;
    const uint32_t planes = job->mode == SIRACUSA_NEUREKA_MODE_1X1 ? 1u : job->weight_bits;
    if (job->mode == SIRACUSA_NEUREKA_MODE_DEPTHWISE) {
        load(job, b, b->ko, patch);
        unpack(job, (size_t)b->ko * planes, siracusa_ko(job, b->ko), weights);
        for (uint32_t c = 0; c < siracusa_ko(job, b->ko); c++) {
            accumulate(job, b, patch, weights, c, c + 1u, sums[c]);
        }
        return;
    }
    for (uint32_t ki = 0; ki < job->ki_tiles; ki++) {
        load(job, b, ki, patch);
        for (uint32_t k = 0; k < siracusa_ko(job, b->ko); k++) {
            const size_t channel = (size_t)b->ko * siracusa_ko_channels(job->mode) + k;
            const uint32_t channels = siracusa_ki(job, ki);
            unpack(job, (channel * job->ki_tiles + ki) * planes, channels, weights);
            accumulate(job, b, patch, weights, 0, channels, sums[k]);
        }
    }
}

/* Sums begin with 0, or with what the output holds. */
static void begin(const siracusa_job_t *job, const block_t *b, sums_t sums)
{
    memset(sums, 0, sizeof(sums_t));
    if (!siracusa_flag(job, SIRACUSA_NEUREKA_STREAM_IN)) {
        return;
    }
    for (uint32_t y = 0; y < b->rows; y++) {
        for (uint32_t x = 0; x < b->columns; x++) {
            const uint8_t *from = output_of(job, b, y, x, 4);
            for (uint32_t k = 0; k < siracusa_ko(job, b->ko); k++) {
                sums[k][y][x] = read_word(from + 4u * k);
            }
        }
    }
}

static void store_sums(const siracusa_job_t *job, const block_t *b, sums_t sums)
{
    for (uint32_t y = 0; y < b->rows; y++) {
        for (uint32_t x = 0; x < b->columns; x++) {
            uint8_t *to = output_of(job, b, y, x, 4);
            for (uint32_t k = 0; k < siracusa_ko(job, b->ko); k++) {
                for (uint32_t byte = 0; byte < 4; byte++) {
                    to[4u * k + byte] = (uint8_t)(sums[k][y][x] >> 8u * byte);
                }
            }
        }
    }
}

/* A scaled sum before it is clipped; false if it leaves 32 bits, where public models disagree. */
static bool scale(const siracusa_job_t *job, uint32_t channel, uint32_t shift, int32_t sum,
                  int64_t *result)
{
    const siracusa_area_t *areas = job->areas;
    const bool wide = siracusa_flag(job, SIRACUSA_NEUREKA_SCALE_32);
    const uint32_t factor = wide ? read_word(areas[SCALES].memory + (size_t)4 * channel)
                                 : areas[SCALES].memory[channel];
    int64_t value = sum * (int64_t)factor;
    if (siracusa_flag(job, SIRACUSA_NEUREKA_BIAS)) {
        value = as_signed((uint32_t)(uint64_t)value);
        value += as_signed(read_word(areas[BIASES].memory + (size_t)4 * channel));
        if (value < INT32_MIN || value > INT32_MAX) {
            *result = value;
            return false;
        }
    }
    *result = shift_right(value, shift);
    return true;
}

static uint8_t clipped(const siracusa_job_t *job, int64_t value)
{
    const bool is_signed = siracusa_flag(job, SIRACUSA_NEUREKA_SIGNED_OUTPUT);
    const int64_t low = is_signed ? INT8_MIN : 0;
    const int64_t high = is_signed ? INT8_MAX : UINT8_MAX;
    return (uint8_t)(value < low ? low : value > high ? high : value);
}

/* Scales and stores output channel k of the block's Ko tile. */
static bool store_scaled(htvm_soc_t *soc, const siracusa_job_t *job, const block_t *b, uint32_t k,
                         uint32_t sums[SIRACUSA_BLOCK][SIRACUSA_BLOCK])
{
    const uint32_t channel = b->ko * siracusa_ko_channels(job->mode) + k;
    uint32_t shift = job->conf0 >> 16 & 31u;
    if (siracusa_flag(job, SIRACUSA_NEUREKA_CHANNEL_SHIFT)) {
        shift = job->areas[SHIFTS].memory[channel];
        if (shift > SIRACUSA_NEUREKA_MAX_SHIFT) {
            return siracusa_complain(soc, "job %" PRIu32 ": shift %" PRIu32 " of output channel %"
                                     PRIu32 " is out of range (0 to %u)",
                                     job->id, shift, channel, SIRACUSA_NEUREKA_MAX_SHIFT);
        }
    }
    for (uint32_t y = 0; y < b->rows; y++) {
        for (uint32_t x = 0; x < b->columns; x++) {
            int64_t value;
            if (!scale(job, channel, shift, as_signed(sums[y][x]), &value)) {
                return siracusa_complain(soc, "job %" PRIu32 ": the scaled sum %" PRId64
                                         " of output channel %" PRIu32 ", row %" PRIu32
                                         ", column %" PRIu32 ", bias included, leaves 32 bits",
                                         job->id, value, channel, b->i * SIRACUSA_BLOCK + y,
                                         b->j * SIRACUSA_BLOCK + x);
            }
            output_of(job, b, y, x, 1)[k] = clipped(job, value);
        }
    }
    return true;
}

static bool compute_block(htvm_soc_t *soc, const siracusa_job_t *job, const block_t *b)
{
    sums_t sums;
    begin(job, b, sums);
    multiply(job, b, sums);
    if (!siracusa_flag(job, SIRACUSA_NEUREKA_SCALED)) {
        store_sums(job, b, sums);
        return true;
    }
    for (uint32_t k = 0; k < siracusa_ko(job, b->ko); k++) {
        if (!store_scaled(soc, job, b, k, sums[k])) {
            return false;
        }
    }
    return true;
}

bool siracusa_compute(htvm_soc_t *soc, const siracusa_job_t *job)
{
    block_t b;
    for (b.ko = 0; b.ko < job->ko_tiles; b.ko++) {
        for (b.i = 0; b.i < job->rows.blocks; b.i++) {
            for (b.j = 0; b.j < job->columns.blocks; b.j++) {
                b.rows = siracusa_outputs(&job->rows, b.i);
                b.columns = siracusa_outputs(&job->columns, b.j);
                if (!compute_block(soc, job, &b)) {
                    return false;
                }
            }
        }
    }
    return true;
}
