/* Kernels on all cores and transfers, many times over; the same on both platforms. */
#include "htvm_hal.h"
#include "cluster.h"
#include "cluster_dma.h"

#ifdef SNITCH_TEST_HOST
#include "htvm_host.h"
#else
#include "htvm_hal_platform.h"
#endif

enum { WORDS = 1536, ROUNDS = 40, ROWS = 16 };

typedef struct {
    uint32_t *data;
    uint32_t count, seed;
} part_t;

static uint32_t source[WORDS];
extern uint32_t result[WORDS + 8];
uint32_t result[WORDS + 8];

/* Unequal work: core c repeats its share more often than others, a different one each time. */
static void stir(const void *args, uint32_t core, uint32_t cores)
{
    const part_t *part = args;
    const uint32_t times = 1u + (core + part->seed) % cores;
    for (uint32_t i = core; i < part->count; i += cores) {
        for (uint32_t t = 0; t < times; t++) {
            part->data[i] = part->data[i] * 1664525u + 1013904223u + core;
        }
    }
}

static void count_in(const void *args, uint32_t core, uint32_t cores)
{
    const part_t *part = args;
    part->data[core] += cores;
}

int main(void)
{
    uint32_t *const a = cluster_l1(0);
    uint32_t *const b = cluster_l1(HTVM_L1_SIZE - sizeof source);
    uint32_t *const counts = cluster_l1(sizeof source);
    for (uint32_t i = 0; i < WORDS; i++) {
        source[i] = i;
    }
    /* More transfers than any queue holds, row by row, the rows in reverse. */
    const uint32_t row = sizeof source / ROWS;
    for (uint32_t r = 0; r < ROWS; r++) {
        const cluster_dma_t load = {.to = a + (ROWS - 1 - r) * row / 4, .from = source + r * row / 4,
                                   .bytes = row, .rows = 1};
        const uint32_t ticket = cluster_dma_start(&load);
        if (r % 5 == 0) {
            cluster_dma_wait(ticket);
        }
    }
    cluster_dma_wait_all();
    for (uint32_t i = 0; i < CLUSTER_CORES; i++) {
        counts[i] = 0;
    }
    for (uint32_t round = 0; round < ROUNDS; round++) {
        const part_t part = {a, round % 3 == 0 ? WORDS : 5u + round, round};
        const part_t count = {counts, 0, 0};
        cluster_run(stir, &part);
        cluster_run(count_in, &count);
    }
    /* Every second row to another place in L1, then all of it and the counts to L2. */
    const cluster_dma_t copy = {.to = b, .from = a, .bytes = row, .rows = ROWS,
                               .to_stride = row, .from_stride = row};
    const cluster_dma_t again = {.to = b, .from = a, .bytes = row, .rows = ROWS / 2,
                                .to_stride = 2 * row, .from_stride = row};
    const cluster_dma_t store = {.to = result, .from = b, .bytes = sizeof source, .rows = 1};
    const cluster_dma_t rest = {.to = result + WORDS, .from = counts, .bytes = 32, .rows = 1};
    cluster_dma_start(&copy);
    cluster_dma_wait(cluster_dma_start(&again));
    cluster_dma_start(&store);
    cluster_dma_start(&rest);
    cluster_dma_wait_all();
#ifdef SNITCH_TEST_HOST
    return htvm_host_write(0, result, sizeof result);
#else
    return 0;
#endif
}
