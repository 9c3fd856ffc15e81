/* The bytes that a job touches: where they are, whether they meet, and whether they stay. */
#include <inttypes.h>
#include <string.h>

#include "siracusa_model.h"

/* A memory of the SoC.  The weight memory has two halves, which hold weights only. */
typedef struct {
    const char *name;
    uint32_t base, size;
} memory_t;

static const memory_t L1 = {"L1", HTVM_L1_BASE, HTVM_L1_SIZE};
static const memory_t MRAM = {"MRAM", HTVM_MRAM_BASE, HTVM_MRAM_SIZE};
static const memory_t SRAM = {"SRAM", HTVM_SRAM_BASE, HTVM_SRAM_SIZE};

uint64_t siracusa_span(const siracusa_area_t *area)
{
    /* Less than 2^19 rows or pixels of less than 2^32 bytes: no overflow. */
    return (uint64_t)(area->rows - 1u) * area->row_stride +
           (uint64_t)(area->pixels - 1u) * area->pixel_stride + area->bytes;
}

htvm_rows_t siracusa_rows(const siracusa_area_t *area)
{
    return (htvm_rows_t){area->rows, area->row_stride, area->pixels, area->pixel_stride,
                         area->bytes};
}

static bool holds(const memory_t *memory, uint32_t addr)
{
    return addr - memory->base < memory->size;
}

bool siracusa_find_in_l1(htvm_soc_t *soc, siracusa_area_t *area)
{
    const uint64_t span = siracusa_span(area);
    const uint32_t offset = area->first - L1.base;
    if (offset < L1.size && span <= L1.size - offset) {
        area->memory = soc->bus.map(soc->bus.ctx, area->first, (uint32_t)span);
    }
    if (area->memory == NULL) {
        return siracusa_dma_complain(soc, "%s at 0x%08" PRIX32 " (%" PRIu32 " x %" PRIu32
                                     " B, every %" PRIu32 " B) is not all in L1, 0x%08" PRIX32
                                     " to 0x%08" PRIX32,
                                     area->role, area->first, area->rows, area->bytes,
                                     area->row_stride, L1.base, L1.base + L1.size - 1u);
    }
    return true;
}

static bool find(htvm_soc_t *soc, const siracusa_job_t *job, siracusa_area_t *area,
                 const memory_t *memory)
{
    const uint64_t span = siracusa_span(area);
    if (!holds(memory, area->first) || span > memory->size - (area->first - memory->base)) {
        return siracusa_complain(soc, "job %" PRIu32 ": %s at 0x%08" PRIX32 " (%" PRIu64
                                 " B) are not all in %s, 0x%08" PRIX32 " to 0x%08" PRIX32,
                                 job->id, area->role, area->first, span, memory->name,
                                 memory->base, memory->base + memory->size - 1u);
    }
    area->memory = soc->bus.map(soc->bus.ctx, area->first, (uint32_t)span);
    if (area->memory == NULL) {
        return siracusa_complain(soc, "job %" PRIu32 ": %s at 0x%08" PRIX32 " (%" PRIu64
                                 " B) are not in memory",
                                 job->id, area->role, area->first, span);
    }
    return true;
}

/* Whether the areas of all outputs are apart from each other; marks their bytes. */
static bool mark_output(htvm_soc_t *soc, const siracusa_job_t *job)
{
    const siracusa_area_t *out = &job->areas[OUTPUT];
    const uint32_t first = out->first - HTVM_L1_BASE;
    bool meet = false; /* at the latest after as many bytes as L1 has */
    memset(soc->written, 0, sizeof soc->written);
    for (uint32_t row = 0; row < out->rows && !meet; row++) {
        for (uint32_t pixel = 0; pixel < out->pixels && !meet; pixel++) {
            uint8_t *at = soc->written + first + row * out->row_stride + pixel * out->pixel_stride;
            meet = memchr(at, 1, out->bytes) != NULL;
            memset(at, 1, out->bytes);
        }
    }
    if (meet) {
        return siracusa_complain(soc, "job %" PRIu32 ": outputs at 0x%08" PRIX32 " (%" PRIu32
                                 " x %" PRIu32 " pixels of %" PRIu32
                                 " B) overwrite each other: a row every %" PRIu32
                                 " B, a pixel every %" PRIu32 " B",
                                 job->id, out->first, out->rows, out->pixels, out->bytes,
                                 out->row_stride, out->pixel_stride);
    }
    return true;
}

/* Whether an area in L1 has a marked byte. */
static bool is_marked(const htvm_soc_t *soc, const siracusa_area_t *area)
{
    const uint32_t first = area->first - HTVM_L1_BASE;
    for (uint32_t row = 0; row < area->rows; row++) {
        for (uint32_t pixel = 0; pixel < area->pixels; pixel++) {
            const uint32_t at = first + row * area->row_stride + pixel * area->pixel_stride;
            if (memchr(soc->written + at, 1, area->bytes) != NULL) {
                return true;
            }
        }
    }
    return false;
}

/* Marks the bytes of an area, and no others; those outside of L1 do not count. */
static bool mark(htvm_soc_t *soc, const siracusa_area_t *area)
{
    if (!holds(&L1, area->first)) {
        return false;
    }
    const uint32_t first = area->first - HTVM_L1_BASE;
    memset(soc->written, 0, sizeof soc->written);
    for (uint32_t row = 0; row < area->rows; row++) {
        for (uint32_t pixel = 0; pixel < area->pixels; pixel++) {
            const uint32_t at = first + row * area->row_stride + pixel * area->pixel_stride;
            memset(soc->written + at, 1, area->bytes);
        }
    }
    return true;
}

bool siracusa_meet(htvm_soc_t *soc, const siracusa_area_t *a, const siracusa_area_t *b)
{
    return holds(&L1, b->first) && mark(soc, a) && is_marked(soc, b);
}

static bool check_overlaps(htvm_soc_t *soc, const siracusa_job_t *job)
{
    if (!mark_output(soc, job)) {
        return false;
    }
    for (size_t i = OUTPUT + 1; i < AREAS; i++) {
        const siracusa_area_t *area = &job->areas[i];
        if (area->role != NULL && holds(&L1, area->first) && is_marked(soc, area)) {
            return siracusa_complain(soc, "job %" PRIu32 ": outputs at 0x%08" PRIX32 " (%" PRIu64
                                     " B) overlap %s at 0x%08" PRIX32 " (%" PRIu64 " B)",
                                     job->id, job->areas[OUTPUT].first,
                                     siracusa_span(&job->areas[OUTPUT]), area->role, area->first,
                                     siracusa_span(area));
        }
    }
    return true;
}

static uint32_t size(const siracusa_axis_t *axis)
{
    return (axis->blocks - 1u) * SIRACUSA_BLOCK + axis->last;
}

/* Inputs along an axis, without the padding. */
static uint32_t inputs(const siracusa_axis_t *axis)
{
    return (axis->blocks - 1u) * SIRACUSA_BLOCK + axis->loaded - axis->before;
}

/* Bytes of an array with one entry per output channel, or of the weights. */
static siracusa_area_t array(const char *role, uint32_t first, uint32_t bytes)
{
    return (siracusa_area_t){.role = role, .first = first, .rows = 1, .pixels = 1, .bytes = bytes};
}

static bool find_weights(htvm_soc_t *soc, siracusa_job_t *job, uint32_t outputs)
{
    const bool depthwise = job->mode == SIRACUSA_NEUREKA_MODE_DEPTHWISE;
    const uint32_t planes = job->mode == SIRACUSA_NEUREKA_MODE_1X1 ? 1u : job->weight_bits;
    const uint64_t words = (uint64_t)(depthwise ? 1u : outputs) * job->ki_tiles * planes;
    const bool apart = siracusa_flag(job, SIRACUSA_NEUREKA_WEIGHT_MEMORY);
    siracusa_area_t *weights = &job->areas[WEIGHTS];
    const uint32_t first = soc->reg[job->context][SIRACUSA_NEUREKA_WEIGHTS];
    *weights = array("weights", first + (apart ? SIRACUSA_NEUREKA_WEIGHT_WINDOW : 0), 0);
    if (words > UINT32_MAX / SIRACUSA_NEUREKA_WORD_BYTES) {
        return siracusa_complain(soc, "job %" PRIu32 ": %" PRIu64
                                 " words of weights are in no memory",
                                 job->id, words);
    }
    weights->bytes = (uint32_t)words * SIRACUSA_NEUREKA_WORD_BYTES;
    const memory_t *memory = holds(&SRAM, weights->first) ? &SRAM : &MRAM;
    return find(soc, job, weights, apart ? memory : &L1);
}

static bool find_factors(htvm_soc_t *soc, siracusa_job_t *job, uint32_t outputs)
{
    if (!siracusa_flag(job, SIRACUSA_NEUREKA_SCALED)) {
        return true;
    }
    const uint32_t wide = siracusa_flag(job, SIRACUSA_NEUREKA_SCALE_32) ? 4u : 1u;
    const uint32_t *reg = soc->reg[job->context];
    siracusa_area_t *areas = job->areas;
    areas[SCALES] = array("scales", reg[SIRACUSA_NEUREKA_SCALES], outputs * wide);
    if (siracusa_flag(job, SIRACUSA_NEUREKA_CHANNEL_SHIFT)) {
        areas[SHIFTS] = array("shifts", reg[SIRACUSA_NEUREKA_SHIFTS], outputs);
    }
    if (siracusa_flag(job, SIRACUSA_NEUREKA_BIAS)) {
        areas[BIASES] = array("biases", reg[SIRACUSA_NEUREKA_BIASES], outputs * 4u);
    }
    for (size_t i = SCALES; i <= BIASES; i++) {
        if (areas[i].role != NULL && !find(soc, job, &areas[i], &L1)) {
            return false;
        }
    }
    return true;
}

bool siracusa_find_areas(htvm_soc_t *soc, siracusa_job_t *job)
{
    const uint32_t *reg = soc->reg[job->context];
    const uint32_t ko = siracusa_ko_channels(job->mode);
    const uint32_t outputs = (job->ko_tiles - 1u) * ko + job->last_ko;
    const uint32_t wide = siracusa_flag(job, SIRACUSA_NEUREKA_SCALED) ? 1u : 4u;
    const uint32_t row = reg[SIRACUSA_NEUREKA_INPUT_ROW];
    const uint32_t pixel = reg[SIRACUSA_NEUREKA_INPUT_PIXEL];
    job->areas[OUTPUT] = (siracusa_area_t){
        .role = "outputs",
        .first = reg[SIRACUSA_NEUREKA_OUTPUT],
        .rows = size(&job->rows),
        .row_stride = reg[SIRACUSA_NEUREKA_OUTPUT_ROW],
        .pixels = size(&job->columns),
        .pixel_stride = reg[SIRACUSA_NEUREKA_OUTPUT_PIXEL],
        .bytes = outputs * wide,
    };
    job->areas[INPUT] = (siracusa_area_t){
        .role = "inputs",
        .first = reg[SIRACUSA_NEUREKA_INPUT] + job->rows.before * row + job->columns.before * pixel,
        .rows = inputs(&job->rows),
        .row_stride = row,
        .pixels = inputs(&job->columns),
        .pixel_stride = pixel,
        .bytes = (job->ki_tiles - 1u) * siracusa_ki_channels(job->mode) + job->last_ki,
    };
    return find(soc, job, &job->areas[OUTPUT], &L1) && find(soc, job, &job->areas[INPUT], &L1) &&
           find_weights(soc, job, outputs) && find_factors(soc, job, outputs) &&
           check_overlaps(soc, job);
}

/* Fowler, Noll and Vo's sum of an area's bytes, 8 at a time where there are so many. */
uint64_t siracusa_checksum(const siracusa_area_t *area)
{
    const uint64_t prime = 0x100000001B3u;
    uint64_t sum = 0xCBF29CE484222325u;
    for (uint32_t row = 0; row < area->rows; row++) {
        for (uint32_t pixel = 0; pixel < area->pixels; pixel++) {
            const uint8_t *at = area->memory + (size_t)row * area->row_stride +
                                (size_t)pixel * area->pixel_stride;
            uint32_t n = 0;
            for (; n + 8u <= area->bytes; n += 8u) {
                uint64_t word;
                memcpy(&word, at + n, sizeof word);
                sum = (sum ^ word) * prime;
            }
            for (; n < area->bytes; n++) {
                sum = (sum ^ at[n]) * prime;
            }
        }
    }
    return sum;
}

void siracusa_remember(siracusa_job_t *job)
{
    for (size_t i = 0; i < AREAS; i++) {
        if (job->areas[i].role != NULL) {
            job->areas[i].sum = siracusa_checksum(&job->areas[i]);
        }
    }
}

bool siracusa_unchanged(htvm_soc_t *soc, const siracusa_job_t *job)
{
    for (size_t i = 0; i < AREAS; i++) {
        const siracusa_area_t *area = &job->areas[i];
        if (area->role != NULL && area->sum != siracusa_checksum(area)) {
            return siracusa_complain(soc, "job %" PRIu32 ": %s at 0x%08" PRIX32 " (%" PRIu64
                                     " B) were written by somebody else while in use",
                                     job->id, area->role, area->first, siracusa_span(area));
        }
    }
    return true;
}
