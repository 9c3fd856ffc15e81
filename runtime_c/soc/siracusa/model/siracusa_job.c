/* A job from its registers: values that make no sense are complaints. */
#include <inttypes.h>

#include "siracusa_model.h"

/* Bits of CONF0 that may be set. */
#define CONF0_KNOWN                                                                              \
    (SIRACUSA_NEUREKA_WEIGHT_BITS(SIRACUSA_NEUREKA_MAX_WEIGHT_BITS) | SIRACUSA_NEUREKA_SCALED |  \
     SIRACUSA_NEUREKA_MODE(3u) | SIRACUSA_NEUREKA_WEIGHT_MEMORY | SIRACUSA_NEUREKA_PREFETCH |    \
     SIRACUSA_NEUREKA_SCALE_32 | SIRACUSA_NEUREKA_STREAM_IN | SIRACUSA_NEUREKA_WEIGHT_OFFSET |   \
     SIRACUSA_NEUREKA_SHIFT(SIRACUSA_NEUREKA_MAX_SHIFT) | SIRACUSA_NEUREKA_OUTPUT_32 |           \
     SIRACUSA_NEUREKA_SIGNED_OUTPUT | SIRACUSA_NEUREKA_CHANNEL_SHIFT | SIRACUSA_NEUREKA_BIAS |   \
     SIRACUSA_NEUREKA_SIGNED_INPUT)

static const uint32_t KI_CHANNELS[] = {SIRACUSA_NEUREKA_INPUT_CHANNELS};
static const uint32_t KO_CHANNELS[] = {SIRACUSA_NEUREKA_OUTPUT_CHANNELS};

uint32_t siracusa_ki_channels(uint32_t mode) { return KI_CHANNELS[mode]; }

uint32_t siracusa_ko_channels(uint32_t mode) { return KO_CHANNELS[mode]; }

uint32_t siracusa_ko(const siracusa_job_t *job, uint32_t tile)
{
    return tile + 1u == job->ko_tiles ? job->last_ko : KO_CHANNELS[job->mode];
}

uint32_t siracusa_ki(const siracusa_job_t *job, uint32_t tile)
{
    return tile + 1u == job->ki_tiles ? job->last_ki : KI_CHANNELS[job->mode];
}

uint32_t siracusa_outputs(const siracusa_axis_t *axis, uint32_t block)
{
    return block + 1u == axis->blocks ? axis->last : SIRACUSA_BLOCK;
}

uint32_t siracusa_loaded(const siracusa_job_t *job, const siracusa_axis_t *axis, uint32_t block)
{
    return block + 1u == axis->blocks ? axis->loaded : SIRACUSA_BLOCK + siracusa_filter(job) - 1u;
}

/* Halves of a job register. */
static uint32_t high(uint32_t value) { return value >> 16; }

static uint32_t low(uint32_t value) { return value & 0xFFFFu; }

static bool check_conf0(htvm_soc_t *soc, const siracusa_job_t *job)
{
    const uint32_t conf0 = job->conf0;
    if ((conf0 & ~CONF0_KNOWN) != 0 ||
        job->mode > SIRACUSA_NEUREKA_MODE_1X1) {
        return siracusa_complain(soc, "job %" PRIu32 ": conf0 0x%08" PRIX32
                                 " has a mode or a bit that does not exist",
                                 job->id, conf0);
    }
    if (job->weight_bits < SIRACUSA_NEUREKA_MIN_WEIGHT_BITS) {
        return siracusa_complain(soc, "job %" PRIu32 ": weights of %" PRIu32
                                 " bits; there are %u to %u",
                                 job->id, job->weight_bits, SIRACUSA_NEUREKA_MIN_WEIGHT_BITS,
                                 SIRACUSA_NEUREKA_MAX_WEIGHT_BITS);
    }
    const bool scaled = siracusa_flag(job, SIRACUSA_NEUREKA_SCALED);
    if (siracusa_flag(job, SIRACUSA_NEUREKA_OUTPUT_32) == scaled) {
        return siracusa_complain(soc, "job %" PRIu32 ": conf0 0x%08" PRIX32
                                 " has %s; scaled sums are 8 bits wide, others 32",
                                 job->id, conf0,
                                 scaled ? "scaled sums of 32 bits" : "sums of 8 bits");
    }
    if (scaled && siracusa_flag(job, SIRACUSA_NEUREKA_STREAM_IN)) {
        return siracusa_complain(soc, "job %" PRIu32 ": conf0 0x%08" PRIX32
                                 " streams partial sums into scaled ones",
                                 job->id, conf0);
    }
    return true;
}

static bool check_tiles(htvm_soc_t *soc, const siracusa_job_t *job)
{
    const uint32_t ko = KO_CHANNELS[job->mode];
    const uint32_t ki = KI_CHANNELS[job->mode];
    if (job->ko_tiles == 0 || job->ki_tiles == 0 || job->last_ko == 0 || job->last_ki == 0 ||
        job->last_ko > ko || job->last_ki > ki) {
        return siracusa_complain(soc, "job %" PRIu32 ": %" PRIu32 " tiles of output channels, the "
                                 "last with %" PRIu32 " of %" PRIu32 ", and %" PRIu32
                                 " of input channels, the last with %" PRIu32 " of %" PRIu32,
                                 job->id, job->ko_tiles, job->last_ko, ko, job->ki_tiles,
                                 job->last_ki, ki);
    }
    if (job->mode == SIRACUSA_NEUREKA_MODE_DEPTHWISE &&
        (job->ko_tiles != job->ki_tiles || job->last_ko != job->last_ki)) {
        return siracusa_complain(soc, "job %" PRIu32 ": depthwise with %" PRIu32 " tiles of output"
                                 " channels (last %" PRIu32 "), but %" PRIu32
                                 " of input channels (last %" PRIu32 ")",
                                 job->id, job->ko_tiles, job->last_ko, job->ki_tiles,
                                 job->last_ki);
    }
    return true;
}

/* One axis of the output; `after` is the padding behind the last input. */
static bool check_axis(htvm_soc_t *soc, const siracusa_job_t *job, const char *name,
                       const siracusa_axis_t *axis, uint32_t after)
{
    const uint32_t halo = siracusa_filter(job) - 1u;
    if (axis->blocks == 0 || axis->last == 0 || axis->last > SIRACUSA_BLOCK) {
        return siracusa_complain(soc, "job %" PRIu32 ": %" PRIu32 " blocks of %s, the last of %"
                                 PRIu32 "; a block has 1 to %u",
                                 job->id, axis->blocks, name, axis->last, SIRACUSA_BLOCK);
    }
    const uint32_t most = halo == 0 ? 0 : SIRACUSA_NEUREKA_MAX_PADDING;
    if (axis->before > most || after > most) {
        return siracusa_complain(soc, "job %" PRIu32 ": padding of %" PRIu32 " and %" PRIu32
                                 " %s; this mode has at most %" PRIu32,
                                 job->id, axis->before, after, name, most);
    }
    if (axis->loaded + after != axis->last + halo) {
        return siracusa_complain(soc, "job %" PRIu32 ": the last block reads %" PRIu32 " %s and %"
                                 PRIu32 " of padding, but its %" PRIu32 " outputs need %" PRIu32,
                                 job->id, axis->loaded, name, after, axis->last,
                                 axis->last + halo);
    }
    /* The block before the last reads beyond its own, and knows no padding behind it. */
    const uint32_t needed = axis->blocks == 1 ? axis->before + 1u : halo;
    if (axis->loaded < needed) {
        return siracusa_complain(soc, "job %" PRIu32 ": the last block reads %" PRIu32
                                 " %s besides the padding behind; at least %" PRIu32
                                 " must be there",
                                 job->id, axis->loaded, name, needed);
    }
    return true;
}

static bool check_fixed(htvm_soc_t *soc, const siracusa_job_t *job)
{
    const uint32_t word = SIRACUSA_NEUREKA_WORD_BYTES;
    const uint32_t planes = job->mode == SIRACUSA_NEUREKA_MODE_1X1 ? 1u : job->weight_bits;
    const bool depthwise = job->mode == SIRACUSA_NEUREKA_MODE_DEPTHWISE;
    const struct {
        uint32_t number, value;
    } fixed[] = {
        {SIRACUSA_NEUREKA_INPUT_NONE, 0},
        {SIRACUSA_NEUREKA_OUTPUT_WORD, word},
        {SIRACUSA_NEUREKA_WEIGHT_WORD, word},
        {SIRACUSA_NEUREKA_WEIGHT_CHANNEL, depthwise ? 0 : word * planes * job->ki_tiles},
        {SIRACUSA_NEUREKA_WEIGHT_NONE, 0},
    };
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++) {
        const uint32_t value = soc->reg[job->context][fixed[i].number];
        if (value != fixed[i].value) {
            return siracusa_complain(soc, "job %" PRIu32 ": job register %" PRIu32 " is %" PRIu32
                                     "; in this job it is %" PRIu32,
                                     job->id, fixed[i].number, value, fixed[i].value);
        }
    }
    const uint32_t taps = siracusa_filter(job) * siracusa_filter(job);
    if (job->mask >> taps != 0 || (taps == 1 && job->mask != 0)) {
        return siracusa_complain(soc, "job %" PRIu32 ": mask 0x%08" PRIX32
                                 " for a filter with %" PRIu32 " taps",
                                 job->id, job->mask, taps);
    }
    return true;
}

bool siracusa_read_job(htvm_soc_t *soc, siracusa_job_t *job)
{
    const uint32_t *reg = soc->reg[job->context];
    const uint32_t padding = reg[SIRACUSA_NEUREKA_PADDING];
    job->conf0 = reg[SIRACUSA_NEUREKA_CONF0];
    job->mode = job->conf0 >> 5 & 3u;
    job->weight_bits = (job->conf0 & 7u) + 1u;
    job->ko_tiles = high(reg[SIRACUSA_NEUREKA_TILES]);
    job->ki_tiles = low(reg[SIRACUSA_NEUREKA_TILES]);
    job->last_ko = high(reg[SIRACUSA_NEUREKA_LAST_CHANNELS]);
    job->last_ki = low(reg[SIRACUSA_NEUREKA_LAST_CHANNELS]);
    job->rows = (siracusa_axis_t){
        .blocks = high(reg[SIRACUSA_NEUREKA_BLOCKS]),
        .last = high(reg[SIRACUSA_NEUREKA_LAST_OUTPUTS]),
        .before = padding >> 28,
        .loaded = high(reg[SIRACUSA_NEUREKA_LAST_INPUTS]),
    };
    job->columns = (siracusa_axis_t){
        .blocks = low(reg[SIRACUSA_NEUREKA_BLOCKS]),
        .last = low(reg[SIRACUSA_NEUREKA_LAST_OUTPUTS]),
        .before = padding >> 16 & 15u,
        .loaded = low(reg[SIRACUSA_NEUREKA_LAST_INPUTS]),
    };
    job->offset = reg[SIRACUSA_NEUREKA_OFFSET];
    job->mask = reg[SIRACUSA_NEUREKA_MASK];
    if ((padding & 0xFF00u) != 0) {
        return siracusa_complain(soc, "job %" PRIu32 ": padding with %" PRIu32
                                 ", which is not a byte",
                                 job->id, padding & 0xFFFFu);
    }
    job->padding = (int32_t)(padding & 0xFFu);
    if (siracusa_flag(job, SIRACUSA_NEUREKA_SIGNED_INPUT) && job->padding > INT8_MAX) {
        job->padding -= 256;
    }
    return check_conf0(soc, job) && check_tiles(soc, job) &&
           check_axis(soc, job, "rows", &job->rows, padding >> 20 & 15u) &&
           check_axis(soc, job, "columns", &job->columns, padding >> 24 & 15u) &&
           check_fixed(soc, job);
}
