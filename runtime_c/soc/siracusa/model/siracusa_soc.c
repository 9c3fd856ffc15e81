/* N-EUREKA and the DMA behind their registers: the plug-in that simulators link. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "siracusa_model.h"

#define JOB_END (SIRACUSA_NEUREKA_JOB + 4u * SIRACUSA_NEUREKA_JOB_REGISTERS)

static const char *const NAMES[] = {"conv3x3", "depthwise3x3", "conv1x1"};

htvm_soc_t *htvm_soc_new(const htvm_bus_t *bus)
{
    htvm_soc_t *soc = calloc(1, sizeof *soc);
    if (soc != NULL) {
        soc->bus = *bus;
    }
    return soc;
}

void htvm_soc_free(htvm_soc_t *soc)
{
    if (soc != NULL) {
        htvm_log_free(&soc->log);
        free(soc);
    }
}

static bool is_dma(uint32_t addr) { return addr - SIRACUSA_DMA_REGISTERS < SIRACUSA_DMA_END; }

int htvm_soc_owns(uint32_t addr)
{
    return is_dma(addr) || addr - SIRACUSA_NEUREKA_REGISTERS < JOB_END;
}

/* Completes the transfers and jobs that are done by now; they never touch the same bytes, so that
 * it does not matter which are first. */
static void advance(htvm_soc_t *soc, uint64_t now)
{
    soc->now = now > soc->now ? now : soc->now;
    siracusa_dma_advance(soc);
    while (soc->queued != 0 && soc->queue[0].end <= soc->now) {
        for (size_t n = 0; n < soc->queued; n++) {
            if (!siracusa_unchanged(soc, &soc->queue[n])) {
                return;
            }
        }
        if (!siracusa_compute(soc, &soc->queue[0])) {
            return;
        }
        soc->last_id = soc->queue[0].id;
        soc->finished++;
        soc->queued--;
        memmove(soc->queue, soc->queue + 1, soc->queued * sizeof soc->queue[0]);
        for (size_t n = 0; n < soc->queued; n++) {
            siracusa_remember(&soc->queue[n]); /* what the job wrote is what those behind find */
        }
    }
}

static uint32_t acquire(htvm_soc_t *soc)
{
    if (soc->acquired) {
        return SIRACUSA_NEUREKA_LOCKED;
    }
    if (soc->queued == SIRACUSA_NEUREKA_CONTEXTS) {
        return SIRACUSA_NEUREKA_FULL;
    }
    soc->acquired = true;
    return soc->next_id;
}

static uint32_t status(const htvm_soc_t *soc)
{
    uint32_t value = soc->acquired ? SIRACUSA_NEUREKA_STATUS_CONTEXT(soc->context) : 0;
    for (size_t n = 0; n < soc->queued; n++) {
        value |= SIRACUSA_NEUREKA_STATUS_CONTEXT(soc->queue[n].context);
    }
    return value;
}

/* Logs a job that was queued. */
static void note_job(htvm_soc_t *soc, const siracusa_job_t *job)
{
    const siracusa_area_t *weights = &job->areas[WEIGHTS];
    const siracusa_area_t *output = &job->areas[OUTPUT];
    const htvm_event_t event = {
        .unit = "neureka",
        .what = NAMES[job->mode],
        .start = job->start,
        .end = job->end,
        .issued = soc->now,
        .bytes = weights->bytes,
        .macs = siracusa_macs(job),
        .array = siracusa_array_cycles(job),
        .from = job->areas[INPUT].first,
        .to = output->first,
        .written = siracusa_span(output),
        .to_rows = siracusa_rows(output),
    };
    htvm_log_event(&soc->log, event);
}

static void trigger(htvm_soc_t *soc, uint32_t value)
{
    siracusa_job_t job = {.id = soc->next_id, .context = soc->context};
    if (!soc->acquired) {
        siracusa_complain(soc, "trigger without a job that was acquired");
        return;
    }
    if (value != 0) {
        siracusa_complain(soc, "job %" PRIu32 ": trigger with %" PRIu32 ", which is not 0", job.id,
                          value);
        return;
    }
    if (!siracusa_read_job(soc, &job) || !siracusa_find_areas(soc, &job) ||
        !siracusa_check_transfers(soc, &job)) {
        return;
    }
    job.start = soc->queued == 0 ? soc->now : soc->queue[soc->queued - 1].end;
    job.end = job.start + siracusa_cycles(&job);
    job.accesses = siracusa_accesses(&job);
    siracusa_remember(&job);
    note_job(soc, &job);
    soc->queue[soc->queued++] = job;
    soc->acquired = false;
    soc->context = (soc->context + 1u) % SIRACUSA_NEUREKA_CONTEXTS;
    soc->next_id = (soc->next_id + 1u) % SIRACUSA_NEUREKA_JOB_IDS;
}

static void drop(htvm_soc_t *soc)
{
    soc->queued = 0;
    soc->acquired = false;
}

static void clear(htvm_soc_t *soc)
{
    drop(soc);
    soc->context = soc->next_id = soc->last_id = soc->finished = 0;
    memset(soc->reg, 0, sizeof soc->reg);
}

uint32_t htvm_soc_read(htvm_soc_t *soc, uint32_t addr, uint64_t now)
{
    uint32_t value = 0;
    if (!htvm_soc_owns(addr)) {
        return 0;
    }
    advance(soc, now);
    if (is_dma(addr)) {
        return siracusa_dma_read(soc, addr - SIRACUSA_DMA_REGISTERS);
    }
    const uint32_t offset = addr - SIRACUSA_NEUREKA_REGISTERS;
    switch (offset) {
    case SIRACUSA_NEUREKA_ACQUIRE:
        value = acquire(soc);
        break;
    case SIRACUSA_NEUREKA_FINISHED:
        value = soc->finished;
        break;
    case SIRACUSA_NEUREKA_STATUS:
        value = status(soc);
        break;
    case SIRACUSA_NEUREKA_RUNNING_JOB:
        value = soc->queued != 0 ? soc->queue[0].id : soc->last_id;
        break;
    default:
        if (offset >= SIRACUSA_NEUREKA_JOB && offset % 4u == 0) {
            return soc->reg[soc->context][(offset - SIRACUSA_NEUREKA_JOB) / 4u];
        }
        siracusa_complain(soc, "read of 0x%08" PRIX32 " (4 B), which is no register to read", addr);
    }
    return value;
}

void htvm_soc_write(htvm_soc_t *soc, uint32_t addr, uint32_t value, uint64_t now)
{
    if (!htvm_soc_owns(addr)) {
        return;
    }
    advance(soc, now);
    if (is_dma(addr)) {
        siracusa_dma_write(soc, addr - SIRACUSA_DMA_REGISTERS, value);
        return;
    }
    const uint32_t offset = addr - SIRACUSA_NEUREKA_REGISTERS;
    if (offset == SIRACUSA_NEUREKA_TRIGGER) {
        trigger(soc, value);
    } else if (offset == SIRACUSA_NEUREKA_SOFT_CLEAR) {
        clear(soc);
    } else if (offset < SIRACUSA_NEUREKA_JOB || offset % 4u != 0) {
        siracusa_complain(soc, "write to 0x%08" PRIX32 " (4 B), which is no register to write",
                          addr);
    } else if (!soc->acquired) {
        siracusa_complain(soc, "write to job register %" PRIu32 " without a job that was acquired",
                          (offset - SIRACUSA_NEUREKA_JOB) / 4u);
    } else {
        soc->reg[soc->context][(offset - SIRACUSA_NEUREKA_JOB) / 4u] = value;
    }
}

uint64_t htvm_soc_next_event(htvm_soc_t *soc, uint64_t now)
{
    uint64_t next = UINT64_MAX;
    for (size_t n = 0; n < soc->queued; n++) {
        const uint64_t at = soc->queue[n].end;
        next = at > now && at < next ? at : next;
    }
    for (size_t n = 0; n < soc->dma.queued; n++) {
        const uint64_t at = soc->dma.queue[n].end;
        next = at > now && at < next ? at : next;
    }
    return next;
}

const char *htvm_soc_error(const htvm_soc_t *soc) { return htvm_log_error(&soc->log); }

void htvm_soc_events(const htvm_soc_t *soc, FILE *out) { htvm_log_print(&soc->log, out); }

bool siracusa_complain(htvm_soc_t *soc, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    htvm_log_complaint(&soc->log, "N-EUREKA", format, arguments);
    va_end(arguments);
    drop(soc);
    return false;
}
