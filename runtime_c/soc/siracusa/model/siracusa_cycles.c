/* How long a job takes, block by block, if no memory ever waits. */
#include "siracusa_model.h"

#define BY_MODE(name, values) static const uint32_t name[] = {values}

BY_MODE(LOAD, SIRACUSA_NEUREKA_LOAD_CYCLES);
BY_MODE(PREPARE, SIRACUSA_NEUREKA_PREPARE_CYCLES);
BY_MODE(LEAVE, SIRACUSA_NEUREKA_LEAVE_CYCLES);
BY_MODE(PREFETCH_PREPARE, SIRACUSA_NEUREKA_PREFETCH_PREPARE_CYCLES);
BY_MODE(PREFETCH_WINDOW, SIRACUSA_NEUREKA_PREFETCH_WINDOW_CYCLES);
BY_MODE(PREFETCH_LAST, SIRACUSA_NEUREKA_PREFETCH_LAST_CYCLES);
BY_MODE(STORE, SIRACUSA_NEUREKA_STORE_CYCLES);

static bool is_pointwise(const siracusa_job_t *job)
{
    return job->mode == SIRACUSA_NEUREKA_MODE_1X1;
}

/* Ki tiles of one block. */
static uint32_t ki_tiles(const siracusa_job_t *job)
{
    return job->mode == SIRACUSA_NEUREKA_MODE_DEPTHWISE ? 1u : job->ki_tiles;
}

/* Cycles in which the array computes one Ki tile. */
static uint32_t compute(const siracusa_job_t *job, uint32_t channels)
{
    return channels * (is_pointwise(job) ? 1u : job->weight_bits);
}

/* Partial sums, scaling and storing of a block with `words` pixels' words to store. */
static uint64_t output_cycles(const siracusa_job_t *job, uint32_t ko, uint32_t words)
{
    const uint32_t channels = siracusa_ko(job, ko);
    uint64_t total = STORE[job->mode] + SIRACUSA_NEUREKA_BLOCK_SLACK_CYCLES;
    if (!siracusa_flag(job, SIRACUSA_NEUREKA_SCALED)) {
        words *= siracusa_up(4u * channels, SIRACUSA_NEUREKA_WORD_BYTES);
        if (siracusa_flag(job, SIRACUSA_NEUREKA_STREAM_IN)) {
            total += words + SIRACUSA_NEUREKA_STREAM_IN_CYCLES;
        }
        return total + words;
    }
    /* All but the last Ko tile read scales for as many channels as the engine has. */
    const uint32_t scales = ko + 1u == job->ko_tiles ? channels : SIRACUSA_NEUREKA_SCALE_CHANNELS;
    const uint32_t wide = siracusa_flag(job, SIRACUSA_NEUREKA_SCALE_32) ? 4u : 1u;
    total += siracusa_up(scales * wide, SIRACUSA_NEUREKA_SCALE_WORD_BYTES);
    total += SIRACUSA_NEUREKA_SCALE_CYCLES;
    total += siracusa_flag(job, SIRACUSA_NEUREKA_CHANNEL_SHIFT) ? SIRACUSA_NEUREKA_SHIFT_CYCLES : 0;
    total += siracusa_flag(job, SIRACUSA_NEUREKA_BIAS) ? SIRACUSA_NEUREKA_BIAS_CYCLES
                                                       : SIRACUSA_NEUREKA_NO_BIAS_CYCLES;
    return total + words;
}

/* One Ko tile.  With prefetch, what was computed before hides behind loading the next patch, but
 * for the last computation. */
static uint64_t ko_tile_cycles(const siracusa_job_t *job, uint32_t ko)
{
    const uint32_t mode = job->mode;
    const bool prefetch = siracusa_flag(job, SIRACUSA_NEUREKA_PREFETCH);
    const uint64_t busy = compute(job, siracusa_ko(job, ko)) + LEAVE[mode];
    uint64_t total = 0;
    uint64_t pending = 0; /* cycles of the Ki tile before that loading may hide */
    for (uint32_t i = 0; i < job->rows.blocks; i++) {
        for (uint32_t j = 0; j < job->columns.blocks; j++) {
            const uint32_t pixels = is_pointwise(job) ? SIRACUSA_BLOCK * SIRACUSA_BLOCK
                                                      : siracusa_loaded(job, &job->rows, i) *
                                                            siracusa_loaded(job, &job->columns, j);
            const uint64_t window = pixels + PREFETCH_WINDOW[mode];
            for (uint32_t ki = 0; ki < ki_tiles(job); ki++) {
                total += LOAD[mode] + pixels;
                if (!prefetch) {
                    total += PREPARE[mode] + busy;
                    continue;
                }
                total += PREFETCH_PREPARE[mode] + (pending > window ? pending - window : 0);
                pending = PREFETCH_PREPARE[mode] + busy;
            }
            const uint32_t words = (siracusa_outputs(&job->rows, i) - 1u) * SIRACUSA_BLOCK +
                                   siracusa_outputs(&job->columns, j);
            total += output_cycles(job, ko, words);
        }
    }
    return prefetch ? total + busy + PREFETCH_LAST[mode] : total;
}

uint64_t siracusa_cycles(const siracusa_job_t *job)
{
    uint64_t total = SIRACUSA_NEUREKA_JOB_CYCLES;
    for (uint32_t ko = 0; ko < job->ko_tiles; ko++) {
        total += ko_tile_cycles(job, ko);
    }
    return total;
}

uint64_t siracusa_array_cycles(const siracusa_job_t *job)
{
    uint64_t total = 0;
    for (uint32_t ko = 0; ko < job->ko_tiles; ko++) {
        total += compute(job, siracusa_ko(job, ko));
    }
    return total * ki_tiles(job) * job->rows.blocks * job->columns.blocks;
}

/* Words of weights that the engine reads from L1 for a Ki tile of a block. */
static uint32_t weight_words(const siracusa_job_t *job, uint32_t channels)
{
    if (siracusa_flag(job, SIRACUSA_NEUREKA_WEIGHT_MEMORY)) {
        return 0;
    }
    const bool depthwise = job->mode == SIRACUSA_NEUREKA_MODE_DEPTHWISE;
    return depthwise ? job->weight_bits : compute(job, channels);
}

/* Words of scales, biases and shifts of a block. */
static uint32_t factor_words(const siracusa_job_t *job, uint32_t channels)
{
    if (!siracusa_flag(job, SIRACUSA_NEUREKA_SCALED)) {
        return 0;
    }
    const uint32_t width = SIRACUSA_NEUREKA_WORD_BYTES;
    const uint32_t wide = siracusa_flag(job, SIRACUSA_NEUREKA_SCALE_32) ? 4u : 1u;
    uint32_t total = siracusa_up(wide * channels, width);
    total += siracusa_flag(job, SIRACUSA_NEUREKA_BIAS) ? siracusa_up(4u * channels, width) : 0u;
    return total + (siracusa_flag(job, SIRACUSA_NEUREKA_CHANNEL_SHIFT) ? 1u : 0u);
}

/* Words of a block's results, written, and where partial sums are added, read, too. */
static uint32_t result_words(const siracusa_job_t *job, uint32_t outputs, uint32_t channels)
{
    if (siracusa_flag(job, SIRACUSA_NEUREKA_SCALED)) {
        return outputs;
    }
    const uint32_t words = outputs * siracusa_up(4u * channels, SIRACUSA_NEUREKA_WORD_BYTES);
    return siracusa_flag(job, SIRACUSA_NEUREKA_STREAM_IN) ? 2u * words : words;
}

uint64_t siracusa_accesses(const siracusa_job_t *job)
{
    uint64_t total = 0;
    for (uint32_t ko = 0; ko < job->ko_tiles; ko++) {
        const uint32_t channels = siracusa_ko(job, ko);
        for (uint32_t i = 0; i < job->rows.blocks; i++) {
            for (uint32_t j = 0; j < job->columns.blocks; j++) {
                const uint32_t pixels = siracusa_loaded(job, &job->rows, i) *
                                        siracusa_loaded(job, &job->columns, j);
                const uint32_t outputs = siracusa_outputs(&job->rows, i) *
                                         siracusa_outputs(&job->columns, j);
                total += ki_tiles(job) * (pixels + weight_words(job, channels));
                total += factor_words(job, channels) + result_words(job, outputs, channels);
            }
        }
    }
    return total;
}

uint64_t siracusa_macs(const siracusa_job_t *job)
{
    const siracusa_area_t *out = &job->areas[OUTPUT];
    const uint32_t outputs = (job->ko_tiles - 1u) * siracusa_ko_channels(job->mode) + job->last_ko;
    const bool depthwise = job->mode == SIRACUSA_NEUREKA_MODE_DEPTHWISE;
    const uint32_t inputs = depthwise ? 1u : job->areas[INPUT].bytes;
    const uint32_t taps = siracusa_filter(job) * siracusa_filter(job);
    return (uint64_t)out->rows * out->pixels * outputs * inputs * taps;
}
