/* What the tests of Siracusa's devices share: a machine with L1, some other memory, and a clock. */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "htvm_soc_model.h"
#include "htvm_test.h"
#include "siracusa_neureka_driver.h"

#define BENCH_WEIGHTS 1048576u /* bytes that each half of the weight memory has here */
#define BENCH_L2 65536u
#define L1(offset) (HTVM_L1_BASE + (offset))
#define L2(offset) (HTVM_L2_BASE + (offset))
#define MRAM(offset) (HTVM_MRAM_BASE + (offset))
#define SRAM(offset) (HTVM_SRAM_BASE + (offset))
#define NEUREKA(reg) (SIRACUSA_NEUREKA_REGISTERS + SIRACUSA_NEUREKA_##reg)

typedef struct {
    htvm_soc_t *soc;
    uint64_t now;
    uint8_t mram[BENCH_WEIGHTS];
    uint8_t sram[BENCH_WEIGHTS];
    uint8_t l2[BENCH_L2];
    uint8_t l1[HTVM_L1_SIZE]; /* at the end: sanitizers see what is beyond */
} bench_t;

static inline uint8_t *bench_in(uint8_t *memory, uint32_t size, uint32_t offset, uint32_t bytes)
{
    return offset < size && bytes <= size - offset ? memory + offset : NULL;
}

static inline uint8_t *bench_map(void *ctx, uint32_t addr, uint32_t bytes)
{
    bench_t *b = ctx;
    if (addr >= HTVM_L2_BASE) {
        return bench_in(b->l2, BENCH_L2, addr - HTVM_L2_BASE, bytes);
    }
    if (addr >= HTVM_SRAM_BASE) {
        return bench_in(b->sram, BENCH_WEIGHTS, addr - HTVM_SRAM_BASE, bytes);
    }
    if (addr >= HTVM_MRAM_BASE) {
        return bench_in(b->mram, BENCH_WEIGHTS, addr - HTVM_MRAM_BASE, bytes);
    }
    return bench_in(b->l1, HTVM_L1_SIZE, addr - HTVM_L1_BASE, bytes);
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

#include "../hal_on_bench.h"

/* Lets the engine finish. */
static inline void bench_finish(bench_t *b)
{
    while (bench_read(b, NEUREKA(STATUS)) != 0) {
        b->now = htvm_soc_next_event(b->soc, b->now);
    }
}

/* A job that is right, for tests to spoil: 3x3, 8 x 8 outputs of 40 channels from 30; the input in
 * the first bytes of L1, then the factors, the output and the weights. */
static inline siracusa_neureka_job_t bench_job_defaults(void)
{
    return (siracusa_neureka_job_t){
        .flags = SIRACUSA_NEUREKA_SCALED | SIRACUSA_NEUREKA_BIAS | SIRACUSA_NEUREKA_CHANNEL_SHIFT,
        .weights = L1(32768),
        .input = L1(0),
        .output = L1(16384),
        .scales = L1(8192),
        .shifts = L1(8448),
        .biases = L1(8704),
        .input_row = 240,
        .input_pixel = 30,
        .output_row = 320,
        .output_pixel = 40,
        .rows = 8,
        .columns = 8,
        .inputs = 30,
        .outputs = 40,
        .mode = SIRACUSA_NEUREKA_MODE_3X3,
        .weight_bits = 8,
        .padding_top = 1,
        .padding_right = 1,
        .padding_bottom = 1,
        .padding_left = 1,
    };
}

#endif
