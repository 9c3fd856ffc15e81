/* Transfers on MCHAN; see cluster_dma.h.
 *
 * Each transfer has a counter of its own.  A ticket is a transfer's number; what is under way are
 * the transfers after `done`, up to `started`.
 */
#include "cluster_dma.h"
#include "htvm_hal.h"
#include "siracusa_dma_regs.h"

#define REG(name) (SIRACUSA_DMA_REGISTERS + SIRACUSA_DMA_##name)

/* At most this many transfers are under way, so that the queue never overruns. */
#define PLACES SIRACUSA_DMA_QUEUE_DEPTH
_Static_assert(PLACES <= SIRACUSA_DMA_COUNTERS, "a counter for each transfer");

#ifndef HTVM_HAL_L1
#define HTVM_HAL_L1
#endif

static HTVM_HAL_L1 struct {
    uint32_t started, done;
    uint32_t counter[PLACES]; /* as a bit, of transfer number n at n modulo PLACES */
} transfers;

/* Waits for the oldest transfer that is under way, and frees its counter. */
static void finish_one(void)
{
    const uint32_t counter = transfers.counter[++transfers.done % PLACES];
    while ((htvm_hal_read(REG(STATUS)) & counter) != 0) {
    }
    htvm_hal_write(REG(STATUS), counter);
}

static void push_rows(uint32_t bytes, uint32_t stride)
{
    htvm_hal_write(REG(COMMAND), bytes);
    htvm_hal_write(REG(COMMAND), stride);
}

/* Starts rows that one command can move. */
static void start(uint32_t l1, uint32_t outside, uint32_t in, const cluster_dma_t *what)
{
    const uint32_t l1_stride = in ? what->to_stride : what->from_stride;
    const uint32_t stride = in ? what->from_stride : what->to_stride;
    const uint32_t l1_rows = what->rows > 1 && l1_stride != what->bytes ? SIRACUSA_DMA_ROWS_L1 : 0;
    const uint32_t outer_rows =
        what->rows > 1 && stride != what->bytes ? SIRACUSA_DMA_ROWS_OUTSIDE : 0;
    if (transfers.started - transfers.done == PLACES) {
        finish_one();
    }
    transfers.counter[++transfers.started % PLACES] = 1u << htvm_hal_read(REG(COMMAND));
    htvm_hal_write(REG(COMMAND), (what->rows * what->bytes) | in | SIRACUSA_DMA_INCREMENT |
                                     outer_rows | l1_rows);
    htvm_hal_write(REG(COMMAND), l1);
    htvm_hal_write(REG(COMMAND), outside);
    if (outer_rows) {
        push_rows(what->bytes, stride);
    }
    if (l1_rows) {
        push_rows(what->bytes, l1_stride);
    }
}

/* The bytes of one row after the other, as much with one command as there may be. */
static void start_long_rows(uint32_t l1, uint32_t outside, uint32_t in, const cluster_dma_t *what)
{
    const uint32_t l1_stride = in ? what->to_stride : what->from_stride;
    const uint32_t stride = in ? what->from_stride : what->to_stride;
    for (uint32_t row = 0; row < what->rows; row++) {
        for (uint32_t at = 0; at < what->bytes; at += SIRACUSA_DMA_MOST_BYTES) {
            const uint32_t left = what->bytes - at;
            const cluster_dma_t part = {
                .bytes = left < SIRACUSA_DMA_MOST_BYTES ? left : SIRACUSA_DMA_MOST_BYTES,
                .rows = 1,
            };
            start(l1 + row * l1_stride + at, outside + row * stride + at, in, &part);
        }
    }
}

uint32_t cluster_dma_start(const cluster_dma_t *what)
{
    const uint32_t to = htvm_hal_addr(what->to), from = htvm_hal_addr(what->from);
    const uint32_t in = to - HTVM_L1_BASE < HTVM_L1_SIZE ? SIRACUSA_DMA_IN : 0;
    const uint32_t l1 = in ? to : from, outside = in ? from : to;
    if (what->bytes > SIRACUSA_DMA_MOST_BYTES / what->rows) {
        start_long_rows(l1, outside, in, what);
    } else {
        start(l1, outside, in, what);
    }
    return transfers.started;
}

void cluster_dma_wait(uint32_t ticket)
{
    while ((int32_t)(ticket - transfers.done) > 0) {
        finish_one();
    }
}

void cluster_dma_wait_all(void)
{
    cluster_dma_wait(transfers.started);
}
