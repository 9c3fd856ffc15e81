/* Devices that work at the same time: the queue of the DMA, registers that are written ahead, time
 * spent waiting, and every race between two of them. */
#include "bench.h"

#include <stdio.h>

#define TO_L2 DIANA_DMA_TO_L2

/* A machine whose L1 has been written up to 8192. */
static bench_t *ready(void)
{
    bench_t *b = bench_new();
    for (uint32_t i = 0; i < HTVM_L2_SIZE; i++) {
        b->l2[i] = (uint8_t)(i * 3 + i / 256);
    }
    bench_dma(b, HTVM_L2_BASE, 0, 8192);
    return b;
}

static void start_conv(bench_t *b)
{
    bench_conv_defaults(b); /* reads 0..128, writes 4096..6144 */
    bench_core_set(b, DIANA_DIGITAL_START, DIANA_DIGITAL_OP_CONV);
}

static uint32_t core_error(bench_t *b)
{
    return htvm_soc_read(b->soc, DIANA_DIGITAL_REGISTERS + DIANA_REG_ERROR, b->now);
}

static uint32_t dma_error(bench_t *b)
{
    return htvm_soc_read(b->soc, DIANA_DMA_REGISTERS + DIANA_REG_ERROR, b->now);
}

static uint32_t room(bench_t *b)
{
    return htvm_soc_read(b->soc, DIANA_DMA_REGISTERS + DIANA_DMA_ROOM, b->now);
}

/* ---- the queue ---- */

static void test_commands_run_one_after_another(void)
{
    bench_t *b = ready();
    const uint64_t alone = bench_dma(b, HTVM_L2_BASE, 0, 1024);
    const uint64_t begin = b->now;
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_EQ(room(b), DIANA_DMA_QUEUE_DEPTH - i);
        bench_dma_start(b, HTVM_L2_BASE, 1024 * i, 1024);
    }
    b->now = begin + alone - 1;
    CHECK_EQ(room(b), DIANA_DMA_QUEUE_DEPTH - 3);
    CHECK_EQ(htvm_soc_next_event(b->soc, b->now), begin + alone);
    b->now = begin + alone;
    CHECK_EQ(room(b), DIANA_DMA_QUEUE_DEPTH - 2);
    CHECK_EQ(bench_status(b, DIANA_DMA_REGISTERS), DIANA_STATUS_BUSY);
    bench_finish(b, DIANA_DMA_REGISTERS);
    CHECK_EQ(b->now, begin + 3 * alone);
    /* After a pause, a command starts when it is given. */
    b->now += 1000;
    CHECK_EQ(bench_dma(b, HTVM_L2_BASE, 0, 1024), alone);
    bench_free(b);
}

static void test_bytes_move_when_a_command_is_done(void)
{
    bench_t *b = ready();
    uint8_t *back = b->l2 + 65536;
    memset(back, 0, 64);
    const uint64_t begin = b->now;
    const uint64_t alone = bench_dma(b, HTVM_L2_BASE, 0, 64);
    bench_dma_start(b, HTVM_L2_BASE + 65536, 0, 64 | TO_L2);
    b->now += alone - 1;
    CHECK_EQ(bench_status(b, DIANA_DMA_REGISTERS), DIANA_STATUS_BUSY);
    CHECK_EQ(back[1], 0);
    b->now += 1;
    CHECK_EQ(bench_status(b, DIANA_DMA_REGISTERS), DIANA_STATUS_IDLE);
    CHECK_EQ(back[1], b->l2[1]);
    CHECK(b->now > begin);
    bench_free(b);
}

/* A load behind a store of the same bytes sees what was stored. */
static void test_commands_see_what_those_before_them_did(void)
{
    bench_t *b = ready();
    bench_dma_start(b, HTVM_L2_BASE + 65536, 0, 64 | TO_L2);
    bench_dma_start(b, HTVM_L2_BASE + 65536, 128, 64);
    bench_dma_start(b, HTVM_L2_BASE + 131072, 128, 64 | TO_L2);
    bench_finish(b, DIANA_DMA_REGISTERS);
    CHECK(htvm_soc_error(b->soc) == NULL);
    CHECK(memcmp(b->l2, b->l2 + 131072, 64) == 0);
    bench_free(b);
}

static void test_an_error_drops_what_is_queued(void)
{
    bench_t *b = ready();
    memset(b->l2 + 65536, 0, 64);
    bench_dma_start(b, HTVM_L2_BASE, 16384, 32);
    bench_dma_start(b, HTVM_L2_BASE + 1024, 16384, 64 | TO_L2); /* half of it was never written */
    bench_dma_start(b, HTVM_L2_BASE + 65536, 0, 64 | TO_L2);
    bench_finish(b, DIANA_DMA_REGISTERS);
    CHECK_EQ(dma_error(b), DIANA_ERROR_UNINITIALISED);
    CHECK_EQ(room(b), DIANA_DMA_QUEUE_DEPTH); /* nobody waits for ever */
    b->now += 100000;
    CHECK_EQ(bench_status(b, DIANA_DMA_REGISTERS), DIANA_STATUS_ERROR);
    CHECK_EQ(b->l2[65536 + 1], 0);
    bench_free(b);
}

/* ---- the core beside the DMA ---- */

static void test_registers_can_be_written_ahead(void)
{
    bench_t *b = ready();
    start_conv(b);
    bench_core_set(b, DIANA_DIGITAL_OUT, 16384);
    bench_core_set(b, DIANA_DIGITAL_SHAPE0, 32u | 1u << 16);
    bench_finish(b, DIANA_DIGITAL_REGISTERS);
    bench_core_set(b, DIANA_DIGITAL_START, DIANA_DIGITAL_OP_CONV);
    bench_finish(b, DIANA_DIGITAL_REGISTERS);
    CHECK_EQ(core_error(b), DIANA_ERROR_NONE);
    bench_dma(b, HTVM_L2_BASE + 65536, 4096, 2048 | TO_L2);
    bench_dma(b, HTVM_L2_BASE + 131072, 16384, 4096 | TO_L2);
    CHECK(htvm_soc_error(b->soc) == NULL);
    CHECK(memcmp(b->l2 + 65536, b->l2 + 131072, 2048) == 0);
    bench_free(b);
}

static void test_both_at_once_take_as_long_as_the_slower(void)
{
    bench_t *b = ready();
    start_conv(b);
    const uint64_t core = bench_finish(b, DIANA_DIGITAL_REGISTERS);
    const uint64_t transfer = bench_dma(b, HTVM_L2_BASE, 8192, 1024);
    const uint64_t begin = b->now;
    start_conv(b);
    bench_dma_start(b, HTVM_L2_BASE, 8192, 1024);
    bench_finish(b, DIANA_DIGITAL_REGISTERS);
    bench_finish(b, DIANA_DMA_REGISTERS);
    CHECK_EQ(b->now - begin, core > transfer ? core : transfer);
    CHECK(htvm_soc_error(b->soc) == NULL);
    bench_free(b);
}

/* ---- races ---- */

/* The core has been started; a transfer then touches what it works on. */
static void transfer_races(uint32_t l1, uint32_t command, const char *part)
{
    bench_t *b = ready();
    start_conv(b);
    bench_dma_start(b, HTVM_L2_BASE + 65536, l1, command);
    if (part == NULL) {
        CHECK(htvm_soc_error(b->soc) == NULL);
    } else {
        CHECK_EQ(dma_error(b), DIANA_ERROR_RACE);
        CHECK_HAS(htvm_soc_error(b->soc), part);
    }
    bench_free(b);
    /* It is right once the core is done. */
    b = ready();
    start_conv(b);
    bench_finish(b, DIANA_DIGITAL_REGISTERS);
    bench_dma_start(b, HTVM_L2_BASE + 65536, l1, command);
    CHECK(htvm_soc_error(b->soc) == NULL);
    bench_free(b);
}

/* A transfer is under way, or waits behind another; the core then works on its bytes. */
static void core_races(uint32_t l1, uint32_t command, const char *part)
{
    for (int behind = 0; behind < 2; behind++) {
        bench_t *b = ready();
        if (behind) {
            bench_dma_start(b, HTVM_L2_BASE, 65536, 4096);
        }
        bench_dma_start(b, HTVM_L2_BASE + 65536, l1, command);
        start_conv(b);
        if (part == NULL) {
            CHECK_EQ(core_error(b), DIANA_ERROR_NONE);
        } else {
            CHECK_EQ(core_error(b), DIANA_ERROR_RACE);
            CHECK_HAS(htvm_soc_error(b->soc), part);
        }
        bench_free(b);
    }
}

static void test_races(void)
{
    transfer_races(0, 64, "DMA: transfer from L2 writes L1 0x10000000 (64 B) while the digital "
                          "core still reads 0x10000000 (128 B)");
    transfer_races(112, 64, "still reads 0x10000000");
    transfer_races(128, 64, NULL);
    transfer_races(0, 64 | TO_L2, NULL); /* both only read */
    transfer_races(4080, 32, "still writes 0x10001000 (2048 B)");
    transfer_races(6128, 16 | TO_L2, "DMA: transfer to L2 reads L1 0x100017F0 (16 B) while the "
                                     "digital core still writes");
    transfer_races(6144, 16 | TO_L2, NULL);
    core_races(0, 64, "digital core: conv2d reads L1 0x10000000 (128 B) while the DMA still writes "
                      "0x10000000 (64 B)");
    core_races(128, 64, NULL);
    core_races(0, 64 | TO_L2, NULL);
    core_races(4096, 64, "conv2d writes L1 0x10001000 (2048 B) while the DMA still writes");
    core_races(4096, 64 | TO_L2, "while the DMA still reads");
    core_races(4032, 64 | TO_L2, NULL);
}

static void test_races_of_the_other_operations(void)
{
    bench_t *b = ready();
    bench_core_set(b, DIANA_DIGITAL_SHAPE0, 64);
    bench_core_set(b, DIANA_DIGITAL_IN2, 1024);
    bench_core_set(b, DIANA_DIGITAL_OUT, 2048);
    bench_dma_start(b, HTVM_L2_BASE, 1040, 16);
    bench_core_set(b, DIANA_DIGITAL_START, DIANA_DIGITAL_OP_ADD);
    CHECK_HAS(htvm_soc_error(b->soc), "add reads L1 0x10000400");
    bench_free(b);
    b = ready();
    bench_core_set(b, DIANA_DIGITAL_SHAPE0, 16u | 32u << 16);
    bench_core_set(b, DIANA_DIGITAL_WEIGHTS, HTVM_L2_BASE);
    bench_core_set(b, DIANA_DIGITAL_OUT, 2048);
    bench_dma_start(b, HTVM_L2_BASE + 1024, 2048, 16 | TO_L2);
    bench_core_set(b, DIANA_DIGITAL_START, DIANA_DIGITAL_OP_DENSE);
    CHECK_HAS(htvm_soc_error(b->soc), "dense writes L1 0x10000800 (16 B) while the DMA");
    bench_free(b);
}

static void test_host_writes_under_a_transfer(void)
{
    for (int to_l2 = 0; to_l2 < 2; to_l2++) {
        bench_t *b = ready();
        bench_dma_start(b, HTVM_L2_BASE + 65536, 0, 64 | (to_l2 ? TO_L2 : 0));
        b->l2[65536 + 63] ^= 1;
        bench_finish(b, DIANA_DMA_REGISTERS);
        CHECK_EQ(dma_error(b), DIANA_ERROR_RACE);
        CHECK_HAS(htvm_soc_error(b->soc), "L2 0x1C010000 (64 B) was written while a transfer");
        bench_free(b);
    }
}

/* ---- waiting ---- */

static void test_waiting_is_written_down(void)
{
    char text[4096] = {0};
    char want[64];
    bench_t *b = ready();
    bench_dma_start(b, HTVM_L2_BASE, 0, 1024);
    b->now += 10; /* the host does something else */
    const uint64_t begin = b->now;
    CHECK_EQ(bench_status(b, DIANA_DMA_REGISTERS), DIANA_STATUS_BUSY);
    b->now += 7;
    CHECK_EQ(bench_status(b, DIANA_DMA_REGISTERS), DIANA_STATUS_BUSY);
    bench_finish(b, DIANA_DMA_REGISTERS);
    const uint64_t end = b->now;
    b->now += 5;
    bench_status(b, DIANA_DMA_REGISTERS); /* idle before already: no waiting */
    FILE *file = tmpfile();
    if (file == NULL) {
        abort();
    }
    htvm_soc_events(b->soc, file);
    rewind(file);
    CHECK(fread(text, 1, sizeof text - 1, file) != 0);
    fclose(file);
    const char *last = strstr(text, "\"host\"");
    while (last != NULL && strstr(last + 1, "\"host\"") != NULL) {
        last = strstr(last + 1, "\"host\"");
    }
    snprintf(want, sizeof want, "\"start\":%u,\"end\":%u,\"what\":\"wait\"", (unsigned)begin,
             (unsigned)end);
    CHECK_HAS(last, want);
    bench_free(b);
}

int main(void)
{
    test_commands_run_one_after_another();
    test_bytes_move_when_a_command_is_done();
    test_commands_see_what_those_before_them_did();
    test_an_error_drops_what_is_queued();
    test_registers_can_be_written_ahead();
    test_both_at_once_take_as_long_as_the_slower();
    test_races();
    test_races_of_the_other_operations();
    test_host_writes_under_a_transfer();
    test_waiting_is_written_down();
    return htvm_test_report();
}
