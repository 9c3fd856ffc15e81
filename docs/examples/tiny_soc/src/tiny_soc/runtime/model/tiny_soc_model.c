/* tiny: its device, as simulators see it (htvm_soc_model.h).
 *
 * The model computes exactly what the device does, says how long it takes, and complains, with
 * address and size, where the device would do something wrong.  A result is there when the time is
 * over, not before: a driver that does not wait reads what was in L1. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "htvm_soc_log.h"
#include "htvm_soc_model.h"
#include "tiny_regs.h"

struct htvm_soc {
    htvm_bus_t bus;
    uint32_t reg[TINY_REGISTERS / 4u];
    bool busy;
    uint64_t until;       /* busy: when the result is there */
    bool waiting;         /* the host has read that the device is busy */
    uint64_t waits_since;
    htvm_log_t log;       /* what was done, and the first complaint */
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

int htvm_soc_owns(uint32_t addr) { return addr - TINY_MAC_REGISTERS < TINY_REGISTERS; }

static uint32_t value_of(const htvm_soc_t *soc, uint32_t offset) { return soc->reg[offset / 4u]; }

/* Always false. */
static bool complain(htvm_soc_t *soc, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool complain(htvm_soc_t *soc, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    htvm_log_complaint(&soc->log, "MAC", format, arguments);
    va_end(arguments);
    return false;
}

/* Bytes of L1; NULL, with a complaint, if they are not all there. */
static uint8_t *place(htvm_soc_t *soc, const char *what, uint32_t offset, uint64_t bytes)
{
    if (offset > HTVM_L1_SIZE || bytes > HTVM_L1_SIZE - offset) {
        complain(soc, "%s at L1 0x%08" PRIX32 " (%" PRIu64 " B) leaves L1", what,
                 HTVM_L1_BASE + offset, bytes);
        return NULL;
    }
    return soc->bus.map(soc->bus.ctx, HTVM_L1_BASE + offset, (uint32_t)bytes);
}

static bool overlap(uint32_t a, uint64_t a_bytes, uint32_t b, uint64_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

typedef struct {
    uint8_t *in, *weights, *out;
} places_t;

/* Where the product is that the registers describe; false, with a complaint, if it is wrong. */
static bool find(htvm_soc_t *soc, places_t *found)
{
    const uint64_t rows = value_of(soc, TINY_REG_ROWS), k = value_of(soc, TINY_REG_K),
                   c = value_of(soc, TINY_REG_C), pitch = value_of(soc, TINY_REG_PITCH);
    const uint32_t in = value_of(soc, TINY_REG_IN), weights = value_of(soc, TINY_REG_WEIGHTS),
                   out = value_of(soc, TINY_REG_OUT);
    if (rows == 0 || k == 0 || c == 0 || rows > HTVM_L1_SIZE || k > HTVM_L1_SIZE ||
        c > HTVM_L1_SIZE || pitch < k ||
        pitch > HTVM_L1_SIZE || value_of(soc, TINY_REG_SHIFT) > TINY_MAC_MAX_SHIFT) {
        return complain(soc, "a product of %" PRIu64 "x%" PRIu64 " by %" PRIu64 ", shift %" PRIu32,
                        rows, c, k, value_of(soc, TINY_REG_SHIFT));
    }
    if (weights % TINY_MAC_ALIGN != 0) {
        return complain(soc, "weights at L1 0x%08" PRIX32 " are not aligned to %u B",
                        HTVM_L1_BASE + weights, TINY_MAC_ALIGN);
    }
    const uint64_t out_bytes = (rows - 1u) * pitch + k;
    if (overlap(out, out_bytes, in, rows * c) || overlap(out, out_bytes, weights, k * (c + 4u))) {
        return complain(soc, "output at L1 0x%08" PRIX32 " (%" PRIu64 " B) overlaps an operand",
                        HTVM_L1_BASE + out, out_bytes);
    }
    found->in = place(soc, "input", in, rows * c);
    found->weights = place(soc, "weights", weights, k * (c + 4u));
    found->out = place(soc, "output", out, out_bytes);
    return found->in != NULL && found->weights != NULL && found->out != NULL;
}

static int32_t bias_at(const uint8_t *at)
{
    int32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static void compute(htvm_soc_t *soc)
{
    const uint32_t rows = value_of(soc, TINY_REG_ROWS), k = value_of(soc, TINY_REG_K),
                   c = value_of(soc, TINY_REG_C), pitch = value_of(soc, TINY_REG_PITCH),
                   shift = value_of(soc, TINY_REG_SHIFT);
    const int32_t low = (int32_t)value_of(soc, TINY_REG_LOW),
                  high = (int32_t)value_of(soc, TINY_REG_HIGH);
    places_t at;
    if (!find(soc, &at)) {
        return;
    }
    for (uint32_t row = 0; row < rows; ++row) {
        for (uint32_t n = 0; n < k; ++n) {
            /* no sum of bytes in L1 leaves 64 bits; the device wraps to 32 */
            int64_t sum = bias_at(at.weights + 4u * n);
            for (uint32_t i = 0; i < c; ++i) {
                const int8_t weight = (int8_t)at.weights[4u * k + (size_t)n * c + i];
                sum += (int8_t)at.in[(size_t)row * c + i] * weight;
            }
            const int32_t shifted = (int32_t)sum >> shift;
            const int32_t clipped = shifted < low ? low : shifted > high ? high : shifted;
            at.out[(size_t)row * pitch + n] = (uint8_t)clipped;
        }
    }
}

static void start(htvm_soc_t *soc, uint64_t now)
{
    places_t unused;
    if (soc->busy) {
        complain(soc, "started while it is busy");
        return;
    }
    if (!find(soc, &unused)) {
        return;
    }
    const uint64_t rows = value_of(soc, TINY_REG_ROWS), k = value_of(soc, TINY_REG_K),
                   c = value_of(soc, TINY_REG_C);
    const uint64_t array = rows * ((k + TINY_MAC_LANES - 1u) / TINY_MAC_LANES) *
                           ((c + TINY_MAC_WIDTH - 1u) / TINY_MAC_WIDTH);
    soc->busy = true;
    soc->until = now + TINY_MAC_START_CYCLES + array;
    htvm_log_event(&soc->log, (htvm_event_t){.unit = "mac",
                                             .what = "product",
                                             .start = now,
                                             .end = soc->until,
                                             .macs = rows * k * c,
                                             .array = array});
}

static void advance(htvm_soc_t *soc, uint64_t now)
{
    if (soc->busy && now >= soc->until) {
        soc->busy = false;
        compute(soc);
    }
}

uint32_t htvm_soc_read(htvm_soc_t *soc, uint32_t addr, uint64_t now)
{
    advance(soc, now);
    if (addr - TINY_MAC_REGISTERS != TINY_REG_STATUS) {
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
        return TINY_STATUS_ERROR;
    }
    return soc->busy ? TINY_STATUS_BUSY : TINY_STATUS_IDLE;
}

void htvm_soc_write(htvm_soc_t *soc, uint32_t addr, uint32_t value, uint64_t now)
{
    const uint32_t offset = addr - TINY_MAC_REGISTERS;
    advance(soc, now);
    soc->waiting = false;
    if (offset % 4u != 0 || offset < TINY_REG_IN || offset > TINY_REG_START || soc->busy) {
        complain(soc, "write to 0x%08" PRIX32 "%s", addr,
                 soc->busy ? " while it is busy" : ", which is no register to write");
        return;
    }
    soc->reg[offset / 4u] = value;
    if (offset == TINY_REG_START) {
        start(soc, now);
    }
}

uint64_t htvm_soc_next_event(htvm_soc_t *soc, uint64_t now)
{
    return soc->busy && soc->until > now ? soc->until : UINT64_MAX;
}

const char *htvm_soc_error(const htvm_soc_t *soc) { return htvm_log_error(&soc->log); }

void htvm_soc_events(const htvm_soc_t *soc, FILE *out) { htvm_log_print(&soc->log, out); }
