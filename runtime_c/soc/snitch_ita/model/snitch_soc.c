/* The cluster's devices behind their registers: the plug-in that simulators link. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include "snitch_model.h"

#define WINDOW (SNITCH_REGISTERS * 4u)

htvm_soc_t *htvm_soc_new(const htvm_bus_t *bus)
{
    htvm_soc_t *soc = calloc(1, sizeof *soc);
    if (soc == NULL) {
        return NULL;
    }
    soc->bus = *bus;
    soc->dma.name = "DMA";
    soc->dma.unit = "dma";
    soc->dma.base = SNITCH_ITA_DMA_REGISTERS;
    soc->dma.start = SNITCH_DMA_START;
    soc->dma.depth = SNITCH_ITA_DMA_QUEUE_DEPTH;
    soc->ita.name = "ITA";
    soc->ita.unit = "ita";
    soc->ita.base = SNITCH_ITA_ITA_REGISTERS;
    soc->ita.start = SNITCH_ITA_START;
    soc->ita.depth = SNITCH_ITA_ITA_CONTEXTS;
    return soc;
}

void htvm_soc_free(htvm_soc_t *soc)
{
    if (soc != NULL) {
        snitch_drop(&soc->dma);
        snitch_drop(&soc->ita);
        htvm_log_free(&soc->log);
        free(soc);
    }
}

int htvm_soc_owns(uint32_t addr)
{
    return addr - SNITCH_ITA_DMA_REGISTERS < WINDOW || addr - SNITCH_ITA_ITA_REGISTERS < WINDOW;
}

static snitch_device_t *device_at(htvm_soc_t *soc, uint32_t addr)
{
    if (addr - soc->dma.base < WINDOW) {
        return &soc->dma;
    }
    return addr - soc->ita.base < WINDOW ? &soc->ita : NULL;
}

static bool complete(htvm_soc_t *soc, const snitch_device_t *device)
{
    return device == &soc->dma ? snitch_dma_complete(soc) : snitch_ita_complete(soc);
}

static void advance_device(htvm_soc_t *soc, snitch_device_t *device)
{
    while (device->queued != 0 && device->queue[0].end <= soc->now) {
        if (!complete(soc, device)) {
            return; /* the complaint dropped the orders */
        }
        snitch_retire(device);
        if (device == &soc->dma) {
            snitch_spoil(device);
        }
    }
}

/* Completes the orders that are done.  Orders of different devices never touch the same bytes, so
 * it does not matter which device is first. */
static void advance(htvm_soc_t *soc, uint64_t now)
{
    soc->now = now > soc->now ? now : soc->now;
    advance_device(soc, &soc->dma);
    advance_device(soc, &soc->ita);
}

static uint32_t status(const snitch_device_t *device)
{
    if (device->error != SNITCH_ERROR_NONE) {
        return SNITCH_STATUS_ERROR;
    }
    return device->queued != 0 ? SNITCH_STATUS_BUSY : SNITCH_STATUS_IDLE;
}

uint32_t htvm_soc_read(htvm_soc_t *soc, uint32_t addr, uint64_t now)
{
    uint32_t value = 0;
    snitch_device_t *device = device_at(soc, addr);
    if (device == NULL) {
        return 0;
    }
    advance(soc, now);
    const uint32_t offset = addr - device->base;
    switch (offset) {
    case SNITCH_REG_STATUS:
        value = status(device);
        break;
    case SNITCH_REG_ERROR:
        value = device->error;
        break;
    case SNITCH_REG_ROOM:
        value = (uint32_t)(device->depth - device->queued);
        break;
    case SNITCH_REG_STARTED:
        value = device->started;
        break;
    case SNITCH_REG_COMPLETED:
        value = device->completed;
        break;
    default:
        snitch_complain(soc, device, SNITCH_ERROR_OPERATION,
                        "read of register 0x%08" PRIX32 " (4 B), which cannot be read", addr);
    }
    return value;
}

void htvm_soc_write(htvm_soc_t *soc, uint32_t addr, uint32_t value, uint64_t now)
{
    snitch_device_t *device = device_at(soc, addr);
    if (device == NULL) {
        return;
    }
    advance(soc, now);
    const uint32_t offset = addr - device->base;
    if (offset == SNITCH_REG_STATUS) {
        device->error = SNITCH_ERROR_NONE;
    } else if (offset % 4u != 0 || offset <= SNITCH_REG_COMPLETED || offset > device->start) {
        snitch_complain(soc, device, SNITCH_ERROR_OPERATION,
                        "write to 0x%08" PRIX32 " (4 B), which is no register to write", addr);
    } else if (offset != device->start) {
        device->reg[offset / 4u] = value;
    } else if (device->error == SNITCH_ERROR_NONE) {
        /* A device in its error state does nothing until the error is cleared. */
        if (device == &soc->dma) {
            snitch_dma_take(soc);
        } else {
            snitch_ita_take(soc);
        }
    }
}

uint64_t htvm_soc_next_event(htvm_soc_t *soc, uint64_t now)
{
    const snitch_device_t *const devices[] = {&soc->dma, &soc->ita};
    uint64_t next = UINT64_MAX;
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
        for (size_t n = 0; n < devices[i]->queued; n++) {
            const uint64_t at = devices[i]->queue[n].end;
            next = at > now && at < next ? at : next;
        }
    }
    return next;
}

const char *htvm_soc_error(const htvm_soc_t *soc) { return htvm_log_error(&soc->log); }

void htvm_soc_events(const htvm_soc_t *soc, FILE *out) { htvm_log_print(&soc->log, out); }

bool snitch_complain(htvm_soc_t *soc, snitch_device_t *device, uint32_t code, const char *format,
                     ...)
{
    device->error = code;
    va_list arguments;
    va_start(arguments, format);
    htvm_log_complaint(&soc->log, device->name, format, arguments);
    va_end(arguments);
    snitch_drop(device);
    if (device == &soc->ita) {
        soc->scored_cols = 0;
    }
    return false;
}
