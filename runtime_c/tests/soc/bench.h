/* What the tests of the device models share: a machine with an L2 and a clock. */
#ifndef BENCH_H
#define BENCH_H

#include <stdint.h>
#include <string.h>

#include "diana_regs.h"
#include "htvm_soc_model.h"
#include "htvm_test.h"

typedef struct {
    uint8_t l2[HTVM_L2_SIZE];
    htvm_soc_t *soc;
    uint64_t now;
} bench_t;

static inline uint8_t *bench_map(void *ctx, uint32_t addr, uint32_t bytes)
{
    bench_t *b = ctx;
    const uint32_t offset = addr - HTVM_L2_BASE;
    if (addr < HTVM_L2_BASE || offset > HTVM_L2_SIZE || bytes > HTVM_L2_SIZE - offset) {
        return NULL;
    }
    return b->l2 + offset;
}

#include "machine.h"

static inline uint32_t bench_status(bench_t *b, uint32_t device)
{
    return bench_read(b, device + DIANA_REG_STATUS);
}

/* Lets the device finish; returns how long it took. */
static inline uint64_t bench_finish(bench_t *b, uint32_t device)
{
    const uint64_t start = b->now;
    while (bench_status(b, device) == DIANA_STATUS_BUSY) {
        b->now = htvm_soc_next_event(b->soc, b->now);
    }
    return b->now - start;
}

static inline void bench_dma_set(bench_t *b, uint32_t reg, uint32_t value)
{
    bench_write(b, DIANA_DMA_REGISTERS + reg, value);
}

static inline void bench_core_set(bench_t *b, uint32_t reg, uint32_t value)
{
    bench_write(b, DIANA_DIGITAL_REGISTERS + reg, value);
}

/* Gives the DMA a command and does not wait for it. */
static inline void bench_dma_start(bench_t *b, uint32_t l2, uint32_t l1, uint32_t command)
{
    bench_dma_set(b, DIANA_DMA_L2, l2);
    bench_dma_set(b, DIANA_DMA_L1, l1);
    bench_dma_set(b, DIANA_DMA_COMMAND, command);
}

static inline uint64_t bench_dma(bench_t *b, uint32_t l2, uint32_t l1, uint32_t command)
{
    bench_dma_start(b, l2, l1, command);
    return bench_finish(b, DIANA_DMA_REGISTERS);
}

/* A trigger that is right, for tests to spoil: 3x3, 1 channel 8x8 -> 16 maps 8x8. */
static inline void bench_conv_defaults(bench_t *b)
{
    bench_core_set(b, DIANA_DIGITAL_SHAPE0, 16u | 1u << 16);
    bench_core_set(b, DIANA_DIGITAL_SHAPE1, 8u | 8u << 16);
    bench_core_set(b, DIANA_DIGITAL_SHAPE2, 8u | 8u << 16);
    bench_core_set(b, DIANA_DIGITAL_SHAPE3, 3u | 3u << 8 | 1u << 16 | 1u << 24);
    bench_core_set(b, DIANA_DIGITAL_SHAPE4, 1u);
    bench_core_set(b, DIANA_DIGITAL_IN, 0);
    bench_core_set(b, DIANA_DIGITAL_OUT, 4096);
    bench_core_set(b, DIANA_DIGITAL_WEIGHTS, HTVM_L2_BASE);
}

/* Starts the core; returns the error code. */
static inline uint32_t bench_start(bench_t *b, uint32_t operation)
{
    bench_core_set(b, DIANA_DIGITAL_START, operation);
    bench_finish(b, DIANA_DIGITAL_REGISTERS);
    return bench_read(b, DIANA_DIGITAL_REGISTERS + DIANA_REG_ERROR);
}

#endif
