/* DIANA: driver of the DMA.
 *
 * Runs on the simulated host too, where its cycles are part of the published cost of a transfer:
 * keep it tight, and measure driver_cycles again after a change.
 */
#include "diana_driver.h"

#include <stdbool.h>

#include "diana_poll.h"

#define DMA(reg) (DIANA_DMA_REGISTERS + DIANA_##reg)

static inline int32_t dma_finish(void)
{
    return diana_poll(DMA(REG_STATUS), DMA(REG_ERROR));
}

static inline int32_t dma_command(uint32_t l1, uint32_t l2, uint32_t command)
{
    htvm_hal_write(DMA(DMA_L2), l2);
    htvm_hal_write(DMA(DMA_L1), l1);
    htvm_hal_write(DMA(DMA_COMMAND), command);
    return dma_finish();
}

/* Moves `count` runs of bytes at these strides; only the first may be the first of its call. */
static inline int32_t dma_runs(uint32_t l1, uint32_t l2, uint32_t count, uint32_t l1_stride,
                               uint32_t l2_stride, uint32_t command)
{
    do {
        const int32_t error = dma_command(l1, l2, command);
        if (error != 0) {
            return error;
        }
        command = (command & ~DIANA_DMA_POSITION_MASK) | DIANA_DMA_NEXT;
        l1 += l1_stride;
        l2 += l2_stride;
    } while (--count != 0);
    return 0;
}

/* Whether the rows (or channels) of a block are not contiguous in L1, or not in L2. */
static inline bool rows_apart(const diana_block_t *b)
{
    return b->rows != 1 && UNLIKELY(b->l2_row_stride != b->bytes || b->l1_row_stride != b->bytes);
}

static inline bool channels_apart(const diana_block_t *b, uint32_t map)
{
    return b->channels != 1 && UNLIKELY(b->l2_channel_stride != map || b->l1_channel_stride != map);
}

/* Moves a block row by row, with one command each. */
static int32_t dma_rows(uint32_t l1, uint32_t l2, const diana_block_t *b, uint32_t direction)
{
    uint32_t command = b->bytes | direction | DIANA_DMA_FIRST;
    for (uint32_t left = b->channels; left != 0; left--) {
        const int32_t error =
            dma_runs(l1, l2, b->rows, b->l1_row_stride, b->l2_row_stride, command);
        if (error != 0) {
            return error;
        }
        command = b->bytes | direction | DIANA_DMA_NEXT;
        l1 += b->l1_channel_stride;
        l2 += b->l2_channel_stride;
    }
    return 0;
}

static inline bool is_empty(const diana_block_t *b)
{
    return b->rows == 0 || b->bytes == 0 || b->channels == 0;
}

/* Moves a block that is not contiguous, row by row or channel by channel. */
static __attribute__((noinline)) int32_t dma_scattered(uint32_t l1, uint32_t l2,
                                                       const diana_block_t *b, uint32_t direction)
{
    const uint32_t map = b->rows * b->bytes;
    if (is_empty(b)) {
        return (int32_t)DIANA_ERROR_PARAMETER;
    }
    if (!rows_apart(b)) {
        return dma_runs(l1, l2, b->channels, b->l1_channel_stride, b->l2_channel_stride,
                        map | direction | DIANA_DMA_FIRST);
    }
    return dma_rows(l1, l2, b, direction);
}

/* Inlined, and separate from dma_scattered, so that the common case need not save registers. */
static inline int32_t dma_block(uint32_t l1, uint32_t l2, const diana_block_t *b,
                                uint32_t direction)
{
    const uint32_t map = b->rows * b->bytes;
    const uint32_t total = b->channels * map;
    if (UNLIKELY((total & ~DIANA_DMA_BYTES_MASK) != 0)) {
        return (int32_t)DIANA_ERROR_PARAMETER; /* more than fits a command, or L1 */
    }
    if (rows_apart(b) || channels_apart(b, map)) {
        return dma_scattered(l1, l2, b, direction);
    }
    return dma_command(l1, l2, total | direction | DIANA_DMA_SINGLE);
}

int32_t diana_dma_in(uint32_t l1, const void *l2, const diana_block_t *block)
{
    return dma_block(l1, htvm_hal_addr(l2), block, 0u);
}

int32_t diana_dma_out(void *l2, uint32_t l1, const diana_block_t *block)
{
    return dma_block(l1, htvm_hal_addr(l2), block, DIANA_DMA_TO_L2);
}

int32_t diana_dma_in_rows(uint32_t l1, const void *l2, const diana_block_t *block)
{
    if (is_empty(block)) {
        return (int32_t)DIANA_ERROR_PARAMETER;
    }
    return dma_rows(l1, htvm_hal_addr(l2), block, 0u);
}

static inline void dma_queue(uint32_t l1, uint32_t l2, uint32_t command)
{
    uint32_t polls = 0;
    while (UNLIKELY(htvm_hal_read(DMA(DMA_ROOM)) == 0)) {
        if (htvm_hal_timeout(++polls) != 0) {
            return;
        }
    }
    htvm_hal_write(DMA(DMA_L2), l2);
    htvm_hal_write(DMA(DMA_L1), l1);
    htvm_hal_write(DMA(DMA_COMMAND), command);
}

/* Queues `count` runs of bytes at these strides; returns the flags of further commands. */
static inline uint32_t dma_queue_runs(uint32_t l1, uint32_t l2, uint32_t count, uint32_t l1_stride,
                                      uint32_t l2_stride, uint32_t command)
{
    do {
        dma_queue(l1, l2, command);
        command = (command & ~DIANA_DMA_POSITION_MASK) | DIANA_DMA_NEXT;
        l1 += l1_stride;
        l2 += l2_stride;
    } while (--count != 0);
    return command;
}

static __attribute__((noinline)) void dma_queue_scattered(uint32_t l1, uint32_t l2,
                                                          const diana_block_t *b,
                                                          uint32_t direction)
{
    /* Read once, because the compiler reads memory again after every access to a register. */
    const uint32_t channels = b->channels;
    const uint32_t rows = b->rows;
    const uint32_t l1_row = b->l1_row_stride;
    const uint32_t l2_row = b->l2_row_stride;
    const uint32_t l1_map = b->l1_channel_stride;
    const uint32_t l2_map = b->l2_channel_stride;
    uint32_t command = b->bytes | direction | DIANA_DMA_FIRST;

    if (!rows_apart(b)) {
        dma_queue_runs(l1, l2, channels, l1_map, l2_map, rows * b->bytes | direction | DIANA_DMA_FIRST);
        return;
    }
    for (uint32_t left = channels; left != 0; left--) {
        command = dma_queue_runs(l1, l2, rows, l1_row, l2_row, command);
        l1 += l1_map;
        l2 += l2_map;
    }
}

static inline void dma_start(uint32_t l1, uint32_t l2, const diana_block_t *b, uint32_t direction)
{
    const uint32_t map = b->rows * b->bytes;
    const uint32_t total = b->channels * map;
    if (UNLIKELY(total == 0 || (total & ~DIANA_DMA_BYTES_MASK) != 0)) {
        dma_queue(l1, l2, direction); /* no bytes: the device refuses it, the wait says so */
    } else if (rows_apart(b) || channels_apart(b, map)) {
        dma_queue_scattered(l1, l2, b, direction);
    } else {
        dma_queue(l1, l2, total | direction | DIANA_DMA_SINGLE);
    }
}

void diana_dma_in_start(uint32_t l1, const void *l2, const diana_block_t *block)
{
    dma_start(l1, htvm_hal_addr(l2), block, 0u);
}

void diana_dma_out_start(void *l2, uint32_t l1, const diana_block_t *block)
{
    dma_start(l1, htvm_hal_addr(l2), block, DIANA_DMA_TO_L2);
}

int32_t diana_dma_wait(void) { return dma_finish(); }
