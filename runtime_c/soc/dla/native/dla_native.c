/* dla: the simulator as a library, for sweeps: executes command streams without a host. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "dla_core.h"

typedef struct {
    uint64_t cycles[DLA_KINDS], instructions[DLA_KINDS], macs, bytes, writes;
} dla_totals_t;

/* One executed instruction. */
typedef struct {
    uint64_t word, cycles, macs, bytes;
    uint32_t kind, opcode;
} dla_done_t;

typedef struct {
    dla_core_t core;
    uint8_t *slot[DLA_SLOTS];
    uint64_t bytes[DLA_SLOTS];
    char error[320];
} dla_native_t;

static uint8_t *find(void *ctx, uint32_t slot, uint64_t offset, uint64_t bytes)
{
    const dla_native_t *native = ctx;
    if (native->slot[slot] == NULL || bytes > native->bytes[slot] ||
        offset > native->bytes[slot] - bytes) {
        return NULL;
    }
    return native->slot[slot] + offset;
}

/* NULL if there is not enough memory. */
dla_native_t *dla_native_new(const dla_design_t *design)
{
    dla_native_t *native = calloc(1, sizeof *native);
    if (native != NULL &&
        !dla_core_init(&native->core, design, (dla_far_t){.ctx = native, .find = find})) {
        free(native);
        return NULL;
    }
    return native;
}

void dla_native_free(dla_native_t *native)
{
    if (native != NULL) {
        dla_core_free(&native->core);
        free(native);
    }
}

/* System memory of a slot, for the streams that follow. */
void dla_native_slot(dla_native_t *native, uint32_t slot, uint8_t *at, uint64_t bytes)
{
    if (slot < DLA_SLOTS) {
        native->slot[slot] = at;
        native->bytes[slot] = bytes;
    }
}

static int failed(dla_native_t *native, uint64_t word)
{
    snprintf(native->error, sizeof native->error, "word %" PRIu64 ": %s", word,
             native->core.complaint);
    return 1;
}

/* Executes a stream and adds to the totals; `done`, if not NULL, has room for `count` entries, of
 * which *entries are filled.  0, or 1 after a complaint. */
int dla_native_run(dla_native_t *native, const uint32_t *words, uint64_t count,
                   dla_totals_t *totals, dla_done_t *done, uint64_t *entries)
{
    for (uint64_t at = 0; at < count; ++at) {
        const uint32_t word = words[at];
        dla_job_t job;
        if (word >> 24 == DLA_SET) {
            if (at + 1u == count) {
                dla_complain(&native->core, "the stream ends within a register write");
                return failed(native, at);
            }
            if (!dla_core_write(&native->core, word & 0xffffffu, words[at + 1u])) {
                return failed(native, at);
            }
            ++at;
            ++totals->writes;
            continue;
        }
        if (!dla_core_issue(&native->core, word, &job) ||
            !dla_core_execute(&native->core, &job)) {
            return failed(native, at);
        }
        totals->cycles[job.kind] += job.cycles;
        ++totals->instructions[job.kind];
        totals->macs += job.macs;
        totals->bytes += job.bytes;
        if (done != NULL) {
            done[(*entries)++] = (dla_done_t){.word = at,
                                              .cycles = job.cycles,
                                              .macs = job.macs,
                                              .bytes = job.bytes,
                                              .kind = job.kind,
                                              .opcode = job.opcode};
        }
    }
    return 0;
}

const char *dla_native_error(const dla_native_t *native) { return native->error; }
