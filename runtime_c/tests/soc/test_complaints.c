/* Everything the devices must refuse, each with its code and a message naming the place. */
#include "bench.h"

#define L1(offset) (HTVM_L1_BASE + (offset))

/* ---- DMA ---- */

static void refuse_dma(uint32_t l2, uint32_t l1, uint32_t command, uint32_t code, const char *part,
                       const char *address)
{
    bench_t *b = bench_new();
    bench_dma(b, l2, l1, command);
    CHECK_EQ(bench_status(b, DIANA_DMA_REGISTERS), DIANA_STATUS_ERROR);
    CHECK_EQ(htvm_soc_read(b->soc, DIANA_DMA_REGISTERS + DIANA_REG_ERROR, b->now), code);
    CHECK_HAS(htvm_soc_error(b->soc), "DMA: ");
    CHECK_HAS(htvm_soc_error(b->soc), part);
    CHECK_HAS(htvm_soc_error(b->soc), address);
    bench_free(b);
}

static void test_dma_refuses(void)
{
    const uint32_t l2 = HTVM_L2_BASE;
    refuse_dma(l2 + 2, 0, 16, DIANA_ERROR_ALIGNMENT, "16 B", "0x1C000002");
    refuse_dma(l2, 8, 16, DIANA_ERROR_ALIGNMENT, "16 B", "0x10000008");
    refuse_dma(l2, HTVM_L1_SIZE - 16, 32, DIANA_ERROR_RANGE, "32 B", "0x1003E7F0");
    refuse_dma(l2, 0xFFFFFFF0u, 32, DIANA_ERROR_RANGE, "32 B", "offset 4294967280");
    refuse_dma(l2 + HTVM_L2_SIZE - 16, 0, 32, DIANA_ERROR_RANGE, "32 B", "0x1C07CFF0");
    refuse_dma(0, 0, 32, DIANA_ERROR_RANGE, "not memory", "0x00000000");
    refuse_dma(l2, 0, 0, DIANA_ERROR_PARAMETER, "0 B", "0x1C000000");
    refuse_dma(l2, 0, 16 | DIANA_DMA_POSITION_MASK, DIANA_ERROR_PARAMETER, "16 B", "0x1C000000");
    refuse_dma(l2, 0, 16 | 0x10000000u, DIANA_ERROR_PARAMETER, "16 B", "0x1C000000");
    refuse_dma(l2, 64, 16 | DIANA_DMA_TO_L2, DIANA_ERROR_UNINITIALISED, "never written",
               "0x10000040");
}

static void test_dma_refuses_partly_written_l1(void)
{
    bench_t *b = bench_new();
    bench_dma(b, HTVM_L2_BASE, 0, 20);
    CHECK(htvm_soc_error(b->soc) == NULL);
    bench_dma(b, HTVM_L2_BASE, 0, 20 | DIANA_DMA_TO_L2);
    CHECK(htvm_soc_error(b->soc) == NULL);
    bench_dma(b, HTVM_L2_BASE, 0, 21 | DIANA_DMA_TO_L2);
    CHECK_HAS(htvm_soc_error(b->soc), "offset 20 was never written");
    bench_free(b);
}

static void test_full_queue(void)
{
    bench_t *b = bench_new();
    for (uint32_t i = 0; i < DIANA_DMA_QUEUE_DEPTH; i++) {
        bench_dma_start(b, HTVM_L2_BASE, 1024 * i, 1024);
    }
    CHECK_EQ(bench_status(b, DIANA_DMA_REGISTERS), DIANA_STATUS_BUSY);
    bench_dma_start(b, HTVM_L2_BASE, 65536, 512);
    CHECK_EQ(bench_status(b, DIANA_DMA_REGISTERS), DIANA_STATUS_ERROR);
    CHECK_EQ(htvm_soc_read(b->soc, DIANA_DMA_REGISTERS + DIANA_REG_ERROR, 0), DIANA_ERROR_BUSY);
    CHECK_HAS(htvm_soc_error(b->soc), "0x10010000 (512 B): the queue of 4 is full");
    bench_free(b);
}

static void test_registers(void)
{
    bench_t *b = bench_new();
    bench_dma_set(b, 0x08, 1);
    CHECK_HAS(htvm_soc_error(b->soc), "DMA: write to 0x1A100008");
    bench_free(b);
    b = bench_new();
    htvm_soc_read(b->soc, DIANA_DIGITAL_REGISTERS + DIANA_DIGITAL_IN, 0);
    CHECK_HAS(htvm_soc_error(b->soc), "digital core: read of register 0x1A101024");
    bench_free(b);
    CHECK(htvm_soc_owns(DIANA_DMA_REGISTERS));
    CHECK(htvm_soc_owns(DIANA_DIGITAL_REGISTERS + DIANA_DIGITAL_START));
    CHECK(!htvm_soc_owns(DIANA_DMA_REGISTERS - 4));
    CHECK(!htvm_soc_owns(HTVM_SIM_TRACE));
    CHECK(!htvm_soc_owns(HTVM_L2_BASE));
}

static void test_error_can_be_forgotten(void)
{
    bench_t *b = bench_new();
    bench_dma(b, HTVM_L2_BASE + 1, 0, 16);
    CHECK_EQ(bench_status(b, DIANA_DMA_REGISTERS), DIANA_STATUS_ERROR);
    bench_dma(b, HTVM_L2_BASE, 0, 16); /* ignored in the error state */
    CHECK_EQ(bench_status(b, DIANA_DMA_REGISTERS), DIANA_STATUS_ERROR);
    bench_dma_set(b, DIANA_REG_STATUS, 0);
    CHECK_EQ(bench_status(b, DIANA_DMA_REGISTERS), DIANA_STATUS_IDLE);
    bench_dma(b, HTVM_L2_BASE, 0, 16);
    CHECK_EQ(bench_status(b, DIANA_DMA_REGISTERS), DIANA_STATUS_IDLE);
    CHECK_HAS(htvm_soc_error(b->soc), "0x1C000001"); /* the first complaint is kept */
    bench_free(b);
}

/* ---- digital core ---- */

/* The default trigger with one register changed. */
static void refuse(uint32_t operation, uint32_t reg, uint32_t value, uint32_t code,
                   const char *part)
{
    bench_t *b = bench_new();
    for (uint32_t at = 0; at < 4096; at += 1024) {
        bench_dma(b, HTVM_L2_BASE, at, 1024);
    }
    bench_conv_defaults(b);
    if (operation == DIANA_DIGITAL_OP_DENSE || operation == DIANA_DIGITAL_OP_ADD) {
        bench_core_set(b, DIANA_DIGITAL_SHAPE0, 16u | 16u << 16);
    }
    if (operation == DIANA_DIGITAL_OP_ADD) {
        bench_core_set(b, DIANA_DIGITAL_SHAPE0, 64u);
        bench_core_set(b, DIANA_DIGITAL_IN2, 1024u);
    }
    CHECK_EQ(bench_start(b, operation), DIANA_ERROR_NONE); /* right before it is spoiled */
    bench_core_set(b, reg, value);
    CHECK_EQ(bench_start(b, operation), code);
    CHECK_EQ(bench_status(b, DIANA_DIGITAL_REGISTERS), DIANA_STATUS_ERROR);
    CHECK_HAS(htvm_soc_error(b->soc), "digital core: ");
    CHECK_HAS(htvm_soc_error(b->soc), part);
    bench_free(b);
}

static void test_conv_refuses(void)
{
    const uint32_t conv = DIANA_DIGITAL_OP_CONV;
    const uint32_t base = 3u | 3u << 8 | 1u << 16;
    refuse(conv, DIANA_DIGITAL_SHAPE0, 0u | 1u << 16, DIANA_ERROR_PARAMETER, "k 0");
    refuse(conv, DIANA_DIGITAL_SHAPE0, 16u, DIANA_ERROR_PARAMETER, "c 0");
    refuse(conv, DIANA_DIGITAL_SHAPE1, 8u, DIANA_ERROR_PARAMETER, "in 8x0");
    refuse(conv, DIANA_DIGITAL_SHAPE2, 8u << 16, DIANA_ERROR_PARAMETER, "out 0x8");
    refuse(conv, DIANA_DIGITAL_SHAPE3, 2u | 3u << 8 | 1u << 16, DIANA_ERROR_PARAMETER,
           "2x3 filter");
    refuse(conv, DIANA_DIGITAL_SHAPE3, 3u | 9u << 8 | 1u << 16, DIANA_ERROR_PARAMETER,
           "3x9 filter");
    refuse(conv, DIANA_DIGITAL_SHAPE3, 3u | 3u << 8 | 3u << 16, DIANA_ERROR_PARAMETER, "stride 3");
    refuse(conv, DIANA_DIGITAL_SHAPE3, base & 0xFFFFu, DIANA_ERROR_PARAMETER, "stride 0");
    refuse(conv, DIANA_DIGITAL_SHAPE4, 1u | 32u << 8, DIANA_ERROR_PARAMETER, "shift 32");
    refuse(conv, DIANA_DIGITAL_SHAPE4, 1u | 2u << 16, DIANA_ERROR_PARAMETER, "relu 2");
    refuse(conv, DIANA_DIGITAL_IN, 4, DIANA_ERROR_ALIGNMENT, "input at L1 0x10000004 (128 B)");
    refuse(conv, DIANA_DIGITAL_OUT, 4104, DIANA_ERROR_ALIGNMENT,
           "output at L1 0x10001008 (2048 B)");
    refuse(conv, DIANA_DIGITAL_IN, HTVM_L1_SIZE - 112, DIANA_ERROR_RANGE, "0x1003E790 (128 B)");
    refuse(conv, DIANA_DIGITAL_OUT, HTVM_L1_SIZE - 2032, DIANA_ERROR_RANGE, "(2048 B)");
    refuse(conv, DIANA_DIGITAL_OUT, 112, DIANA_ERROR_OVERLAP,
           "output at L1 0x10000070 (2048 B) overlaps input at 0x10000000 (128 B)");
    refuse(conv, DIANA_DIGITAL_WEIGHTS, HTVM_L2_BASE + 1, DIANA_ERROR_ALIGNMENT, "0x1C000001");
    refuse(conv, DIANA_DIGITAL_WEIGHTS, HTVM_L2_BASE + HTVM_L2_SIZE - 64, DIANA_ERROR_RANGE,
           "0x1C07CFC0 (208 B)");
    refuse(conv, DIANA_DIGITAL_IN, 3984, DIANA_ERROR_OVERLAP, "overlaps");
    refuse(conv, DIANA_DIGITAL_IN, 8192, DIANA_ERROR_UNINITIALISED, "never written");
}

static void test_unknown_operation(void)
{
    bench_t *b = bench_new();
    CHECK_EQ(bench_start(b, 9), DIANA_ERROR_OPERATION);
    CHECK_HAS(htvm_soc_error(b->soc), "unknown operation 9");
    bench_free(b);
}

static void test_core_busy(void)
{
    bench_t *b = bench_new();
    bench_dma(b, HTVM_L2_BASE, 0, 1024);
    bench_conv_defaults(b);
    bench_core_set(b, DIANA_DIGITAL_START, DIANA_DIGITAL_OP_CONV);
    CHECK_EQ(bench_status(b, DIANA_DIGITAL_REGISTERS), DIANA_STATUS_BUSY);
    CHECK_EQ(bench_start(b, DIANA_DIGITAL_OP_CONV), DIANA_ERROR_BUSY);
    bench_free(b);
}

static void test_depthwise_refuses(void)
{
    const uint32_t depthwise = DIANA_DIGITAL_OP_DEPTHWISE;
    refuse(depthwise, DIANA_DIGITAL_SHAPE0, 16u | 2u << 16, DIANA_ERROR_PARAMETER, "c 2");
    refuse(depthwise, DIANA_DIGITAL_SHAPE0, 32u | 1u << 16, DIANA_ERROR_PARAMETER, "k 32");
}

static void test_depthwise_maps_of_other_lanes_are_void(void)
{
    bench_t *b = bench_new();
    bench_dma(b, HTVM_L2_BASE, 0, 1024);
    bench_conv_defaults(b);
    CHECK_EQ(bench_start(b, DIANA_DIGITAL_OP_DEPTHWISE), DIANA_ERROR_NONE);
    bench_dma(b, HTVM_L2_BASE, 4096, 128 | DIANA_DMA_TO_L2); /* lane 0 */
    CHECK(htvm_soc_error(b->soc) == NULL);
    bench_dma(b, HTVM_L2_BASE, 4096, 256 | DIANA_DMA_TO_L2);
    CHECK_HAS(htvm_soc_error(b->soc), "offset 128 was never written");
    bench_free(b);
}

static void test_dense_refuses(void)
{
    const uint32_t dense = DIANA_DIGITAL_OP_DENSE;
    refuse(dense, DIANA_DIGITAL_SHAPE0, 17u | 16u << 16, DIANA_ERROR_PARAMETER, "k 17");
    refuse(dense, DIANA_DIGITAL_SHAPE0, 0u | 16u << 16, DIANA_ERROR_PARAMETER, "k 0");
    refuse(dense, DIANA_DIGITAL_SHAPE0, 16u, DIANA_ERROR_PARAMETER, "c 0");
    refuse(dense, DIANA_DIGITAL_SHAPE0, 16u | 4000u << 16, DIANA_ERROR_WEIGHTS,
           "(64256 B) exceed the weight memory of 64000 B");
    refuse(dense, DIANA_DIGITAL_SHAPE4, 40u << 8, DIANA_ERROR_PARAMETER, "shift 40");
    refuse(dense, DIANA_DIGITAL_OUT, 0, DIANA_ERROR_OVERLAP, "overlaps");
    refuse(dense, DIANA_DIGITAL_IN, 1, DIANA_ERROR_ALIGNMENT, "0x10000001 (16 B)");
    refuse(dense, DIANA_DIGITAL_IN, 4080 + 32, DIANA_ERROR_UNINITIALISED, "0x10001013");
    refuse(dense, DIANA_DIGITAL_WEIGHTS, 64, DIANA_ERROR_RANGE, "0x00000040 (512 B)");
}

static void test_add_refuses(void)
{
    const uint32_t add = DIANA_DIGITAL_OP_ADD;
    refuse(add, DIANA_DIGITAL_SHAPE0, 0, DIANA_ERROR_PARAMETER, "0 elements");
    refuse(add, DIANA_DIGITAL_SHAPE4, 2u << 16, DIANA_ERROR_PARAMETER, "relu 2");
    refuse(add, DIANA_DIGITAL_IN2, 1032, DIANA_ERROR_ALIGNMENT, "second operand at L1 0x10000408");
    refuse(add, DIANA_DIGITAL_IN, HTVM_L1_SIZE, DIANA_ERROR_RANGE, "first operand");
    refuse(add, DIANA_DIGITAL_OUT, 48, DIANA_ERROR_OVERLAP, "overlaps input at 0x10000000 (64 B)");
    refuse(add, DIANA_DIGITAL_OUT, 1024, DIANA_ERROR_OVERLAP,
           "overlaps input at 0x10000400 (64 B)");
    refuse(add, DIANA_DIGITAL_IN2, 8192, DIANA_ERROR_UNINITIALISED, "add: input of 64 B");
}

static void test_weight_memory_overrun(void)
{
    bench_t *b = bench_new();
    for (uint32_t at = 0; at < 65536; at += 16384) {
        bench_dma(b, HTVM_L2_BASE, at, 16384);
    }
    bench_conv_defaults(b);
    bench_core_set(b, DIANA_DIGITAL_OUT, 131072);
    /* 444 channels of 3x3: 16 * 444 * 9 + 64 = 64,000 B fit; one more does not. */
    bench_core_set(b, DIANA_DIGITAL_SHAPE0, 16u | 444u << 16);
    CHECK_EQ(bench_start(b, DIANA_DIGITAL_OP_CONV), DIANA_ERROR_NONE);
    bench_core_set(b, DIANA_DIGITAL_SHAPE0, 16u | 445u << 16);
    CHECK_EQ(bench_start(b, DIANA_DIGITAL_OP_CONV), DIANA_ERROR_WEIGHTS);
    CHECK_HAS(htvm_soc_error(b->soc), "0x1C000000 (64144 B) exceed the weight memory of 64000 B");
    bench_free(b);
}

/* Only what the windows touch must have been written: rows and columns that are cropped, and the
 * pitch behind a row, may be anything. */
static void test_only_touched_input_must_be_written(void)
{
    bench_t *b = bench_new();
    for (uint32_t row = 2; row < 8; row++) {
        bench_dma(b, HTVM_L2_BASE, row * 16, 8);
    }
    bench_conv_defaults(b);
    bench_core_set(b, DIANA_DIGITAL_SHAPE2, 4u | 6u << 16);
    bench_core_set(b, DIANA_DIGITAL_SHAPE3, 3u | 3u << 8 | 1u << 16 | 0xFEu << 24); /* crop 2 */
    bench_core_set(b, DIANA_DIGITAL_SHAPE4, 0u);
    CHECK_EQ(bench_start(b, DIANA_DIGITAL_OP_CONV), DIANA_ERROR_NONE);
    bench_core_set(b, DIANA_DIGITAL_SHAPE3, 3u | 3u << 8 | 1u << 16 | 0xFFu << 24); /* crop 1 */
    CHECK_EQ(bench_start(b, DIANA_DIGITAL_OP_CONV), DIANA_ERROR_UNINITIALISED);
    CHECK_HAS(htvm_soc_error(b->soc), "0x10000010 includes 0x10000013 (offset 19)");
    bench_free(b);
}

int main(void)
{
    test_dma_refuses();
    test_dma_refuses_partly_written_l1();
    test_full_queue();
    test_registers();
    test_error_can_be_forgotten();
    test_conv_refuses();
    test_unknown_operation();
    test_core_busy();
    test_depthwise_refuses();
    test_depthwise_maps_of_other_lanes_are_void();
    test_dense_refuses();
    test_add_refuses();
    test_weight_memory_overrun();
    test_only_touched_input_must_be_written();
    return htvm_test_report();
}
