/* What the tests of the cluster's device models share: a machine with L1, some L2, and a clock. */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "htvm_soc_model.h"
#include "htvm_test.h"
#include "snitch_ita_driver.h"
#include "snitch_regs.h"

#define BENCH_L2 65536u
#define L1(offset) (HTVM_L1_BASE + (offset))
#define L2(offset) (HTVM_L2_BASE + (offset))
#define DMA SNITCH_ITA_DMA_REGISTERS
#define ITA SNITCH_ITA_ITA_REGISTERS

typedef struct {
    uint8_t l1[HTVM_L1_SIZE];
    uint8_t l2[BENCH_L2];
    htvm_soc_t *soc;
    uint64_t now;
} bench_t;

static inline uint8_t *bench_map(void *ctx, uint32_t addr, uint32_t bytes)
{
    bench_t *b = ctx;
    if (addr - HTVM_L1_BASE < HTVM_L1_SIZE) {
        const uint32_t offset = addr - HTVM_L1_BASE;
        return bytes <= HTVM_L1_SIZE - offset ? b->l1 + offset : NULL;
    }
    const uint32_t offset = addr - HTVM_L2_BASE;
    return offset < BENCH_L2 && bytes <= BENCH_L2 - offset ? b->l2 + offset : NULL;
}

/* Device address of a byte of L1 or L2. */
static inline uint32_t bench_addr(const bench_t *b, const void *p)
{
    const uint8_t *byte = p;
    if (byte >= b->l2 && byte < b->l2 + BENCH_L2) {
        return HTVM_L2_BASE + (uint32_t)(byte - b->l2);
    }
    return HTVM_L1_BASE + (uint32_t)(byte - b->l1);
}

#include "../machine.h"

/* Lets the device finish. */
static inline void bench_finish(bench_t *b, uint32_t device)
{
    while (bench_read(b, device + SNITCH_REG_STATUS) == SNITCH_STATUS_BUSY) {
        b->now = htvm_soc_next_event(b->soc, b->now);
    }
}

/* A transfer in the order of the registers. */
typedef struct {
    uint32_t source, dest, bytes, rows, source_stride, dest_stride;
} bench_transfer_t;

static inline uint32_t bench_transfer(bench_t *b, bench_transfer_t t)
{
    bench_write(b, DMA + SNITCH_DMA_SOURCE, t.source);
    bench_write(b, DMA + SNITCH_DMA_DEST, t.dest);
    bench_write(b, DMA + SNITCH_DMA_BYTES, t.bytes);
    bench_write(b, DMA + SNITCH_DMA_ROWS, t.rows);
    bench_write(b, DMA + SNITCH_DMA_SOURCE_STRIDE, t.source_stride);
    bench_write(b, DMA + SNITCH_DMA_DEST_STRIDE, t.dest_stride);
    bench_write(b, DMA + SNITCH_DMA_START, 1);
    return bench_read(b, DMA + SNITCH_REG_ERROR);
}

/* Starts a task without waiting for a context; returns the error code. */
static inline uint32_t bench_task(bench_t *b, const snitch_ita_task_t *task)
{
    for (uint32_t i = 0; i < sizeof *task / 4u; i++) {
        uint32_t word;
        memcpy(&word, (const uint8_t *)task + 4u * i, sizeof word);
        bench_write(b, ITA + SNITCH_ITA_SIZE0 + 4u * i, word);
    }
    bench_write(b, ITA + SNITCH_ITA_START, 1);
    return bench_read(b, ITA + SNITCH_REG_ERROR);
}

/* A task that is right, for tests to spoil: 64 x 64 x 64, operands in the first 8 KiB, biases in
 * the next, the result in the one behind. */
static inline snitch_ita_task_t bench_task_defaults(void)
{
    return (snitch_ita_task_t){
        .rows = 64,
        .cols = 64,
        .inner = 64,
        .length = 64,
        .operation = SNITCH_ITA_OP_LINEAR,
        .bias_kind = SNITCH_ITA_BIAS_COLS,
        .requant = {.mult = 1},
        .left = L1(0),
        .left_stride = 64,
        .right = L1(4096),
        .right_stride = 64,
        .bias = L1(8192),
        .out = L1(16384),
        .out_stride = 64,
    };
}

#endif
