/* Transfers on MCHAN; see cluster_dma.h.
 *
 * Each transfer has a counter of its own.  A ticket is a transfer's number; what is under way are
 * the transfers after `done`, up to `started`.
 */
#include "cluster_dma.h"
#include "htvm_hal.h"
#include "siracusa_dma_regs.h"

#define REG(name) (SIRACUSA_DMA_REGISTERS + SIRACUSA_DMA_##name)

/* At most this many transfers are under way, so that the queue never overruns; a power of two,
 * because the core divides slowly. */
#define PLACES 8u
_Static_assert(PLACES <= SIRACUSA_DMA_QUEUE_DEPTH, "a place for each transfer");
_Static_assert(PLACES <= SIRACUSA_DMA_COUNTERS, "a counter for each transfer");

#ifndef HTVM_HAL_L1
#define HTVM_HAL_L1
#endif

static HTVM_HAL_L1 struct {
    uint32_t started, done;
    uint32_t counter[PLACES]; /* as a bit, of transfer number n at n modulo PLACES */
} transfers;

/* Waits for all transfers up to this one, and frees their counters. */
static __attribute__((noinline)) void finish(uint32_t ticket)
{
    uint32_t counters = 0;
    while (transfers.done != ticket) {
        counters |= transfers.counter[++transfers.done % PLACES];
    }
    uint32_t polls = 0;
    while ((htvm_hal_read(REG(STATUS)) & counters) != 0 && htvm_hal_timeout(++polls) == 0) {
    }
    htvm_hal_write(REG(STATUS), counters);
}

/* Begins a transfer with the words that all have, of which fewer than PLACES are under way. */
static inline uint32_t begin_now(uint32_t command, uint32_t l1, uint32_t outside)
{
    const uint32_t ticket = transfers.started + 1u;
    transfers.started = ticket;
    transfers.counter[ticket % PLACES] = 1u << htvm_hal_read(REG(COMMAND));
    htvm_hal_write(REG(COMMAND), command | SIRACUSA_DMA_INCREMENT);
    htvm_hal_write(REG(COMMAND), l1);
    htvm_hal_write(REG(COMMAND), outside);
    return ticket;
}

/* The same, waiting for a place. */
static inline void begin(uint32_t command, uint32_t l1, uint32_t outside)
{
    if (transfers.started - transfers.done == PLACES) {
        finish(transfers.done + 1u);
    }
    (void)begin_now(command, l1, outside);
}

/* A transfer with its sides named by where they are. */
typedef struct {
    uint32_t in; /* SIRACUSA_DMA_IN, or 0 */
    uint32_t l1, outside, l1_stride, outside_stride;
    uint32_t bytes, rows;
} rows_t;

/* Rows with gaps, which one command can move. */
static __attribute__((noinline)) void start_rows(const rows_t *what)
{
    const uint32_t l1 = what->l1_stride != what->bytes ? SIRACUSA_DMA_ROWS_L1 : 0;
    const uint32_t outside =
        what->outside_stride != what->bytes ? SIRACUSA_DMA_ROWS_OUTSIDE : 0;
    begin((what->rows * what->bytes) | what->in | outside | l1, what->l1, what->outside);
    if (outside) {
        htvm_hal_write(REG(COMMAND), what->bytes);
        htvm_hal_write(REG(COMMAND), what->outside_stride);
    }
    if (l1) {
        htvm_hal_write(REG(COMMAND), what->bytes);
        htvm_hal_write(REG(COMMAND), what->l1_stride);
    }
}

/* More bytes than a command can move: row by row, each in parts. */
static __attribute__((noinline)) void start_parts(const rows_t *what)
{
    for (uint32_t row = 0; row < what->rows; row++) {
        const uint32_t l1 = what->l1 + row * what->l1_stride;
        const uint32_t outside = what->outside + row * what->outside_stride;
        for (uint32_t at = 0; at < what->bytes; at += SIRACUSA_DMA_MOST_BYTES) {
            const uint32_t left = what->bytes - at;
            const uint32_t bytes = left < SIRACUSA_DMA_MOST_BYTES ? left : SIRACUSA_DMA_MOST_BYTES;
            begin(bytes | what->in, l1 + at, outside + at);
        }
    }
}

/* Any transfer. */
static __attribute__((noinline)) uint32_t start_any(const cluster_dma_t *what)
{
    const uint32_t to = htvm_hal_addr(what->to), from = htvm_hal_addr(what->from);
    const uint32_t in = to - HTVM_L1_BASE < HTVM_L1_SIZE ? SIRACUSA_DMA_IN : 0;
    const uint32_t single = what->rows == 1;
    const rows_t rows = {
        .in = in,
        .l1 = in ? to : from,
        .outside = in ? from : to,
        .l1_stride = single ? what->bytes : in ? what->to_stride : what->from_stride,
        .outside_stride = single ? what->bytes : in ? what->from_stride : what->to_stride,
        .bytes = what->bytes,
        .rows = what->rows,
    };
    if ((uint64_t)what->bytes * what->rows > SIRACUSA_DMA_MOST_BYTES) {
        start_parts(&rows);
    } else {
        start_rows(&rows);
    }
    return transfers.started;
}

/* Most transfers are one run and find a place: these need no stack. */
uint32_t cluster_dma_start(const cluster_dma_t *what)
{
    if (what->rows != 1 || what->bytes > SIRACUSA_DMA_MOST_BYTES ||
        transfers.started - transfers.done == PLACES) {
        return start_any(what);
    }
    const uint32_t to = htvm_hal_addr(what->to), from = htvm_hal_addr(what->from);
    if (to - HTVM_L1_BASE < HTVM_L1_SIZE) {
        return begin_now(what->bytes | SIRACUSA_DMA_IN, to, from);
    }
    return begin_now(what->bytes, from, to);
}

void cluster_dma_wait(uint32_t ticket)
{
    if ((int32_t)(ticket - transfers.done) > 0) {
        finish(ticket);
    }
}

void cluster_dma_wait_all(void)
{
    cluster_dma_wait(transfers.started);
}
