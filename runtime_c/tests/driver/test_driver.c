/* The driver, run against the device models. */
#include "bench.h"
#include "diana_driver.h"
#include "htvm_hal.h"

static bench_t *bench;
static uint32_t commands[256];
static uint32_t command_count;

uint32_t htvm_hal_addr(const void *p)
{
    return HTVM_L2_BASE + (uint32_t)((const uint8_t *)p - bench->l2);
}

void htvm_hal_write(uint32_t addr, uint32_t value)
{
    if (addr == DIANA_DMA_REGISTERS + DIANA_DMA_COMMAND && command_count < 256) {
        commands[command_count++] = value;
    }
    bench->now++;
    htvm_soc_write(bench->soc, addr, value, bench->now);
}

uint32_t htvm_hal_read(uint32_t addr)
{
    bench->now++; /* no skipping: the poll loop really polls */
    return htvm_soc_read(bench->soc, addr, bench->now);
}

void htvm_hal_trace(uint32_t event) { (void)event; }

static void begin(void)
{
    bench = bench_new();
    command_count = 0;
}

static void end(void) { bench_free(bench); }

/* Sends a block through L1 and back to the middle of L2; every byte of it must come back, and no
 * other byte change.  Returns the number of commands of the way in. */
static uint32_t round_trip(const diana_block_t *block)
{
    const uint32_t back = HTVM_L2_SIZE / 2;
    begin();
    for (uint32_t i = 0; i < back; i++) {
        bench->l2[i] = (uint8_t)(i * 7 + i / 256 + 1);
    }
    CHECK_EQ(diana_dma_in(1024, bench->l2 + 64, block), 0);
    const uint32_t count = command_count;
    CHECK_EQ(diana_dma_out(bench->l2 + back, 1024, block), 0);
    CHECK_EQ(command_count, 2 * count);
    CHECK_EQ(commands[count], commands[0] | DIANA_DMA_TO_L2);
    uint64_t touched = 0;
    for (uint32_t c = 0; c < block->channels; c++) {
        for (uint32_t y = 0; y < block->rows; y++) {
            const uint32_t at = c * block->l2_channel_stride + y * block->l2_row_stride;
            CHECK(memcmp(bench->l2 + 64 + at, bench->l2 + back + at, block->bytes) == 0);
            memset(bench->l2 + back + at, 0, block->bytes);
            touched += block->bytes;
        }
    }
    for (uint32_t i = back; i < HTVM_L2_SIZE; i++) {
        if (bench->l2[i] != 0) {
            CHECK_EQ(i, 0);
            break;
        }
    }
    CHECK(touched != 0 && htvm_soc_error(bench->soc) == NULL);
    end();
    return count;
}

static void test_contiguous_dimensions_collapse(void)
{
    /* channels, rows, bytes, L2 strides, L1 strides */
    CHECK_EQ(round_trip(&(diana_block_t){4, 8, 16, 128, 16, 128, 16}), 1);
    CHECK_EQ(commands[0], (4u * 8 * 16) | DIANA_DMA_SINGLE);
    CHECK_EQ(round_trip(&(diana_block_t){1, 1, 20, 999, 999, 999, 999}), 1);
    CHECK_EQ(round_trip(&(diana_block_t){3, 1, 32, 32, 999, 32, 999}), 1);
    CHECK_EQ(round_trip(&(diana_block_t){1, 5, 32, 999, 32, 999, 32}), 1);
    /* some rows of each channel */
    CHECK_EQ(round_trip(&(diana_block_t){4, 3, 16, 128, 16, 48, 16}), 4);
    CHECK_EQ(commands[0], (3u * 16) | DIANA_DMA_FIRST);
    CHECK_EQ(commands[1], (3u * 16) | DIANA_DMA_NEXT);
    CHECK_EQ(commands[3], (3u * 16) | DIANA_DMA_NEXT);
    /* some columns of each row */
    CHECK_EQ(round_trip(&(diana_block_t){2, 3, 20, 192, 64, 96, 32}), 6);
    CHECK_EQ(commands[0], 20u | DIANA_DMA_FIRST);
    for (uint32_t i = 1; i < 6; i++) {
        CHECK_EQ(commands[i], 20u | DIANA_DMA_NEXT);
    }
    /* contiguous on one side only */
    CHECK_EQ(round_trip(&(diana_block_t){1, 3, 32, 0, 32, 0, 48}), 3);
    CHECK_EQ(round_trip(&(diana_block_t){2, 1, 32, 64, 0, 32, 0}), 2);
}

static void test_dma_errors(void)
{
    const diana_block_t rows = {1, 4, 32, 128, 64, 128, 32};
    begin();
    CHECK_EQ(diana_dma_in(8, bench->l2, &rows), DIANA_ERROR_ALIGNMENT);
    CHECK_EQ(command_count, 1); /* gives up at once */
    end();
    begin();
    CHECK_EQ(diana_dma_in(HTVM_L1_SIZE - 64, bench->l2, &rows), DIANA_ERROR_RANGE);
    CHECK_EQ(command_count, 3);
    end();
    begin();
    CHECK_EQ(diana_dma_out(bench->l2, 0, &rows), DIANA_ERROR_UNINITIALISED);
    end();
    const diana_block_t empty[] = {{0, 4, 32, 128, 64, 128, 32},
                                   {1, 0, 32, 128, 64, 128, 32},
                                   {1, 4, 0, 128, 64, 128, 32},
                                   {1, 4, 0, 0, 0, 0, 0}};
    for (size_t i = 0; i < sizeof empty / sizeof empty[0]; i++) {
        begin();
        CHECK_EQ(diana_dma_in(0, bench->l2, &empty[i]), DIANA_ERROR_PARAMETER);
        end();
    }
    const diana_block_t huge = {1, 4, 1u << 22, 1u << 24, 1u << 22, 1u << 24, 1u << 22};
    begin();
    CHECK_EQ(diana_dma_in(0, bench->l2, &huge), DIANA_ERROR_PARAMETER);
    CHECK_EQ(command_count, 0);
    end();
}

/* Weights of value `weight` in lane 0 of each tap, zero elsewhere. */
static void put_weights(uint8_t *at, uint32_t taps, int8_t weight)
{
    memset(at, 0, taps * 16 + 64);
    for (uint32_t i = 0; i < taps; i++) {
        at[(i * 16) ^ 3u] = (uint8_t)weight;
    }
}

static void test_conv2d(void)
{
    begin();
    memset(bench->l2, 3, 128);
    put_weights(bench->l2 + 1024, 9, 2);
    CHECK_EQ(diana_dma_in(0, bench->l2, &(diana_block_t){1, 8, 16, 128, 16, 128, 16}), 0);
    const diana_conv_t t = {.k = 16, .c = 1, .iy = 8, .ix = 8, .oy = 8, .ox = 8, .fy = 3, .fx = 3,
                            .stride = 1, .pad_top = 1, .pad_left = 1, .shift = 1, .relu = 0,
                            .in = 0, .out = 256};
    CHECK_EQ(diana_digital_conv2d(&t, bench->l2 + 1024), 0);
    CHECK_EQ(diana_dma_out(bench->l2 + 2048, 256, &(diana_block_t){1, 1, 128, 0, 0, 0, 0}), 0);
    CHECK_EQ(bench->l2[2048 + (0 ^ 3)], 4 * 3 * 2 / 2);      /* corner */
    CHECK_EQ(bench->l2[2048 + (1 ^ 3)], 6 * 3 * 2 / 2);      /* edge */
    CHECK_EQ(bench->l2[2048 + 16 + (1 ^ 3)], 9 * 3 * 2 / 2); /* inside */
    CHECK_EQ(bench->l2[2048 + 16 + (8 ^ 3)], 0);             /* void column */
    CHECK_EQ(diana_digital_conv2d(&t, bench->l2 + 1025), DIANA_ERROR_ALIGNMENT);
    end();
}

/* Depthwise weights of one channel: four channels share a block of 9 taps and biases. */
static void put_channel(uint8_t *blocks, uint32_t c, int8_t weight, uint8_t bias)
{
    uint8_t *at = blocks + c / 4 * (9 * 16 + 64);
    for (uint32_t i = 0; i < 9; i++) {
        at[(i * 16 + c % 4 * 4) ^ 3u] = (uint8_t)weight;
    }
    at[(9 * 16 + c % 4 * 4) ^ 3u] = bias;
}

static void test_depthwise(void)
{
    enum { CHANNELS = 10, WEIGHTS = 4096, OUT = 2048, BACK = 8192 };
    begin();
    for (uint32_t c = 0; c < CHANNELS; c++) {
        memset(bench->l2 + c * 128, (int)(c + 1), 128);
        put_channel(bench->l2 + WEIGHTS, c, (int8_t)(c % 2 == 0 ? 1 : -1), (uint8_t)(20 - c));
    }
    const diana_block_t maps = {CHANNELS, 8, 16, 128, 16, 128, 16};
    CHECK_EQ(diana_dma_in(0, bench->l2, &maps), 0);
    const diana_conv_t t = {.k = CHANNELS, .c = 77, .iy = 8, .ix = 8, .oy = 8, .ox = 8, .fy = 3,
                            .fx = 3, .stride = 1, .pad_top = 1, .pad_left = 1, .shift = 0,
                            .relu = 0, .in = 0, .out = OUT};
    CHECK_EQ(diana_digital_depthwise(&t, bench->l2 + WEIGHTS), 0);
    CHECK_EQ(diana_dma_out(bench->l2 + BACK, OUT, &maps), 0);
    for (uint32_t c = 0; c < CHANNELS; c++) {
        const int want = 9 * ((int)c + 1) * (c % 2 == 0 ? 1 : -1) + 20 - (int)c;
        CHECK_EQ((int8_t)bench->l2[BACK + c * 128 + 16 + (1 ^ 3)], want);
    }
    const diana_conv_t none = {.k = 0};
    CHECK_EQ(diana_digital_depthwise(&none, bench->l2), DIANA_ERROR_PARAMETER);
    diana_conv_t wrong = t;
    wrong.fy = 4;
    CHECK_EQ(diana_digital_depthwise(&wrong, bench->l2), DIANA_ERROR_PARAMETER);
    end();
}

static void test_dense_and_add(void)
{
    begin();
    for (uint32_t i = 0; i < 32; i++) {
        bench->l2[i ^ 3u] = (uint8_t)i;
    }
    CHECK_EQ(diana_dma_in(0, bench->l2, &(diana_block_t){1, 1, 32, 0, 0, 0, 0}), 0);
    uint8_t *weights = bench->l2 + 1024;
    for (uint32_t i = 0; i < 20; i++) { /* [c / 16][k][c % 16] */
        weights[((i / 16 * 16 + 5) * 16 + i % 16) ^ 3u] = 1;
    }
    weights[(512 + 5 * 16 + 1) ^ 3u] = 1; /* bias 256 of output 5 */
    const diana_dense_t d = {.k = 6, .c = 20, .shift = 2, .relu = 1, .in = 0, .out = 32};
    CHECK_EQ(diana_digital_dense(&d, weights), 0);
    const diana_add_t a = {.elements = 16, .shift = 0, .relu = 0, .a = 32, .b = 32, .out = 48};
    CHECK_EQ(diana_digital_add(&a), 0);
    CHECK_EQ(diana_dma_out(bench->l2 + 2048, 32, &(diana_block_t){1, 1, 32, 0, 0, 0, 0}), 0);
    CHECK_EQ(bench->l2[2048 + (5 ^ 3)], (190 + 256) / 4);
    CHECK_EQ(bench->l2[2048 + (4 ^ 3)], 0);
    CHECK_EQ(bench->l2[2048 + 16 + (5 ^ 3)], 127);
    const diana_dense_t wide = {.k = 17, .c = 20, .in = 0, .out = 32};
    CHECK_EQ(diana_digital_dense(&wide, weights), DIANA_ERROR_PARAMETER);
    end();
    begin();
    CHECK_EQ(diana_digital_add(&a), DIANA_ERROR_UNINITIALISED);
    end();
}

/* ---- started now, waited for later ---- */

/* The same bytes move with the same commands as by the calls that wait. */
static void test_queued_blocks(void)
{
    const diana_block_t blocks[] = {{4, 8, 16, 128, 16, 128, 16}, /* one command */
                                    {4, 3, 16, 128, 16, 48, 16},  /* one per channel */
                                    {2, 3, 20, 192, 64, 96, 32}}; /* one per row */
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
        const diana_block_t *block = &blocks[i];
        uint32_t waited[32];
        begin();
        memset(bench->l2, 1, 4096);
        CHECK_EQ(diana_dma_in(0, bench->l2, block), 0);
        const uint32_t count = command_count;
        memcpy(waited, commands, sizeof waited);
        end();
        begin();
        for (uint32_t at = 0; at < 4096; at++) {
            bench->l2[at] = (uint8_t)(at * 7 + at / 256 + 1);
        }
        diana_dma_in_start(0, bench->l2, block);
        diana_dma_out_start(bench->l2 + 8192, 0, block);
        CHECK_EQ(diana_dma_wait(), 0);
        CHECK_EQ(command_count, 2 * count);
        CHECK(memcmp(commands, waited, count * sizeof waited[0]) == 0);
        for (uint32_t c = 0; c < block->channels; c++) {
            for (uint32_t y = 0; y < block->rows; y++) {
                const uint32_t at = c * block->l2_channel_stride + y * block->l2_row_stride;
                CHECK(memcmp(bench->l2 + at, bench->l2 + 8192 + at, block->bytes) == 0);
            }
        }
        end();
    }
}

static void test_queued_errors_show_when_waited_for(void)
{
    const diana_block_t wrong[] = {{0, 4, 32, 128, 64, 128, 32},
                                   {1, 0, 32, 128, 64, 128, 32},
                                   {1, 4, 1u << 22, 1u << 24, 1u << 22, 1u << 24, 1u << 22}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        begin();
        diana_dma_in_start(0, bench->l2, &wrong[i]);
        CHECK_EQ(diana_dma_wait(), DIANA_ERROR_PARAMETER);
        end();
    }
    begin();
    diana_dma_out_start(bench->l2, 0, &(diana_block_t){8, 4, 32, 256, 64, 128, 32});
    CHECK_EQ(diana_dma_wait(), DIANA_ERROR_UNINITIALISED); /* and no waiting for room for ever */
    end();
}

static void test_rows_are_commands(void)
{
    const diana_block_t whole = {4, 8, 16, 128, 16, 128, 16};
    begin();
    CHECK_EQ(diana_dma_in_rows(0, bench->l2, &whole), 0);
    CHECK_EQ(command_count, 32);
    CHECK_EQ(commands[0], 16u | DIANA_DMA_FIRST);
    CHECK_EQ(commands[31], 16u | DIANA_DMA_NEXT);
    CHECK_EQ(diana_dma_in_rows(0, bench->l2, &(diana_block_t){4, 0, 16, 128, 16, 128, 16}),
             DIANA_ERROR_PARAMETER);
    end();
}

/* Runs one operation by the call that waits and by start and finish; outputs must be equal. */
static void compare(int operation, uint32_t k)
{
    enum { WEIGHTS = 65536, OUT = 16384, BYTES = 8192, BACK = 131072 };
    const diana_conv_t conv = {.k = (uint16_t)k, .c = 3, .iy = 8, .ix = 20, .oy = 8, .ox = 20,
                               .fy = 3, .fx = 3, .stride = 1, .pad_top = 1, .pad_left = 1,
                               .shift = 5, .relu = 0, .in = 0, .out = OUT};
    const diana_dense_t dense = {
        .k = (uint16_t)k, .c = 37, .shift = 6, .relu = 0, .in = 0, .out = OUT};
    const diana_add_t add = {.elements = 16 * k, .shift = 1, .relu = 1, .a = 0, .b = 1024, .out = OUT};
    const uint32_t map = 8 * 32;
    const uint32_t written = operation == 0   ? (k + 15) / 16 * 16 * map
                             : operation == 1 ? k * map
                                              : (operation == 2 ? (k + 15) / 16 * 16 : 16 * k);
    begin();
    for (uint32_t i = 0; i < WEIGHTS + 60000; i++) {
        bench->l2[i] = (uint8_t)(i * 37 + i / 128);
    }
    const uint8_t *w = bench->l2 + WEIGHTS;
    CHECK_EQ(diana_dma_in(0, bench->l2, &(diana_block_t){1, 1, 16384, 0, 0, 0, 0}), 0);
    for (uint32_t second = 0; second < 2; second++) {
        int32_t code = 0;
        const uint64_t start = bench->now;
        if (operation == 0 && second) {
            diana_digital_conv2d_prepare(&conv, w);
            diana_digital_conv2d_start();
            code = diana_digital_conv2d_finish();
        } else if (operation == 0) {
            code = diana_digital_conv2d(&conv, w);
        } else if (operation == 1 && second) {
            diana_digital_depthwise_prepare(&conv, w);
            diana_digital_depthwise_start();
            code = diana_digital_depthwise_finish(&conv, w);
        } else if (operation == 1) {
            code = diana_digital_depthwise(&conv, w);
        } else if (operation == 2 && second) {
            diana_digital_dense_prepare(&dense, w);
            diana_digital_dense_start();
            code = diana_digital_dense_finish(&dense, w);
        } else if (operation == 2) {
            for (uint32_t at = 0; at < k && code == 0; at += 16) {
                diana_dense_t block = dense;
                block.k = (uint16_t)(k - at < 16 ? k - at : 16);
                block.out = OUT + at;
                code = diana_digital_dense(&block, w + at / 16 * (48 * 16 + 256));
            }
        } else if (second) {
            diana_digital_add_prepare(&add);
            diana_digital_add_start();
            code = diana_digital_add_finish();
        } else {
            code = diana_digital_add(&add);
        }
        CHECK_EQ(code, 0);
        CHECK(bench->now - start > 400);
        const diana_block_t out = {1, 1, written, 0, 0, 0, 0};
        CHECK_EQ(diana_dma_out(bench->l2 + BACK + second * 2 * BYTES, OUT, &out), 0);
    }
    CHECK(memcmp(bench->l2 + BACK, bench->l2 + BACK + 2 * BYTES, written) == 0);
    end();
}

static void test_start_and_finish_equal_the_call_that_waits(void)
{
    for (int operation = 0; operation < 4; operation++) {
        compare(operation, 1);
        compare(operation, 7);
        compare(operation, 16);
        compare(operation, 27);
    }
}

static void test_finish_returns_the_error(void)
{
    const diana_conv_t none = {.k = 0, .iy = 8, .ix = 8, .oy = 8, .ox = 8, .fy = 3, .fx = 3,
                               .stride = 1};
    begin();
    diana_digital_depthwise_prepare(&none, bench->l2);
    diana_digital_depthwise_start();
    CHECK_EQ(diana_digital_depthwise_finish(&none, bench->l2), DIANA_ERROR_PARAMETER);
    diana_digital_conv2d_prepare(&none, bench->l2);
    diana_digital_conv2d_start();
    CHECK_EQ(diana_digital_conv2d_finish(), DIANA_ERROR_PARAMETER);
    end();
    const diana_dense_t dense = {.k = 20, .c = 16, .shift = 0, .relu = 0, .in = 0, .out = 32};
    const diana_add_t add = {.elements = 16, .shift = 0, .relu = 0, .a = 0, .b = 0, .out = 48};
    begin();
    diana_digital_dense_prepare(&dense, bench->l2);
    diana_digital_dense_start();
    CHECK_EQ(diana_digital_dense_finish(&dense, bench->l2), DIANA_ERROR_UNINITIALISED);
    end();
    begin();
    diana_digital_add_prepare(&add);
    diana_digital_add_start();
    CHECK_EQ(diana_digital_add_finish(), DIANA_ERROR_UNINITIALISED);
    end();
}

int main(void)
{
    test_queued_blocks();
    test_queued_errors_show_when_waited_for();
    test_rows_are_commands();
    test_start_and_finish_equal_the_call_that_waits();
    test_finish_returns_the_error();
    test_contiguous_dimensions_collapse();
    test_dma_errors();
    test_conv2d();
    test_depthwise();
    test_dense_and_add();
    return htvm_test_report();
}
