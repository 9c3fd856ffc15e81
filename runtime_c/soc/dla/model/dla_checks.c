/* dla: what an instruction reads and writes, and whether it may. */
#include <inttypes.h>
#include <string.h>

#include "dla_core.h"

bool dla_is_product(uint32_t opcode)
{
    return opcode == DLA_OP_CONV || opcode == DLA_OP_CONV_RELU || opcode == DLA_OP_DEPTH_CONV ||
           opcode == DLA_OP_MAT_MUL;
}

bool dla_has_window(uint32_t opcode)
{
    return opcode == DLA_OP_POOL || (dla_is_product(opcode) && opcode != DLA_OP_MAT_MUL);
}

bool dla_has_two(uint32_t opcode)
{
    return opcode == DLA_OP_C_MIN || opcode == DLA_OP_C_MAX || opcode == DLA_OP_E_ADD ||
           opcode == DLA_OP_E32_ADD;
}

bool dla_takes_int32(uint32_t opcode)
{
    return opcode == DLA_OP_E32_ADD || opcode == DLA_OP_E32_SHR || opcode == DLA_OP_E32_SHL;
}

bool dla_gives_int32(uint32_t opcode, uint32_t flags)
{
    if (opcode == DLA_OP_CONV || opcode == DLA_OP_DEPTH_CONV || opcode == DLA_OP_E32_SHR) {
        return (flags & DLA_FLAG_REQUANT) == 0;
    }
    return opcode == DLA_OP_MAT_MUL || opcode == DLA_OP_E32_ADD || opcode == DLA_OP_E32_SHL;
}

static bool sums_channels(uint32_t opcode)
{
    return dla_is_product(opcode) && opcode != DLA_OP_DEPTH_CONV;
}

dla_view_t dla_operand(const dla_job_t *job, int number)
{
    const uint32_t *reg = job->reg;
    const bool window = dla_has_window(job->opcode);
    return (dla_view_t){
        .what = number == 0 ? "operand" : "second operand",
        .at = reg[number == 0 ? DLA_IN0 : DLA_IN1],
        .channels = reg[sums_channels(job->opcode) ? DLA_CHANNELS : DLA_OUT_CHANNELS],
        .height = reg[window ? DLA_IN_HEIGHT : DLA_OUT_HEIGHT],
        .width = reg[window ? DLA_IN_WIDTH : DLA_OUT_WIDTH],
        .pixel = reg[number == 0 ? DLA_IN_PIXEL : DLA_IN1_PIXEL],
        .row = reg[number == 0 ? DLA_IN_ROW : DLA_IN1_ROW],
        .size = dla_takes_int32(job->opcode) ? 4u : 1u,
    };
}

dla_view_t dla_result(const dla_job_t *job)
{
    const uint32_t *reg = job->reg;
    return (dla_view_t){
        .what = "result",
        .at = reg[DLA_OUT],
        .channels = reg[DLA_OUT_CHANNELS],
        .height = reg[DLA_OUT_HEIGHT],
        .width = reg[DLA_OUT_WIDTH],
        .pixel = reg[DLA_OUT_PIXEL],
        .row = reg[DLA_OUT_ROW],
        .size = dla_gives_int32(job->opcode, job->flags) ? 4u : 1u,
    };
}

/* Bytes from a view's first to behind its last; 0 of an empty one. */
static uint64_t extent(const dla_view_t *view)
{
    if (view->channels == 0 || view->height == 0 || view->width == 0) {
        return 0;
    }
    return (uint64_t)(view->height - 1u) * view->row + (uint64_t)(view->width - 1u) * view->pixel +
           (uint64_t)view->channels * view->size;
}

static bool overlaps_itself(const dla_view_t *view)
{
    const uint64_t size = (uint64_t)view->channels * view->size;
    return (view->width > 1u && view->pixel < size) ||
           (view->height > 1u && view->row < (uint64_t)(view->width - 1u) * view->pixel + size);
}

static bool inside(dla_core_t *core, const dla_job_t *job, const char *what, uint32_t at,
                   uint64_t bytes)
{
    if (bytes > core->design.sram || at > core->design.sram - bytes) {
        return dla_complain(core, "%s: the %s at SRAM 0x%" PRIx32 " (%" PRIu64
                                  " B) leaves the SRAM of %" PRIu32 " B",
                            job->name, what, at, bytes, core->design.sram);
    }
    return true;
}

static bool filled(dla_core_t *core, const dla_job_t *job, const char *what, uint64_t at,
                   uint64_t bytes)
{
    const uint8_t *hole = memchr(core->written + at, 0, bytes);
    if (hole != NULL) {
        return dla_complain(core, "%s: the %s reads SRAM 0x%" PRIx64 ", which nobody wrote",
                            job->name, what, (uint64_t)(hole - core->written));
    }
    return true;
}

static bool check_read(dla_core_t *core, const dla_job_t *job, const dla_view_t *view)
{
    const uint64_t bytes = extent(view), size = (uint64_t)view->channels * view->size;
    if (bytes == 0) {
        return true;
    }
    if (!inside(core, job, view->what, view->at, bytes)) {
        return false;
    }
    if (view->size == 4u && (view->at % 4u != 0 || view->pixel % 4u != 0 || view->row % 4u != 0)) {
        return dla_complain(core, "%s: the %s at SRAM 0x%" PRIx32 " is int32, and not aligned to 4 B",
                            job->name, view->what, view->at);
    }
    if (overlaps_itself(view)) {
        return dla_complain(core, "%s: elements of the %s overlap, pixels %" PRIu32
                                  " B and rows %" PRIu32 " B apart",
                            job->name, view->what, view->pixel, view->row);
    }
    if (size == view->pixel && view->row == view->width * size) {
        return filled(core, job, view->what, view->at, bytes);
    }
    for (uint32_t y = 0; y < view->height; ++y) {
        const uint64_t row = view->at + (uint64_t)y * view->row;
        if (size == view->pixel) {
            if (!filled(core, job, view->what, row, size * view->width)) {
                return false;
            }
            continue;
        }
        for (uint32_t x = 0; x < view->width; ++x) {
            const uint64_t at = row + (uint64_t)x * view->pixel;
            if ((size > 1u || core->written[at] == 0) &&
                !filled(core, job, view->what, at, size)) {
                return false;
            }
        }
    }
    return true;
}

static bool check_written(dla_core_t *core, const dla_job_t *job, const dla_view_t *view)
{
    if (extent(view) == 0) {
        return dla_complain(core, "%s: a result of %" PRIu32 "x%" PRIu32 "x%" PRIu32, job->name,
                            view->channels, view->height, view->width);
    }
    if (overlaps_itself(view)) {
        return dla_complain(core, "%s: elements of the result overlap, pixels %" PRIu32
                                  " B and rows %" PRIu32 " B apart",
                            job->name, view->pixel, view->row);
    }
    if (view->size == 4u && (view->at % 4u != 0 || view->pixel % 4u != 0 || view->row % 4u != 0)) {
        return dla_complain(core, "%s: the result at SRAM 0x%" PRIx32
                                  " is int32, and not aligned to 4 B",
                            job->name, view->at);
    }
    return inside(core, job, view->what, view->at, extent(view));
}

/* Element-wise instructions may write where they read, if no element is written before it is read. */
static bool may_replace(const dla_job_t *job, const dla_view_t *result, const dla_view_t *operand)
{
    const bool elementwise = !dla_is_product(job->opcode) && job->opcode != DLA_OP_POOL;
    return elementwise && result->at == operand->at && result->pixel <= operand->pixel &&
           result->row <= operand->row;
}

static bool apart(dla_core_t *core, const dla_job_t *job, const dla_view_t *result,
                  const char *what, uint32_t at, uint64_t bytes)
{
    if (bytes != 0 && result->at < at + bytes && at < result->at + extent(result)) {
        return dla_complain(core, "%s: the result at SRAM 0x%" PRIx32 " (%" PRIu64
                                  " B) overlaps the %s at 0x%" PRIx32 " (%" PRIu64 " B)",
                            job->name, result->at, extent(result), what, at, bytes);
    }
    return true;
}

static bool check_weights(dla_core_t *core, const dla_job_t *job, const dla_view_t *result)
{
    const uint32_t *reg = job->reg;
    const uint64_t taps = job->opcode == DLA_OP_MAT_MUL
                              ? 1u
                              : (uint64_t)dla_high(reg[DLA_KERNEL]) * dla_low(reg[DLA_KERNEL]);
    const uint64_t summed = job->opcode == DLA_OP_DEPTH_CONV ? 1u : reg[DLA_CHANNELS];
    const uint64_t biases = 4u * (uint64_t)reg[DLA_OUT_CHANNELS];
    if (summed == 0 || taps * summed > core->design.sram ||
        reg[DLA_OUT_CHANNELS] > core->design.sram) {
        return dla_complain(core, "%s: %" PRIu32 " channels are summed", job->name,
                            reg[DLA_CHANNELS]);
    }
    const uint64_t bytes = taps * summed * reg[DLA_OUT_CHANNELS];
    if (!inside(core, job, "weights", reg[DLA_WEIGHTS], bytes) ||
        !filled(core, job, "weights", reg[DLA_WEIGHTS], bytes) ||
        !apart(core, job, result, "weights", reg[DLA_WEIGHTS], bytes)) {
        return false;
    }
    if ((job->flags & DLA_FLAG_BIAS) == 0) {
        return true;
    }
    if (reg[DLA_BIAS] % 4u != 0) {
        return dla_complain(core, "%s: the biases at SRAM 0x%" PRIx32 " are not aligned to 4 B",
                            job->name, reg[DLA_BIAS]);
    }
    return inside(core, job, "biases", reg[DLA_BIAS], biases) &&
           filled(core, job, "biases", reg[DLA_BIAS], biases) &&
           apart(core, job, result, "biases", reg[DLA_BIAS], biases);
}

static bool check_numbers(dla_core_t *core, const dla_job_t *job)
{
    const uint32_t *reg = job->reg;
    const bool clips = (job->flags & DLA_FLAG_REQUANT) != 0 || job->opcode == DLA_OP_CONV_RELU ||
                       job->opcode == DLA_OP_E_ADD;
    const bool shifts = clips || job->kind == DLA_KIND_REQUANT;
    if (shifts && reg[DLA_SHIFT] > 31u) {
        return dla_complain(core, "%s: a shift of %" PRIu32 " bits", job->name, reg[DLA_SHIFT]);
    }
    const int32_t low = (int16_t)dla_high(reg[DLA_CLIP]), high = (int16_t)dla_low(reg[DLA_CLIP]);
    if (clips && (low < -128 || high > 127 || low > high)) {
        return dla_complain(core, "%s: a clip to %" PRId32 "..%" PRId32, job->name, low, high);
    }
    if (job->opcode == DLA_OP_ACT_LRELU && reg[DLA_ALPHA] > 7u) {
        return dla_complain(core, "%s: a shift of %" PRIu32 " bits", job->name, reg[DLA_ALPHA]);
    }
    if (!dla_has_window(job->opcode)) {
        return true;
    }
    if (dla_high(reg[DLA_KERNEL]) == 0 || dla_low(reg[DLA_KERNEL]) == 0 ||
        dla_high(reg[DLA_STRIDE]) == 0 || dla_low(reg[DLA_STRIDE]) == 0) {
        return dla_complain(core, "%s: a window of %" PRIu32 "x%" PRIu32 ", stride %" PRIu32
                                  "x%" PRIu32,
                            job->name, dla_high(reg[DLA_KERNEL]), dla_low(reg[DLA_KERNEL]),
                            dla_high(reg[DLA_STRIDE]), dla_low(reg[DLA_STRIDE]));
    }
    return true;
}

bool dla_check(dla_core_t *core, const dla_job_t *job)
{
    const dla_view_t result = dla_result(job);
    if (!check_numbers(core, job) || !check_written(core, job, &result)) {
        return false;
    }
    for (int number = 0; number < (dla_has_two(job->opcode) ? 2 : 1); ++number) {
        const dla_view_t operand = dla_operand(job, number);
        if (!check_read(core, job, &operand)) {
            return false;
        }
        if (!may_replace(job, &result, &operand) &&
            !apart(core, job, &result, operand.what, operand.at, extent(&operand))) {
            return false;
        }
    }
    return !dla_is_product(job->opcode) || check_weights(core, job, &result);
}
