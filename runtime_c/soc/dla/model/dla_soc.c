/* dla: its device, as simulators of a SoC see it (htvm_soc_model.h).
 *
 * An instruction is checked when it is issued, with the registers' values at that time, and its
 * result is there when its cycles are over. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include "dla_core.h"
#include "dla_regs.h"
#include "htvm_soc.h"
#include "htvm_soc_log.h"
#include "htvm_soc_model.h"

struct htvm_soc {
    htvm_bus_t bus;
    dla_core_t core;
    uint32_t slots[DLA_SLOTS];
    dla_job_t job;
    bool busy;
    uint64_t until;
    bool waiting; /* the host has read that the device is busy */
    uint64_t waits_since;
    htvm_log_t log;
};

static uint8_t *find(void *ctx, uint32_t slot, uint64_t offset, uint64_t bytes)
{
    const htvm_soc_t *soc = ctx;
    const uint64_t at = soc->slots[slot] + offset;
    if (at > UINT32_MAX || bytes > UINT32_MAX - at) {
        return NULL;
    }
    return soc->bus.map(soc->bus.ctx, (uint32_t)at, (uint32_t)bytes);
}

htvm_soc_t *htvm_soc_new(const htvm_bus_t *bus)
{
    const dla_design_t design = {
        .pes_in = DLA_DLA_PES_IN,
        .pes_out = DLA_DLA_PES_OUT,
        .sram = HTVM_L1_SIZE,
        .dma_bytes = DLA_DLA_DMA_BYTES,
        .dma_setup = DLA_DLA_DMA_SETUP,
    };
    htvm_soc_t *soc = calloc(1, sizeof *soc);
    if (soc != NULL) {
        soc->bus = *bus;
        if (!dla_core_init(&soc->core, &design, (dla_far_t){.ctx = soc, .find = find})) {
            free(soc);
            return NULL;
        }
    }
    return soc;
}

void htvm_soc_free(htvm_soc_t *soc)
{
    if (soc != NULL) {
        dla_core_free(&soc->core);
        htvm_log_free(&soc->log);
        free(soc);
    }
}

int htvm_soc_owns(uint32_t addr) { return addr - DLA_DLA_REGISTERS < DLA_REG_END; }

static void complain(htvm_soc_t *soc, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void complain(htvm_soc_t *soc, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    htvm_log_complaint(&soc->log, "DLA", format, arguments);
    va_end(arguments);
}

static void log_move(htvm_soc_t *soc, htvm_event_t event)
{
    const uint32_t *reg = soc->job.reg;
    const uint32_t far = soc->slots[reg[DLA_SLOT]] + reg[DLA_OFFSET];
    const uint32_t near = HTVM_L1_BASE + reg[DLA_LOCAL];
    const bool reads = soc->job.opcode == DLA_OP_DMA_READ;
    event.unit = "dma";
    event.bytes = soc->job.bytes;
    event.from = reads ? far : near;
    event.to = reads ? near : far;
    const uint32_t pitch = reg[reads ? DLA_LOCAL_PITCH : DLA_FAR_PITCH];
    event.written = (uint64_t)(reg[DLA_ROWS] - 1u) * pitch + reg[DLA_BYTES];
    if (reg[DLA_ROWS] > 1u) {
        const htvm_rows_t rows = {.rows = reg[DLA_ROWS], .pixels = 1, .bytes = reg[DLA_BYTES]};
        event.to_rows = event.from_rows = rows;
        event.to_rows.row_stride = pitch;
        event.from_rows.row_stride = reg[reads ? DLA_FAR_PITCH : DLA_LOCAL_PITCH];
    } else {
        event.written = reg[DLA_BYTES];
    }
    htvm_log_event(&soc->log, event);
}

static void log_job(htvm_soc_t *soc, uint64_t now)
{
    htvm_event_t event = {
        .what = soc->job.name,
        .start = now,
        .end = soc->until,
        .issued = now,
    };
    if (soc->job.kind == DLA_KIND_DMA) {
        log_move(soc, event);
        return;
    }
    const dla_view_t result = dla_result(&soc->job);
    event.unit = "dla";
    event.macs = soc->job.macs;
    event.array = soc->job.cycles;
    event.to = HTVM_L1_BASE + result.at;
    event.written = (uint64_t)(result.height - 1u) * result.row +
                    (uint64_t)(result.width - 1u) * result.pixel +
                    (uint64_t)result.channels * result.size;
    event.to_rows = (htvm_rows_t){
        .rows = result.height,
        .row_stride = result.row,
        .pixels = result.width,
        .pixel_stride = result.pixel,
        .bytes = result.channels * result.size,
    };
    htvm_log_event(&soc->log, event);
}

static void advance(htvm_soc_t *soc, uint64_t now)
{
    if (soc->busy && now >= soc->until) {
        soc->busy = false;
        if (!dla_core_execute(&soc->core, &soc->job)) {
            complain(soc, "%s", soc->core.complaint);
        }
    }
}

static void issue(htvm_soc_t *soc, uint32_t word, uint64_t now)
{
    if (soc->busy) {
        complain(soc, "an instruction is issued while another one runs");
        return;
    }
    if (!dla_core_issue(&soc->core, word, &soc->job)) {
        complain(soc, "%s", soc->core.complaint);
        return;
    }
    soc->busy = true;
    soc->until = now + soc->job.cycles;
    log_job(soc, now);
}

uint32_t htvm_soc_read(htvm_soc_t *soc, uint32_t addr, uint64_t now)
{
    advance(soc, now);
    if (addr - DLA_DLA_REGISTERS != DLA_REG_STATUS) {
        complain(soc, "read of register 0x%08" PRIX32 ", which cannot be read", addr);
    }
    if (soc->waiting && now > soc->waits_since) {
        htvm_log_event(&soc->log, (htvm_event_t){.unit = "host",
                                                 .what = "wait",
                                                 .start = soc->waits_since,
                                                 .end = now});
    }
    soc->waiting = soc->busy;
    soc->waits_since = now;
    if (soc->log.complained) {
        return DLA_STATUS_ERROR;
    }
    return soc->busy ? DLA_STATUS_BUSY : DLA_STATUS_IDLE;
}

void htvm_soc_write(htvm_soc_t *soc, uint32_t addr, uint32_t value, uint64_t now)
{
    const uint32_t offset = addr - DLA_DLA_REGISTERS;
    advance(soc, now);
    soc->waiting = false;
    if (offset == DLA_REG_COMMAND) {
        issue(soc, value, now);
    } else if (offset % 4u == 0 && offset < DLA_REG_CONFIG + 4u * DLA_CONFIG_REGISTERS) {
        dla_core_write(&soc->core, offset / 4u, value);
    } else if (offset % 4u == 0 && offset - DLA_REG_SLOTS < 4u * DLA_SLOTS) {
        soc->slots[(offset - DLA_REG_SLOTS) / 4u] = value;
        if (soc->busy) {
            complain(soc, "a slot is written while an instruction runs");
        }
    } else {
        complain(soc, "write to 0x%08" PRIX32 ", which is no register to write", addr);
    }
}

uint64_t htvm_soc_next_event(htvm_soc_t *soc, uint64_t now)
{
    return soc->busy && soc->until > now ? soc->until : UINT64_MAX;
}

const char *htvm_soc_error(const htvm_soc_t *soc) { return htvm_log_error(&soc->log); }

void htvm_soc_events(const htvm_soc_t *soc, FILE *out) { htvm_log_print(&soc->log, out); }

const uint8_t *htvm_soc_memory(const htvm_soc_t *soc, uint32_t addr, uint32_t bytes)
{
    const uint32_t offset = addr - HTVM_L1_BASE;
    if (addr < HTVM_L1_BASE || bytes > HTVM_L1_SIZE || offset > HTVM_L1_SIZE - bytes) {
        return NULL;
    }
    return soc->core.sram + offset;
}
