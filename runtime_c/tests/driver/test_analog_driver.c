/* The analog core's driver, run against the device models. */
#include "bench.h"
#include "diana_analog_driver.h"
#include "diana_driver.h"
#include "htvm_hal.h"

enum { IMAGE_BYTES = 288 * 128 / 4, OUT = 4096, WEIGHTS = 65536, RESULT = 131072 };

static bench_t *bench;

uint32_t htvm_hal_addr(const void *p)
{
    return HTVM_L2_BASE + (uint32_t)((const uint8_t *)p - bench->l2);
}

void htvm_hal_write(uint32_t addr, uint32_t value)
{
    bench->now++;
    htvm_soc_write(bench->soc, addr, value, bench->now);
}

uint32_t htvm_hal_read(uint32_t addr)
{
    bench->now++; /* no skipping: the poll loop really polls */
    return htvm_soc_read(bench->soc, addr, bench->now);
}

void htvm_hal_trace(uint32_t event) { (void)event; }

/* 1x1, one channel: channel k of the output is the input times 1 (k even) or -1 (k odd). */
static const diana_analog_conv_t tile = {
    .k = 2, .c = 1, .iy = 3, .ix = 16, .oy = 3, .ox = 16, .fy = 1, .fx = 1, .stride = 1,
    .gain = 1, .shift = 1, .out = OUT, .mode = 1,
};

static void begin(void)
{
    bench = bench_new();
    for (uint32_t i = 0; i < 48; i++) {
        bench->l2[i] = (uint8_t)(i - 24);
    }
    /* Row 0 is stored last.  Column 1 is flipped: its -1 is a positive cell. */
    bench->l2[WEIGHTS + 287 * 16] = 3;
    for (uint32_t k = 0; k < 2; k++) {
        bench->l2[WEIGHTS + IMAGE_BYTES + 4 * k] = 4;
        bench->l2[WEIGHTS + IMAGE_BYTES + 4 * k + 2] = (uint8_t)k;
    }
    const diana_block_t block = {.channels = 1, .rows = 1, .bytes = 48};
    CHECK_EQ(diana_dma_in(0, bench->l2, &block), 0);
}

static int8_t halved(int32_t value) { return (int8_t)(value >= 0 ? value / 2 : (value - 1) / 2); }

static void check_result(void)
{
    const diana_block_t block = {.channels = 1, .rows = 1, .bytes = 96};
    CHECK_EQ(diana_dma_out(bench->l2 + RESULT, OUT, &block), 0);
    CHECK(htvm_soc_error(bench->soc) == NULL);
    for (int32_t i = 0; i < 48; i++) {
        CHECK_EQ((int8_t)bench->l2[RESULT + i], 2 * halved(i - 24));
        CHECK_EQ((int8_t)bench->l2[RESULT + 48 + i], 2 * halved(24 - i));
    }
    bench_free(bench);
}

static void test_blocking(void)
{
    begin();
    CHECK_EQ(diana_analog_conv2d(&tile, bench->l2 + WEIGHTS), 0);
    check_result();
}

static void test_started_and_finished(void)
{
    begin();
    diana_analog_conv2d_prepare(&tile, bench->l2 + WEIGHTS);
    diana_analog_conv2d_start();
    /* While the core runs, other bytes move, and the registers may be written. */
    const diana_block_t block = {.channels = 1, .rows = 1, .bytes = 32};
    CHECK_EQ(diana_dma_in(8192, bench->l2, &block), 0);
    CHECK_EQ(bench_status(bench, DIANA_ANALOG_REGISTERS), DIANA_STATUS_BUSY);
    htvm_hal_write(DIANA_ANALOG_REGISTERS + DIANA_ANALOG_IN, 16);
    CHECK_EQ(diana_analog_conv2d_finish(), 0);
    check_result();
}

static void test_input_must_not_change_meanwhile(void)
{
    begin();
    diana_analog_conv2d_prepare(&tile, bench->l2 + WEIGHTS);
    diana_analog_conv2d_start();
    const diana_block_t block = {.channels = 1, .rows = 1, .bytes = 32};
    CHECK(diana_dma_in(16, bench->l2, &block) != 0);
    CHECK_HAS(htvm_soc_error(bench->soc), "analog core still reads");
    bench_free(bench);
}

static void test_refusal_comes_back(void)
{
    begin();
    diana_analog_conv_t wrong = tile;
    wrong.gain = 16;
    CHECK_EQ(diana_analog_conv2d(&wrong, bench->l2 + WEIGHTS), DIANA_ERROR_PARAMETER);
    CHECK_EQ(diana_analog_passes_finish(&tile, bench->l2 + WEIGHTS), DIANA_ERROR_PARAMETER);
    bench_free(bench);
}

int main(void)
{
    test_blocking();
    test_started_and_finished();
    test_input_must_not_change_meanwhile();
    test_refusal_comes_back();
    return htvm_test_report();
}
