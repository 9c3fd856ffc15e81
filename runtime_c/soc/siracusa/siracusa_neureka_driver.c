/* Driver of N-EUREKA. */
#include "siracusa_neureka_driver.h"

#include "htvm_hal.h"

#define NEUREKA(reg) (SIRACUSA_NEUREKA_REGISTERS + SIRACUSA_NEUREKA_##reg)

_Static_assert(SIRACUSA_NEUREKA_JOB_REGISTERS == 24, "registers are written six at a time");
_Static_assert(SIRACUSA_NEUREKA_JOB_IDS == 256, "numbers of jobs are compared as bytes");

static const uint8_t KI_CHANNELS[] = {SIRACUSA_NEUREKA_INPUT_CHANNELS};
static const uint8_t KO_CHANNELS[] = {SIRACUSA_NEUREKA_OUTPUT_CHANNELS};

static uint32_t pair(uint32_t high, uint32_t low) { return high << 16 | low; }

/* How many parts of `step` there are, and the size of the last. */
static uint32_t parts(uint32_t size, uint32_t step) { return (size + step - 1u) / step; }

static uint32_t last(uint32_t size, uint32_t step) { return size - (parts(size, step) - 1u) * step; }

static void fill_weights(uint32_t *value, const siracusa_neureka_job_t *job, uint32_t ki_tiles)
{
    const uint32_t planes = job->mode == SIRACUSA_NEUREKA_MODE_1X1 ? 1u : job->weight_bits;
    const uint32_t channel = SIRACUSA_NEUREKA_WORD_BYTES * planes * ki_tiles;
    const uint32_t offset = job->weights - SIRACUSA_NEUREKA_WEIGHT_WINDOW;
    const int apart = offset < HTVM_MRAM_SIZE + HTVM_SRAM_SIZE;
    value[SIRACUSA_NEUREKA_WEIGHTS] = apart ? offset : job->weights;
    value[SIRACUSA_NEUREKA_WEIGHT_WORD] = SIRACUSA_NEUREKA_WORD_BYTES;
    value[SIRACUSA_NEUREKA_WEIGHT_CHANNEL] =
        job->mode == SIRACUSA_NEUREKA_MODE_DEPTHWISE ? 0 : channel;
    value[SIRACUSA_NEUREKA_WEIGHT_NONE] = 0;
    value[SIRACUSA_NEUREKA_OFFSET] = (uint32_t)job->offset;
    value[SIRACUSA_NEUREKA_MASK] = job->mask;
    value[SIRACUSA_NEUREKA_CONF0] =
        job->flags | SIRACUSA_NEUREKA_WEIGHT_BITS((uint32_t)job->weight_bits) |
        SIRACUSA_NEUREKA_MODE((uint32_t)job->mode) | SIRACUSA_NEUREKA_WEIGHT_OFFSET |
        SIRACUSA_NEUREKA_SHIFT((uint32_t)job->shift) |
        (apart ? SIRACUSA_NEUREKA_WEIGHT_MEMORY : 0) |
        ((job->flags & SIRACUSA_NEUREKA_SCALED) != 0 ? 0 : SIRACUSA_NEUREKA_OUTPUT_32);
}

static void fill_blocks(uint32_t *value, const siracusa_neureka_job_t *job)
{
    const uint32_t step = SIRACUSA_NEUREKA_BLOCK;
    const uint32_t halo = job->mode == SIRACUSA_NEUREKA_MODE_1X1 ? 0 : SIRACUSA_NEUREKA_FILTER - 1u;
    const uint32_t rows = last(job->rows, step);
    const uint32_t columns = last(job->columns, step);
    value[SIRACUSA_NEUREKA_BLOCKS] = pair(parts(job->rows, step), parts(job->columns, step));
    value[SIRACUSA_NEUREKA_LAST_OUTPUTS] = pair(rows, columns);
    value[SIRACUSA_NEUREKA_LAST_INPUTS] =
        pair(rows + halo - job->padding_bottom, columns + halo - job->padding_right);
    value[SIRACUSA_NEUREKA_PADDING] =
        (uint32_t)job->padding_top << 28 | (uint32_t)job->padding_right << 24 |
        (uint32_t)job->padding_bottom << 20 | (uint32_t)job->padding_left << 16 |
        job->padding_value;
}

void siracusa_neureka_fill(siracusa_neureka_registers_t *registers,
                           const siracusa_neureka_job_t *job)
{
    uint32_t *value = registers->value;
    const uint32_t ko = KO_CHANNELS[job->mode];
    const uint32_t ki = KI_CHANNELS[job->mode];
    fill_weights(value, job, parts(job->inputs, ki));
    fill_blocks(value, job);
    value[SIRACUSA_NEUREKA_INPUT] =
        job->input - job->padding_top * job->input_row - job->padding_left * job->input_pixel;
    value[SIRACUSA_NEUREKA_OUTPUT] = job->output;
    value[SIRACUSA_NEUREKA_SCALES] = job->scales;
    value[SIRACUSA_NEUREKA_SHIFTS] = job->shifts;
    value[SIRACUSA_NEUREKA_BIASES] = job->biases;
    value[SIRACUSA_NEUREKA_INPUT_PIXEL] = job->input_pixel;
    value[SIRACUSA_NEUREKA_INPUT_ROW] = job->input_row;
    value[SIRACUSA_NEUREKA_INPUT_NONE] = 0;
    value[SIRACUSA_NEUREKA_OUTPUT_WORD] = SIRACUSA_NEUREKA_WORD_BYTES;
    value[SIRACUSA_NEUREKA_OUTPUT_PIXEL] = job->output_pixel;
    value[SIRACUSA_NEUREKA_OUTPUT_ROW] = job->output_row;
    value[SIRACUSA_NEUREKA_TILES] = pair(parts(job->outputs, ko), parts(job->inputs, ki));
    value[SIRACUSA_NEUREKA_LAST_CHANNELS] = pair(last(job->outputs, ko), last(job->inputs, ki));
}

/* Waits until a context is free; returns the number of its job, or none after a timeout. */
static uint32_t acquire(void)
{
    uint32_t number, polls = 0;
    do {
        number = htvm_hal_read(NEUREKA(ACQUIRE));
    } while (number >= SIRACUSA_NEUREKA_JOB_IDS && htvm_hal_timeout(++polls) == 0);
    return number;
}

static void set(uint32_t number, uint32_t value) { htvm_hal_write(NEUREKA(JOB) + 4u * number, value); }

uint32_t siracusa_neureka_program(const siracusa_neureka_registers_t *registers)
{
    const uint32_t number = acquire();
    if (number >= SIRACUSA_NEUREKA_JOB_IDS) {
        return number;
    }
    for (uint32_t i = 0; i < SIRACUSA_NEUREKA_JOB_REGISTERS; i++) {
        set(i, registers->value[i]);
    }
    htvm_hal_write(NEUREKA(TRIGGER), 0);
    return number;
}

uint32_t siracusa_neureka_prepare(const siracusa_neureka_registers_t *registers,
                                  const siracusa_neureka_places_t *places)
{
    const uint32_t *value = registers->value;
    const uint32_t number = acquire();
    if (number >= SIRACUSA_NEUREKA_JOB_IDS) {
        return number;
    }
    set(SIRACUSA_NEUREKA_WEIGHTS, places->weights + value[SIRACUSA_NEUREKA_WEIGHTS]);
    set(SIRACUSA_NEUREKA_INPUT, places->input + value[SIRACUSA_NEUREKA_INPUT]);
    set(SIRACUSA_NEUREKA_OUTPUT, places->output + value[SIRACUSA_NEUREKA_OUTPUT]);
    set(SIRACUSA_NEUREKA_SCALES, places->factors + value[SIRACUSA_NEUREKA_SCALES]);
    set(SIRACUSA_NEUREKA_SHIFTS, places->factors + value[SIRACUSA_NEUREKA_SHIFTS]);
    set(SIRACUSA_NEUREKA_BIASES, places->factors + value[SIRACUSA_NEUREKA_BIASES]);
    /* Six at a time: a register that is written right after its value was loaded waits for it. */
    for (uint32_t i = SIRACUSA_NEUREKA_BIASES + 1u; i < SIRACUSA_NEUREKA_JOB_REGISTERS; i += 6) {
        const uint32_t a = value[i], b = value[i + 1u], c = value[i + 2u];
        const uint32_t d = value[i + 3u], e = value[i + 4u], f = value[i + 5u];
        set(i, a);
        set(i + 1u, b);
        set(i + 2u, c);
        set(i + 3u, d);
        set(i + 4u, e);
        set(i + 5u, f);
    }
    return number;
}

void siracusa_neureka_trigger(void) { htvm_hal_write(NEUREKA(TRIGGER), 0); }

uint32_t siracusa_neureka_start(const siracusa_neureka_registers_t *registers,
                                const siracusa_neureka_places_t *places)
{
    const uint32_t number = siracusa_neureka_prepare(registers, places);
    if (number < SIRACUSA_NEUREKA_JOB_IDS) {
        siracusa_neureka_trigger();
    }
    return number;
}

int siracusa_neureka_is_done(uint32_t number)
{
    /* A job with a later number runs, or its context is free. */
    const uint32_t context = SIRACUSA_NEUREKA_STATUS_CONTEXT(number % SIRACUSA_NEUREKA_CONTEXTS);
    return (int8_t)(htvm_hal_read(NEUREKA(RUNNING_JOB)) - number) > 0 ||
           (htvm_hal_read(NEUREKA(STATUS)) & context) == 0;
}

void siracusa_neureka_wait_for(uint32_t number)
{
    uint32_t polls = 0;
    while (!siracusa_neureka_is_done(number) && htvm_hal_timeout(++polls) == 0) {
    }
}

void siracusa_neureka_wait(void)
{
    uint32_t polls = 0;
    while (htvm_hal_read(NEUREKA(STATUS)) != 0 && htvm_hal_timeout(++polls) == 0) {
    }
}

void siracusa_neureka_clear(void) { htvm_hal_write(NEUREKA(SOFT_CLEAR), 0); }
