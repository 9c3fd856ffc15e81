/* DIANA's devices behind their registers: the plug-in that simulators link. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include "diana_analog_regs.h"
#include "diana_model.h"

#define WINDOW (DIANA_REGISTERS * 4u)

/* Unit of the events in which the host waits. */
static const char HOST[] = "host";

htvm_soc_t *htvm_soc_new(const htvm_bus_t *bus)
{
    htvm_soc_t *soc = calloc(1, sizeof *soc);
    if (soc == NULL) {
        return NULL;
    }
    soc->bus = *bus;
    soc->dma.name = "DMA";
    soc->dma.unit = "dma";
    soc->digital.name = "digital core";
    soc->digital.unit = "digital";
    soc->analog.name = "analog core";
    soc->analog.unit = "analog";
    soc->l1 = calloc(HTVM_L1_SIZE, 1);
    soc->shadow = calloc(HTVM_L1_SIZE, 1);
    if (soc->l1 == NULL || soc->shadow == NULL) {
        htvm_soc_free(soc);
        return NULL;
    }
    return soc;
}

void htvm_soc_free(htvm_soc_t *soc)
{
    if (soc != NULL) {
        diana_dma_drop(soc);
        free(soc->l1);
        free(soc->shadow);
        htvm_log_free(&soc->log);
        free(soc);
    }
}

int htvm_soc_owns(uint32_t addr)
{
    return addr - DIANA_DMA_REGISTERS < WINDOW || addr - DIANA_DIGITAL_REGISTERS < WINDOW ||
           addr - DIANA_ANALOG_REGISTERS < WINDOW;
}

static diana_device_t *device_at(htvm_soc_t *soc, uint32_t addr, uint32_t *offset)
{
    if (addr - DIANA_DMA_REGISTERS < WINDOW) {
        *offset = addr - DIANA_DMA_REGISTERS;
        return &soc->dma;
    }
    if (addr - DIANA_ANALOG_REGISTERS < WINDOW) {
        *offset = addr - DIANA_ANALOG_REGISTERS;
        return &soc->analog;
    }
    *offset = addr - DIANA_DIGITAL_REGISTERS;
    return *offset < WINDOW ? &soc->digital : NULL;
}

/* Logs the time since the last read if that one told the host to wait, and this one repeats it. */
static void note_wait(htvm_soc_t *soc, uint32_t addr, bool wait, uint64_t now)
{
    if (soc->waiting && soc->wait_address == addr && now > soc->waiting_since) {
        htvm_log_t *log = &soc->log;
        htvm_event_t *last = log->count == 0 ? NULL : &log->events[log->count - 1];
        if (last != NULL && last->unit == HOST && last->end == soc->waiting_since) {
            last->end = now;
        } else {
            htvm_log_event(log, (htvm_event_t){.unit = HOST,
                                               .what = "wait",
                                               .start = soc->waiting_since,
                                               .end = now});
        }
    }
    soc->waiting = wait;
    soc->wait_address = addr;
    soc->waiting_since = now;
}

static uint32_t status(const htvm_soc_t *soc, const diana_device_t *device, uint64_t now)
{
    if (device->error != DIANA_ERROR_NONE) {
        return DIANA_STATUS_ERROR;
    }
    const bool busy = device == &soc->dma ? soc->queued != 0 : now < device->busy_until;
    return busy ? DIANA_STATUS_BUSY : DIANA_STATUS_IDLE;
}

uint32_t htvm_soc_read(htvm_soc_t *soc, uint32_t addr, uint64_t now)
{
    uint32_t offset;
    uint32_t value = 0;
    bool wait = false;
    diana_device_t *device = device_at(soc, addr, &offset);
    if (device == NULL) {
        return 0;
    }
    diana_dma_advance(soc, now);
    if (offset == DIANA_REG_STATUS) {
        value = status(soc, device, now);
        wait = value == DIANA_STATUS_BUSY;
    } else if (offset == DIANA_REG_ERROR) {
        value = device->error;
    } else if (offset == DIANA_DMA_ROOM && device == &soc->dma) {
        value = DIANA_DMA_QUEUE_DEPTH - (uint32_t)soc->queued;
        wait = value == 0;
    } else {
        diana_complain(soc, device, DIANA_ERROR_OPERATION,
                       "read of register 0x%08" PRIX32 " (4 B), which cannot be read", addr);
    }
    note_wait(soc, addr, wait, now);
    return value;
}

/* Last register of each device that takes a value. */
static uint32_t start_register(const htvm_soc_t *soc, const diana_device_t *device)
{
    if (device == &soc->analog) {
        return DIANA_ANALOG_START;
    }
    return device == &soc->dma ? DIANA_DMA_COMMAND : DIANA_DIGITAL_START;
}

/* Settings of the simulation are refused after the first cycle: programs cannot write them. */
static bool take_setting(htvm_soc_t *soc, const diana_device_t *device, uint32_t offset,
                         uint32_t value, uint64_t now)
{
    if (now != 0) {
        return false;
    }
    if (device == &soc->analog && (offset == DIANA_ANALOG_NOISE || offset == DIANA_ANALOG_SEED)) {
        diana_analog_set(soc, offset, value);
        return true;
    }
    if (device == &soc->dma && offset >= DIANA_FAULT_CORE && offset % 4u == 0) {
        diana_fault_set(soc, offset, value);
        return true;
    }
    return false;
}

void htvm_soc_write(htvm_soc_t *soc, uint32_t addr, uint32_t value, uint64_t now)
{
    uint32_t offset;
    diana_device_t *device = device_at(soc, addr, &offset);
    if (device == NULL) {
        return;
    }
    const uint32_t start = start_register(soc, device);
    diana_dma_advance(soc, now);
    soc->waiting = false;
    if (offset == DIANA_REG_STATUS) {
        device->error = DIANA_ERROR_NONE;
        return;
    }
    if (take_setting(soc, device, offset, value, now)) {
        return;
    }
    if (offset % 4u != 0 || offset < 0x10u || offset > start) {
        diana_complain(soc, device, DIANA_ERROR_OPERATION,
                       "write to 0x%08" PRIX32 " (4 B), which is no register to write", addr);
        return;
    }
    device->reg[offset / 4u] = value;
    if (offset != start || device->error != DIANA_ERROR_NONE) {
        return; /* a device in its error state does nothing until the error is cleared */
    }
    if (device == &soc->dma) {
        diana_dma_command(soc, now);
    } else if (now < device->busy_until) {
        diana_complain(soc, device, DIANA_ERROR_BUSY,
                       "started at register 0x%08" PRIX32 " (4 B) while busy for another %" PRIu64
                       " cycles",
                       addr, device->busy_until - now);
    } else if (device == &soc->analog) {
        diana_analog_start(soc, now);
    } else {
        diana_digital_start(soc, now);
    }
}

uint64_t htvm_soc_next_event(htvm_soc_t *soc, uint64_t now)
{
    uint64_t next = UINT64_MAX;
    const diana_device_t *const cores[] = {&soc->digital, &soc->analog};
    for (size_t i = 0; i < sizeof cores / sizeof cores[0]; i++) {
        const uint64_t at = cores[i]->busy_until;
        if (at > now && at < next) {
            next = at;
        }
    }
    for (size_t i = 0; i < soc->queued; i++) {
        const uint64_t at = soc->queue[i].end;
        if (at > now && at < next) {
            next = at;
        }
    }
    return next;
}

const char *htvm_soc_error(const htvm_soc_t *soc) { return htvm_log_error(&soc->log); }

void htvm_soc_events(const htvm_soc_t *soc, FILE *out) { htvm_log_print(&soc->log, out); }

bool diana_complain(htvm_soc_t *soc, diana_device_t *device, uint32_t code, const char *format,
                    ...)
{
    device->error = code;
    va_list arguments;
    va_start(arguments, format);
    htvm_log_complaint(&soc->log, device->name, format, arguments);
    va_end(arguments);
    return false;
}

bool diana_check_l1(htvm_soc_t *soc, diana_device_t *device, const char *role, uint32_t offset,
                    uint64_t bytes, uint32_t align)
{
    if (offset % align != 0) {
        return diana_complain(soc, device, DIANA_ERROR_ALIGNMENT,
                              "%s at L1 0x%08" PRIX32 " (%" PRIu64
                              " B) is not aligned to %" PRIu32 " B",
                              role, HTVM_L1_BASE + offset, bytes, align);
    }
    if (offset > HTVM_L1_SIZE || bytes > HTVM_L1_SIZE - offset) {
        return diana_complain(soc, device, DIANA_ERROR_RANGE,
                              "%s at L1 offset %" PRIu32 " = 0x%08" PRIX32 " (%" PRIu64
                              " B) leaves L1, which ends at offset %" PRIu32,
                              role, offset, HTVM_L1_BASE + offset, bytes, HTVM_L1_SIZE);
    }
    return true;
}

void diana_start(htvm_soc_t *soc, diana_device_t *device, htvm_event_t event, uint64_t start,
                 uint64_t cycles)
{
    device->busy_until = start + cycles;
    event.unit = device->unit;
    event.start = start;
    event.end = device->busy_until;
    htvm_log_event(&soc->log, event);
    if (device != &soc->dma) {
        diana_fault_apply(
            soc, device,
            device == &soc->analog ? DIANA_ANALOG_REGISTERS : DIANA_DIGITAL_REGISTERS, &event);
    }
}

const uint8_t *htvm_soc_memory(const htvm_soc_t *soc, uint32_t addr, uint32_t bytes)
{
    const uint32_t offset = addr - HTVM_L1_BASE;
    return offset <= HTVM_L1_SIZE && bytes <= HTVM_L1_SIZE - offset ? soc->l1 + offset : NULL;
}
