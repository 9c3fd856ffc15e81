/* The DMA's driver and model: what is moved, how long it takes, what is refused. */
#include "bench.h"
#include "cluster_dma.h"
#include "siracusa_dma_regs.h"

#define COMMAND (SIRACUSA_DMA_REGISTERS + SIRACUSA_DMA_COMMAND)
#define STATUS (SIRACUSA_DMA_REGISTERS + SIRACUSA_DMA_STATUS)

/* A generator of its own, so that runs are alike everywhere. */
static uint32_t seed;

static uint32_t below(uint32_t limit)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % limit;
}

static void begin(void)
{
    bench = bench_new();
    for (uint32_t i = 0; i < BENCH_L2; i++) {
        bench->l2[i] = (uint8_t)(i * 7u + (i >> 8));
    }
    for (uint32_t i = 0; i < HTVM_L1_SIZE; i++) {
        bench->l1[i] = (uint8_t)(i * 11u + (i >> 7));
    }
}

static void end(void)
{
    cluster_dma_wait_all(); /* the driver's state is for the next machine, too */
    CHECK(htvm_soc_error(bench->soc) == NULL);
    CHECK_EQ(bench_read(bench, STATUS), 0);
    bench_free(bench);
}

/* Random transfers, each checked against a loop over its bytes. */
static void test_random(void)
{
    static uint8_t expected[HTVM_L1_SIZE];
    begin();
    for (uint32_t n = 0; n < 400; n++) {
        const uint32_t bytes = 1u + below(40), rows = 1u + below(20);
        const uint32_t to_stride = bytes + below(2) * below(30);
        const uint32_t from_stride = below(3) == 0 ? bytes : below(50);
        const bool in = below(2) != 0;
        uint8_t *to = (in ? bench->l1 : bench->l2) + below(30000);
        const uint8_t *from = (in ? bench->l2 : bench->l1) + below(30000);
        const cluster_dma_t what = {to, from, bytes, rows, to_stride, from_stride};
        memcpy(expected, to, 4000);
        for (uint32_t row = 0; row < rows; row++) {
            for (uint32_t i = 0; i < bytes; i++) {
                expected[row * to_stride + i] = from[row * from_stride + i];
            }
        }
        cluster_dma_wait(cluster_dma_start(&what));
        CHECK_EQ(memcmp(to, expected, 4000), 0);
    }
    end();
}

/* More transfers than the queue holds, and a wait for one in the middle. */
static void test_queue(void)
{
    begin();
    uint32_t tickets[40];
    for (uint32_t n = 0; n < 40; n++) {
        const cluster_dma_t what = {bench->l1 + 64 * n, bench->l2 + 100 * n, 64, 1, 0, 0};
        tickets[n] = cluster_dma_start(&what);
    }
    cluster_dma_wait(tickets[35]);
    CHECK_EQ(memcmp(bench->l1 + 64 * 35, bench->l2 + 100 * 35, 64), 0);
    CHECK(memcmp(bench->l1 + 64 * 39, bench->l2 + 100 * 39, 64) != 0);
    cluster_dma_wait(tickets[3]); /* long done */
    end();
}

/* One row of more bytes than a command can move. */
static void test_long_row(void)
{
    begin();
    memcpy(bench->sram, bench->l1, 200000);
    memset(bench->l1, 0, 200000);
    /* From the weight memory: L2 of this machine is small. */
    const uint32_t most = SIRACUSA_DMA_MOST_BYTES;
    for (uint32_t at = 0; at < 200000; at += most) {
        const uint32_t bytes = 200000 - at < most ? 200000 - at : most;
        const uint32_t counter = bench_read(bench, COMMAND);
        bench_write(bench, COMMAND, bytes | SIRACUSA_DMA_IN | SIRACUSA_DMA_INCREMENT);
        bench_write(bench, COMMAND, L1(at));
        bench_write(bench, COMMAND, SRAM(at));
        while (bench_read(bench, STATUS) != 0) {
            bench->now = htvm_soc_next_event(bench->soc, bench->now);
        }
        bench_write(bench, STATUS, 1u << counter);
    }
    CHECK_EQ(memcmp(bench->l1, bench->sram, 200000), 0);
    memset(bench->l2, 0, BENCH_L2);
    const cluster_dma_t what = {bench->l2, bench->l1, BENCH_L2, 1, 0, 0};
    cluster_dma_wait(cluster_dma_start(&what));
    CHECK_EQ(memcmp(bench->l1, bench->l2, BENCH_L2), 0);
    end();
}

/* Programs a transfer in one dimension, with a counter of its own; returns the counter. */
static uint32_t push(bool in, uint32_t l1, uint32_t outside, uint32_t bytes)
{
    const uint32_t counter = bench_read(bench, COMMAND);
    bench_write(bench, COMMAND, bytes | (in ? SIRACUSA_DMA_IN : 0) | SIRACUSA_DMA_INCREMENT);
    bench_write(bench, COMMAND, l1);
    bench_write(bench, COMMAND, outside);
    return counter;
}

static uint64_t drain(void)
{
    while (bench_read(bench, STATUS) != 0) {
        bench->now = htvm_soc_next_event(bench->soc, bench->now);
    }
    return bench->now;
}

/* Directions run side by side; the first bytes take the time to L2 and back. */
static void test_cycles(void)
{
    const uint32_t latency = SIRACUSA_DMA_CALL_CYCLES;
    begin();
    push(true, L1(0), L2(0), 4096);
    CHECK_EQ(drain(), latency + 512);
    bench_free(bench);

    begin();
    push(true, L1(0), L2(0), 4096);
    push(false, L1(8192), L2(8192), 4096);
    CHECK_EQ(drain(), latency + 512);
    bench_free(bench);

    begin();
    push(true, L1(0), L2(0), 4096);
    push(true, L1(8192), L2(8192), 4096);
    CHECK_EQ(drain(), latency + 1024);
    bench_free(bench);

    begin(); /* a word more if the bytes do not begin on one */
    push(true, L1(0), L2(4), 8);
    CHECK_EQ(drain(), latency + 4);
    bench_free(bench);

    begin(); /* short rows: at most 8 bursts at once */
    bench_read(bench, COMMAND);
    bench_write(bench, COMMAND,
                160u | SIRACUSA_DMA_IN | SIRACUSA_DMA_INCREMENT | SIRACUSA_DMA_ROWS_OUTSIDE);
    bench_write(bench, COMMAND, L1(0));
    bench_write(bench, COMMAND, L2(0));
    bench_write(bench, COMMAND, 8);
    bench_write(bench, COMMAND, 64);
    CHECK_EQ(drain(), latency + 20u * 4u);
    CHECK_EQ(bench->l1[159], bench->l2[19 * 64 + 7]);
    bench_free(bench);
}

static void refused(const char *message)
{
    CHECK_HAS(htvm_soc_error(bench->soc), message);
    CHECK_EQ(bench_read(bench, STATUS), 0);
    bench_free(bench);
}

static void test_complaints(void)
{
    begin();
    bench_write(bench, COMMAND, 8 | SIRACUSA_DMA_INCREMENT);
    refused("DMA: a transfer without a counter");

    begin();
    push(true, L1(HTVM_L1_SIZE - 4), L2(0), 8);
    refused("destination at 0x");

    begin();
    push(true, L1(0), L2(BENCH_L2 - 4), 8);
    refused("not in memory outside of L1");

    begin();
    push(true, L1(0), L1(64), 8);
    refused("not in memory outside of L1");

    begin();
    push(true, L1(0), L2(0), 0);
    refused("moves nothing");

    begin();
    for (uint32_t n = 0; n <= SIRACUSA_DMA_QUEUE_DEPTH; n++) {
        push(true, L1(n * 64), L2(n * 64), 64);
    }
    refused("the queue of 10 is full");

    begin();
    push(true, L1(0), L2(0), 64);
    push(false, L1(32), L2(4096), 64);
    refused("meets the destination of a transfer under way");

    begin();
    push(false, L1(4096), L2(0), 64);
    push(true, L1(0), L2(32), 64);
    refused("meets the destination of a transfer under way");

    begin();
    push(true, L1(0), L2(0), 64);
    bench->l1[5]++;
    drain();
    refused("was written by somebody else while in use");

    begin();
    bench_write(bench, STATUS, 1u << push(true, L1(0), L2(0), 64));
    refused("are freed, which are busy or not in use");

    begin(); /* every counter is taken: there is none for another transfer */
    for (uint32_t n = 0; n < SIRACUSA_DMA_COUNTERS; n++) {
        CHECK_EQ(bench_read(bench, COMMAND), n);
    }
    CHECK_EQ(bench_read(bench, COMMAND), SIRACUSA_DMA_NONE);
    bench_write(bench, COMMAND, 8u | SIRACUSA_DMA_IN | SIRACUSA_DMA_INCREMENT);
    refused("DMA: a transfer without a counter");

    begin();
    bench_read(bench, COMMAND);
    bench_write(bench, COMMAND, 8u | SIRACUSA_DMA_INCREMENT | 1u << 24);
    refused("has a bit that does not exist");

    begin();
    bench_read(bench, COMMAND);
    bench_write(bench, COMMAND, 20u | SIRACUSA_DMA_IN | SIRACUSA_DMA_INCREMENT |
                                    SIRACUSA_DMA_ROWS_L1);
    bench_write(bench, COMMAND, L1(0));
    bench_write(bench, COMMAND, L2(0));
    bench_write(bench, COMMAND, 8);
    bench_write(bench, COMMAND, 16);
    refused("transfer of 20 B at 0x10000000 in rows of 8 B, which is no divisor");

    begin();
    bench_read(bench, COMMAND + 1u);
    refused("DMA: read of offset 1 (4 B), which is no register");

    begin();
    bench_write(bench, STATUS + 2u, 1);
    refused("DMA: write to offset 6 (4 B), which is no register");
}

/* A transfer that meets a job of the engine, and the other way round. */
static void test_beside_a_job(void)
{
    const siracusa_neureka_job_t job = bench_job_defaults();
    siracusa_neureka_registers_t registers;
    siracusa_neureka_fill(&registers, &job);

    begin();
    siracusa_neureka_program(&registers);
    push(false, L1(0), L2(0), 64); /* reads its input, which is right */
    CHECK(htvm_soc_error(bench->soc) == NULL);
    push(true, L1(100), L2(4096), 8);
    refused("DMA: destination at 0x10000064 (8 B) meets inputs of job 0 under way");

    begin();
    push(false, L1(16384), L2(0), 64);
    siracusa_neureka_program(&registers);
    CHECK_HAS(htvm_soc_error(bench->soc), "outputs at 0x10004000");
    bench_free(bench);
}

int main(void)
{
    test_random();
    test_queue();
    test_long_row();
    test_cycles();
    test_complaints();
    test_beside_a_job();
    return htvm_test_report();
}
