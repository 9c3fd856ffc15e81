/* tiny: its devices, as simulators see them (htvm_soc_model.h).
 *
 * The model computes exactly what the devices do, says how long it takes, and complains, with
 * address and size, where a device would do something wrong.  Results and moved bytes are there
 * when the time is over, not before: a driver that does not wait reads what was there. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "htvm_soc_log.h"
#include "htvm_soc_model.h"
#include "tiny_regs.h"

/* Bytes of L1. */
typedef struct {
    uint32_t offset;
    uint64_t bytes;
    uint8_t *memory;
} area_t;

typedef struct {
    area_t in, weights, out;
} product_t;

typedef struct {
    area_t l1;
    uint8_t *outside;
    uint32_t l2, pitch, rows, bytes;
    bool out;
    uint64_t end;
} transfer_t;

struct htvm_soc {
    htvm_bus_t bus;
    uint32_t mac[TINY_MAC_REG_END / 4u];
    uint32_t dma[TINY_DMA_REG_END / 4u];
    bool busy;                              /* the accelerator, */
    product_t product;                      /* with this, */
    uint64_t until;                         /* until the result is there */
    uint32_t started, done;                 /* transfers, since the beginning */
    transfer_t queue[TINY_DMA_QUEUE_DEPTH]; /* those between; the number gives the place */
    uint32_t polled;                        /* the register that the host waits at; 0: none */
    uint64_t since;                         /* it was read then */
    htvm_log_t log;                         /* what was done, and the first complaint */
};

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

int htvm_soc_owns(uint32_t addr)
{
    return addr - TINY_MAC_REGISTERS < TINY_MAC_REG_END ||
           addr - TINY_DMA_REGISTERS < TINY_DMA_REG_END;
}

/* Always false. */
static bool complain(htvm_soc_t *soc, const char *device, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static bool complain(htvm_soc_t *soc, const char *device, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    htvm_log_complaint(&soc->log, device, format, arguments);
    va_end(arguments);
    return false;
}

/* Finds bytes of L1; false, with a complaint, if they are not all there. */
static bool find(htvm_soc_t *soc, const char *device, const char *what, area_t *area)
{
    if (area->offset > HTVM_L1_SIZE || area->bytes > HTVM_L1_SIZE - area->offset) {
        return complain(soc, device, "%s at L1 0x%08" PRIX32 " (%" PRIu64 " B) leaves L1", what,
                        HTVM_L1_BASE + area->offset, area->bytes);
    }
    const uint32_t addr = HTVM_L1_BASE + area->offset;
    area->memory = soc->bus.map(soc->bus.ctx, addr, (uint32_t)area->bytes);
    return area->memory != NULL;
}

static bool overlap(const area_t *a, const area_t *b)
{
    return a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

/* Whether a transfer writes what a product uses, or reads what it writes. */
static bool meet(const transfer_t *transfer, const product_t *product)
{
    return overlap(&transfer->l1, &product->out) ||
           (!transfer->out && (overlap(&transfer->l1, &product->in) ||
                               overlap(&transfer->l1, &product->weights)));
}

static uint64_t blocks(uint64_t size, uint64_t block) { return (size + block - 1u) / block; }

/* ---- the accelerator ------------------------------------------------------------------------ */

static uint32_t mac(const htvm_soc_t *soc, uint32_t offset) { return soc->mac[offset / 4u]; }

/* The product that the registers describe; false, with a complaint, if it is wrong. */
static bool find_product(htvm_soc_t *soc, product_t *found)
{
    const uint64_t rows = mac(soc, TINY_MAC_REG_ROWS), k = mac(soc, TINY_MAC_REG_K),
                   c = mac(soc, TINY_MAC_REG_C), pitch = mac(soc, TINY_MAC_REG_PITCH);
    if (rows == 0 || k == 0 || c == 0 || rows > HTVM_L1_SIZE || k > HTVM_L1_SIZE ||
        c > HTVM_L1_SIZE || pitch < k || pitch > HTVM_L1_SIZE ||
        mac(soc, TINY_MAC_REG_SHIFT) > TINY_MAC_MAX_SHIFT) {
        return complain(soc, "MAC",
                        "a product of %" PRIu64 "x%" PRIu64 " by %" PRIu64 ", shift %" PRIu32, rows,
                        c, k, mac(soc, TINY_MAC_REG_SHIFT));
    }
    found->in = (area_t){.offset = mac(soc, TINY_MAC_REG_IN), .bytes = rows * c};
    found->weights = (area_t){.offset = mac(soc, TINY_MAC_REG_WEIGHTS), .bytes = k * (c + 4u)};
    found->out = (area_t){.offset = mac(soc, TINY_MAC_REG_OUT), .bytes = (rows - 1u) * pitch + k};
    if (found->weights.offset % TINY_MAC_ALIGN != 0) {
        return complain(soc, "MAC", "weights at L1 0x%08" PRIX32 " are not aligned to %u B",
                        HTVM_L1_BASE + found->weights.offset, TINY_MAC_ALIGN);
    }
    if (overlap(&found->out, &found->in) || overlap(&found->out, &found->weights)) {
        return complain(soc, "MAC", "output at L1 0x%08" PRIX32 " (%" PRIu64
                        " B) overlaps an operand", HTVM_L1_BASE + found->out.offset,
                        found->out.bytes);
    }
    return find(soc, "MAC", "input", &found->in) &&
           find(soc, "MAC", "weights", &found->weights) && find(soc, "MAC", "output", &found->out);
}

static int32_t bias_at(const uint8_t *at)
{
    int32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static void compute(htvm_soc_t *soc)
{
    const uint32_t rows = mac(soc, TINY_MAC_REG_ROWS), k = mac(soc, TINY_MAC_REG_K),
                   c = mac(soc, TINY_MAC_REG_C), pitch = mac(soc, TINY_MAC_REG_PITCH),
                   shift = mac(soc, TINY_MAC_REG_SHIFT);
    const int32_t low = (int32_t)mac(soc, TINY_MAC_REG_LOW),
                  high = (int32_t)mac(soc, TINY_MAC_REG_HIGH);
    const uint8_t *in = soc->product.in.memory, *weights = soc->product.weights.memory;
    for (uint32_t row = 0; row < rows; ++row) {
        for (uint32_t n = 0; n < k; ++n) {
            /* no sum of bytes in L1 leaves 64 bits; the device wraps to 32 */
            int64_t sum = bias_at(weights + 4u * n);
            for (uint32_t i = 0; i < c; ++i) {
                const int8_t weight = (int8_t)weights[4u * k + (size_t)n * c + i];
                sum += (int8_t)in[(size_t)row * c + i] * weight;
            }
            const int32_t shifted = (int32_t)sum >> shift;
            const int32_t clipped = shifted < low ? low : shifted > high ? high : shifted;
            soc->product.out.memory[(size_t)row * pitch + n] = (uint8_t)clipped;
        }
    }
}

static void start_product(htvm_soc_t *soc, uint64_t now)
{
    if (!find_product(soc, &soc->product)) {
        return;
    }
    for (uint32_t n = soc->done; n != soc->started; ++n) {
        const transfer_t *transfer = &soc->queue[n % TINY_DMA_QUEUE_DEPTH];
        if (meet(transfer, &soc->product)) {
            complain(soc, "MAC", "started while a transfer %s L1 0x%08" PRIX32 " (%" PRIu64
                     " B), which it uses, is under way", transfer->out ? "from" : "to",
                     HTVM_L1_BASE + transfer->l1.offset, transfer->l1.bytes);
            return;
        }
    }
    const uint64_t rows = mac(soc, TINY_MAC_REG_ROWS), k = mac(soc, TINY_MAC_REG_K),
                   c = mac(soc, TINY_MAC_REG_C);
    const uint64_t array = rows * blocks(k, TINY_MAC_LANES) * blocks(c, TINY_MAC_WIDTH);
    soc->busy = true;
    soc->until = now + TINY_MAC_START_CYCLES + array;
    htvm_log_event(&soc->log, (htvm_event_t){.unit = "mac",
                                             .what = "product",
                                             .start = now,
                                             .end = soc->until,
                                             .macs = rows * k * c,
                                             .array = array});
}

/* ---- the DMA -------------------------------------------------------------------------------- */

static uint32_t dma(const htvm_soc_t *soc, uint32_t offset) { return soc->dma[offset / 4u]; }

/* Finds the bytes outside of L1; false, with a complaint, if there is no such memory. */
static bool find_outside(htvm_soc_t *soc, transfer_t *transfer)
{
    const uint64_t span = (uint64_t)(transfer->rows - 1u) * transfer->pitch + transfer->bytes;
    const uint64_t end = transfer->l2 + span;
    const bool in_l1 = transfer->l2 < HTVM_L1_BASE + HTVM_L1_SIZE && end > HTVM_L1_BASE;
    if (!in_l1 && end <= UINT32_MAX) {
        transfer->outside = soc->bus.map(soc->bus.ctx, transfer->l2, (uint32_t)span);
    }
    return transfer->outside != NULL ||
           complain(soc, "DMA", "transfer at 0x%08" PRIX32 " (%" PRIu32 " x %" PRIu32
                    " B, every %" PRIu32 " B) is not in memory outside of L1", transfer->l2,
                    transfer->rows, transfer->bytes, transfer->pitch);
}

/* The transfer that the registers describe; false, with a complaint, if it is wrong. */
static bool find_transfer(htvm_soc_t *soc, transfer_t *found)
{
    const uint32_t rows = dma(soc, TINY_DMA_REG_ROWS), bytes = dma(soc, TINY_DMA_REG_BYTES);
    *found = (transfer_t){
        .l1 = {.offset = dma(soc, TINY_DMA_REG_L1), .bytes = (uint64_t)rows * bytes},
        .l2 = dma(soc, TINY_DMA_REG_L2),
        .pitch = rows == 1 ? 0 : dma(soc, TINY_DMA_REG_PITCH),
        .rows = rows,
        .bytes = bytes,
        .out = dma(soc, TINY_DMA_REG_START) == TINY_DMA_OUT,
    };
    if (found->l1.bytes == 0 || (rows > 1 && found->pitch < bytes) ||
        dma(soc, TINY_DMA_REG_START) > TINY_DMA_OUT) {
        return complain(soc, "DMA", "a transfer of %" PRIu32 " x %" PRIu32 " B, every %" PRIu32
                        " B, direction %" PRIu32, rows, bytes, found->pitch,
                        dma(soc, TINY_DMA_REG_START));
    }
    if (found->l1.offset % TINY_DMA_L1_ALIGN != 0 || found->l2 % TINY_DMA_L2_ALIGN != 0 ||
        found->pitch % TINY_DMA_L2_ALIGN != 0) {
        return complain(soc, "DMA", "L1 0x%08" PRIX32 " is not aligned to %u B, or 0x%08" PRIX32
                        ", every %" PRIu32 " B, not to %u B", HTVM_L1_BASE + found->l1.offset,
                        TINY_DMA_L1_ALIGN, found->l2, found->pitch, TINY_DMA_L2_ALIGN);
    }
    return find(soc, "DMA", "transfer", &found->l1) && find_outside(soc, found);
}

static void move(const transfer_t *transfer)
{
    for (size_t row = 0; row < transfer->rows; ++row) {
        uint8_t *inside = transfer->l1.memory + row * transfer->bytes;
        uint8_t *outside = transfer->outside + row * transfer->pitch;
        memcpy(transfer->out ? outside : inside, transfer->out ? inside : outside, transfer->bytes);
    }
}

static void start_transfer(htvm_soc_t *soc, uint64_t now)
{
    transfer_t transfer;
    if (!find_transfer(soc, &transfer)) {
        return;
    }
    if (soc->started - soc->done == TINY_DMA_QUEUE_DEPTH) {
        complain(soc, "DMA", "started while the queue of %u is full", TINY_DMA_QUEUE_DEPTH);
        return;
    }
    if (soc->busy && meet(&transfer, &soc->product)) {
        complain(soc, "DMA", "transfer %s L1 0x%08" PRIX32 " (%" PRIu64
                 " B), which the accelerator uses", transfer.out ? "from" : "to",
                 HTVM_L1_BASE + transfer.l1.offset, transfer.l1.bytes);
        return;
    }
    const uint32_t last = (soc->started - 1u) % TINY_DMA_QUEUE_DEPTH;
    const uint64_t start = soc->started == soc->done ? now : soc->queue[last].end;
    const uint64_t charged = blocks(transfer.bytes, TINY_DMA_GRANULE) * TINY_DMA_GRANULE;
    const uint64_t row = blocks(charged, TINY_DMA_BYTES_PER_CYCLE) +
                         (transfer.rows > 1 ? TINY_DMA_COMMAND_CYCLES : 0u);
    transfer.end = start + TINY_DMA_CALL_CYCLES + transfer.rows * row;
    soc->queue[soc->started++ % TINY_DMA_QUEUE_DEPTH] = transfer;
    const uint32_t inside = HTVM_L1_BASE + transfer.l1.offset;
    htvm_event_t event = {.unit = "dma",
                          .what = transfer.out ? "out" : "in",
                          .start = start,
                          .end = transfer.end,
                          .issued = now,
                          .bytes = transfer.l1.bytes,
                          .from = transfer.out ? inside : transfer.l2,
                          .to = transfer.out ? transfer.l2 : inside,
                          .written = transfer.l1.bytes};
    if (transfer.out && transfer.rows > 1) {
        event.to_rows = (htvm_rows_t){.rows = transfer.rows,
                                      .row_stride = transfer.pitch,
                                      .pixels = 1,
                                      .bytes = transfer.bytes};
        event.written = (uint64_t)(transfer.rows - 1u) * transfer.pitch + transfer.bytes;
    }
    htvm_log_event(&soc->log, event);
}

/* ---- registers ------------------------------------------------------------------------------ */

/* Completes what is done.  Transfers never meet the product under way, so the order is free. */
static void advance(htvm_soc_t *soc, uint64_t now)
{
    if (soc->busy && now >= soc->until) {
        soc->busy = false;
        compute(soc);
    }
    while (soc->done != soc->started && soc->queue[soc->done % TINY_DMA_QUEUE_DEPTH].end <= now) {
        move(&soc->queue[soc->done++ % TINY_DMA_QUEUE_DEPTH]);
    }
}

uint32_t htvm_soc_read(htvm_soc_t *soc, uint32_t addr, uint64_t now)
{
    uint32_t value = 0;
    bool waits = false;
    advance(soc, now);
    if (addr == TINY_MAC_REGISTERS + TINY_MAC_REG_STATUS) {
        waits = soc->busy;
        value = soc->log.complained ? TINY_STATUS_ERROR : waits ? TINY_STATUS_BUSY : TINY_STATUS_IDLE;
    } else if (addr == TINY_DMA_REGISTERS + TINY_DMA_REG_DONE) {
        waits = soc->done != soc->started;
        value = soc->done;
    } else if (addr == TINY_DMA_REGISTERS + TINY_DMA_REG_STARTED) {
        value = soc->started;
    } else {
        complain(soc, "bus", "read of register 0x%08" PRIX32 ", which cannot be read", addr);
    }
    if (addr == soc->polled && now > soc->since) {
        htvm_log_event(&soc->log, (htvm_event_t){.unit = "host",
                                                 .what = "wait",
                                                 .start = soc->since,
                                                 .end = now});
    }
    soc->polled = waits ? addr : 0;
    soc->since = now;
    return value;
}

void htvm_soc_write(htvm_soc_t *soc, uint32_t addr, uint32_t value, uint64_t now)
{
    const uint32_t to_mac = addr - TINY_MAC_REGISTERS, to_dma = addr - TINY_DMA_REGISTERS;
    advance(soc, now);
    soc->polled = 0;
    if (addr % 4u == 0 && to_mac >= TINY_MAC_REG_IN && to_mac <= TINY_MAC_REG_START && !soc->busy) {
        soc->mac[to_mac / 4u] = value;
        if (to_mac == TINY_MAC_REG_START) {
            start_product(soc, now);
        }
    } else if (addr % 4u == 0 && to_dma >= TINY_DMA_REG_L1 && to_dma <= TINY_DMA_REG_START) {
        soc->dma[to_dma / 4u] = value;
        if (to_dma == TINY_DMA_REG_START) {
            start_transfer(soc, now);
        }
    } else {
        complain(soc, "bus", "write to 0x%08" PRIX32 "%s", addr,
                 soc->busy && to_mac < TINY_MAC_REG_END ? " while it is busy"
                                                        : ", which is no register to write");
    }
}

uint64_t htvm_soc_next_event(htvm_soc_t *soc, uint64_t now)
{
    uint64_t next = soc->busy && soc->until > now ? soc->until : UINT64_MAX;
    if (soc->done != soc->started) {
        const uint64_t end = soc->queue[soc->done % TINY_DMA_QUEUE_DEPTH].end;
        next = end > now && end < next ? end : next;
    }
    return next;
}

const char *htvm_soc_error(const htvm_soc_t *soc) { return htvm_log_error(&soc->log); }

void htvm_soc_events(const htvm_soc_t *soc, FILE *out) { htvm_log_print(&soc->log, out); }
