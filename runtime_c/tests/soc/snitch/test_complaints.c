/* Complaints: every order that is wrong is refused with a code and a message that has its values. */
#include "bench.h"

/* Starts a spoilt task on a fresh machine. */
static void refused(const snitch_ita_task_t *task, uint32_t code, const char *message)
{
    bench_t *b = bench_new();
    CHECK_EQ(bench_task(b, task), code);
    CHECK_HAS(htvm_soc_error(b->soc), message);
    CHECK_EQ(bench_read(b, ITA + SNITCH_REG_STATUS), SNITCH_STATUS_ERROR);
    /* Nothing is done until the error is forgotten; then all is well again. */
    snitch_ita_task_t good = bench_task_defaults();
    CHECK_EQ(bench_task(b, &good), code);
    CHECK_EQ(bench_read(b, ITA + SNITCH_REG_STARTED), 0);
    bench_write(b, ITA + SNITCH_REG_STATUS, 0);
    CHECK_EQ(bench_task(b, &good), 0);
    bench_finish(b, ITA);
    CHECK_EQ(bench_read(b, ITA + SNITCH_REG_COMPLETED), 1);
    bench_free(b);
}

#define REFUSED(code, message, ...)                          \
    do {                                                     \
        snitch_ita_task_t task = bench_task_defaults();      \
        __VA_ARGS__;                                         \
        refused(&task, code, message);                       \
    } while (0)

static void test_modes(void)
{
    REFUSED(SNITCH_ERROR_OPERATION, "ITA: mode 0x00000100: there is no operation 0",
            task.operation = 0);
    REFUSED(SNITCH_ERROR_OPERATION, "there is no operation 4", task.operation = 4);
    REFUSED(SNITCH_ERROR_PARAMETER, "linear: mode 0x00000301 has a bias", task.bias_kind = 3);
    REFUSED(SNITCH_ERROR_PARAMETER, "linear: mode 0x00030101 has a bias, activation",
            task.activation = 3);
    REFUSED(SNITCH_ERROR_PARAMETER, "flag that does not exist", task.flags = 2);
    REFUSED(SNITCH_ERROR_PARAMETER, "qk: activation 2 is for linear only",
            task.operation = SNITCH_ITA_OP_QK, task.activation = SNITCH_ITA_ACT_RELU);
    REFUSED(SNITCH_ERROR_PARAMETER, "linear: shift 32, or 0 of the activation, is out of range",
            task.requant.shift = 32);
    REFUSED(SNITCH_ERROR_PARAMETER, "linear: shift 0, or 40 of the activation",
            task.activation = SNITCH_ITA_ACT_RELU, task.act_requant.shift = 40);
    REFUSED(SNITCH_ERROR_PARAMETER, "b of GELU is 3, which must not be positive",
            task.activation = SNITCH_ITA_ACT_GELU, task.gelu_b = 3);
}

static void test_sizes(void)
{
    REFUSED(SNITCH_ERROR_PARAMETER, "linear: 0 rows, 64 columns, inner 64", task.rows = 0);
    REFUSED(SNITCH_ERROR_PARAMETER, "96 columns", task.cols = 96);
    REFUSED(SNITCH_ERROR_PARAMETER, "inner 576: sizes are multiples of 64 up to 512",
            task.inner = 576, task.left_stride = 576, task.right_stride = 576);
    REFUSED(SNITCH_ERROR_PARAMETER, "qk: 128 rows; there are statistics of 64",
            task.operation = SNITCH_ITA_OP_QK, task.rows = 128);
    REFUSED(SNITCH_ERROR_PARAMETER, "av: 128 rows", task.operation = SNITCH_ITA_OP_AV,
            task.rows = 128);
    REFUSED(SNITCH_ERROR_PARAMETER, "qk: length 0 is not between 1 and 64 columns",
            task.operation = SNITCH_ITA_OP_QK, task.length = 0);
    REFUSED(SNITCH_ERROR_PARAMETER, "qk: length 65", task.operation = SNITCH_ITA_OP_QK,
            task.length = 65);
}

static void test_places(void)
{
    REFUSED(SNITCH_ERROR_ALIGNMENT,
            "left operand at 0x10000004, stride 64 (64 x 64 B) is not aligned to 8 B",
            task.left = L1(4));
    REFUSED(SNITCH_ERROR_ALIGNMENT, "right operand at 0x10001000, stride 68",
            task.right_stride = 68);
    REFUSED(SNITCH_ERROR_ALIGNMENT, "bias at 0x10002003", task.bias = L1(8195));
    REFUSED(SNITCH_ERROR_ALIGNMENT, "result at 0x10004001", task.out = L1(16385));
    REFUSED(SNITCH_ERROR_RANGE, "left operand at 0x80000000 (64 x 64 B) is not in L1",
            task.left = L2(0));
    REFUSED(SNITCH_ERROR_RANGE, "bias at 0x00000000", task.bias = 0);
    REFUSED(SNITCH_ERROR_RANGE, "(4096 B) leaves L1", task.right = L1(HTVM_L1_SIZE - 4088));
    REFUSED(SNITCH_ERROR_RANGE, "result at L1", task.out_stride = HTVM_L1_SIZE / 64 / 8 * 8);
    REFUSED(SNITCH_ERROR_PARAMETER, "rows of 64 B every 56 B overwrite each other",
            task.out_stride = 56);
    REFUSED(SNITCH_ERROR_OVERLAP, "result at 0x10002040 (64 x 64 B) overlaps bias at 0x10002000",
            task.out = L1(8192 + 64));
    REFUSED(SNITCH_ERROR_OVERLAP, "overlaps left operand", task.out = L1(0));
    REFUSED(SNITCH_ERROR_OVERLAP, "overlaps right operand", task.out = L1(8192 - 8));
}

/* Rows of the result between those of an operand are no overlap. */
static void test_interleaved_rows_do_not_overlap(void)
{
    bench_t *b = bench_new();
    snitch_ita_task_t task = bench_task_defaults();
    task.bias_kind = SNITCH_ITA_BIAS_NONE;
    task.left_stride = task.out_stride = 128;
    task.right = L1(32768);
    task.out = task.left + 64;
    CHECK_EQ(bench_task(b, &task), 0);
    bench_finish(b, ITA);
    CHECK(htvm_soc_error(b->soc) == NULL);
    bench_free(b);
    task.out -= 8;
    refused(&task, SNITCH_ERROR_OVERLAP, "overlaps left operand");
}

static void test_attention_in_order(void)
{
    REFUSED(SNITCH_ERROR_SEQUENCE, "av: inner 64, but the last qk had 0 columns",
            task.operation = SNITCH_ITA_OP_AV);

    bench_t *b = bench_new();
    snitch_ita_task_t task = bench_task_defaults();
    task.operation = SNITCH_ITA_OP_QK;
    CHECK_EQ(bench_task(b, &task), 0);
    task.operation = SNITCH_ITA_OP_AV;
    task.left = task.out;
    task.out = L1(32768);
    task.inner = 128;
    CHECK_EQ(bench_task(b, &task), SNITCH_ERROR_SEQUENCE);
    CHECK_HAS(htvm_soc_error(b->soc), "av: inner 128, but the last qk had 64 columns");
    /* The QK before was dropped, too. */
    bench_write(b, ITA + SNITCH_REG_STATUS, 0);
    task.inner = 64;
    CHECK_EQ(bench_task(b, &task), SNITCH_ERROR_SEQUENCE);
    bench_free(b);
}

static void test_av_of_other_scores(void)
{
    bench_t *b = bench_new();
    snitch_ita_task_t task = bench_task_defaults();
    task.operation = SNITCH_ITA_OP_QK;
    CHECK_EQ(bench_task(b, &task), 0);
    bench_finish(b, ITA);
    b->l1[16384 + 64 * 5 + 9] = 1; /* all scores are 0 */
    task.operation = SNITCH_ITA_OP_AV;
    task.left = task.out;
    task.out = L1(32768);
    CHECK_EQ(bench_task(b, &task), 0);
    bench_finish(b, ITA);
    CHECK_HAS(htvm_soc_error(b->soc),
              "av: row 5, column 9 of the left operand at 0x10004000 is above the maximum");
    bench_free(b);
}

static void test_contexts(void)
{
    bench_t *b = bench_new();
    snitch_ita_task_t task = bench_task_defaults();
    CHECK_EQ(bench_read(b, ITA + SNITCH_REG_ROOM), 2);
    CHECK_EQ(bench_task(b, &task), 0);
    CHECK_EQ(bench_task(b, &task), 0);
    CHECK_EQ(bench_read(b, ITA + SNITCH_REG_ROOM), 0);
    CHECK_EQ(bench_task(b, &task), SNITCH_ERROR_BUSY);
    CHECK_HAS(htvm_soc_error(b->soc), "linear to 0x10004000: all 2 contexts are taken for another");
    /* What was left is dropped. */
    CHECK_EQ(bench_read(b, ITA + SNITCH_REG_STARTED), 2);
    CHECK_EQ(bench_read(b, ITA + SNITCH_REG_COMPLETED), 2);
    CHECK_EQ(htvm_soc_next_event(b->soc, b->now), UINT64_MAX);
    bench_free(b);
}

static void transfer_refused(bench_transfer_t t, uint32_t code, const char *message)
{
    bench_t *b = bench_new();
    CHECK_EQ(bench_transfer(b, t), code);
    CHECK_HAS(htvm_soc_error(b->soc), message);
    bench_free(b);
}

static void test_transfers(void)
{
    const bench_transfer_t good = {L2(0), L1(0), 64, 4, 64, 64};
    bench_transfer_t t = good;
    t.bytes = 0;
    transfer_refused(t, SNITCH_ERROR_PARAMETER, "DMA: transfer from 0x80000000 to 0x10000000 of 4");
    t = good;
    t.rows = 0;
    transfer_refused(t, SNITCH_ERROR_PARAMETER, "moves nothing");
    t = good;
    t.dest_stride = 63;
    transfer_refused(t, SNITCH_ERROR_PARAMETER, "rows of 64 B every 63 B overwrite each other");
    t = good;
    t.source = L2(BENCH_L2 - 255);
    transfer_refused(t, SNITCH_ERROR_RANGE, "source at 0x8000FF01 (256 B) is not in memory");
    t = good;
    t.dest = L1(HTVM_L1_SIZE - 255);
    transfer_refused(t, SNITCH_ERROR_RANGE, "(256 B) leaves L1");
    t = good;
    t.source_stride = 0x80000000u;
    transfer_refused(t, SNITCH_ERROR_RANGE, "source at 0x80000000 (6442451008 B) is not in memory");
    t.rows = 3; /* a span that is small modulo 2^32 */
    transfer_refused(t, SNITCH_ERROR_RANGE, "source at 0x80000000 (4294967360 B)");
    t = good;
    t.source = L1(200);
    transfer_refused(t, SNITCH_ERROR_OVERLAP, "destination at 0x10000000 (4 x 64 B) overlaps");
}

static void test_queue(void)
{
    bench_t *b = bench_new();
    for (uint32_t i = 0; i < SNITCH_ITA_DMA_QUEUE_DEPTH; i++) {
        const bench_transfer_t t = {L2(0), L1(64 * i), 64, 1, 0, 0};
        CHECK_EQ(bench_transfer(b, t), 0);
    }
    CHECK_EQ(bench_transfer(b, (bench_transfer_t){L2(0), L1(4096), 64, 1, 0, 0}),
             SNITCH_ERROR_BUSY);
    CHECK_HAS(htvm_soc_error(b->soc), "is full for another 51 cycles");
    bench_free(b);
}

static void test_registers(void)
{
    bench_t *b = bench_new();
    bench_read(b, ITA + SNITCH_ITA_LEFT);
    CHECK_HAS(htvm_soc_error(b->soc), "ITA: read of register 0x2000102C (4 B), which cannot be");
    bench_free(b);
    b = bench_new();
    bench_write(b, DMA + SNITCH_REG_ROOM, 1);
    CHECK_EQ(bench_read(b, DMA + SNITCH_REG_ERROR), SNITCH_ERROR_OPERATION);
    bench_free(b);
    b = bench_new();
    bench_write(b, DMA + SNITCH_DMA_START + 4u, 1);
    CHECK_HAS(htvm_soc_error(b->soc), "which is no register to write");
    CHECK(htvm_soc_owns(DMA) && htvm_soc_owns(ITA + SNITCH_ITA_START));
    CHECK(!htvm_soc_owns(HTVM_L1_BASE) && !htvm_soc_owns(ITA + 0x1000u));
    bench_free(b);
}

int main(void)
{
    test_modes();
    test_sizes();
    test_places();
    test_interleaved_rows_do_not_overlap();
    test_attention_in_order();
    test_av_of_other_scores();
    test_contexts();
    test_transfers();
    test_queue();
    test_registers();
    return htvm_test_report();
}
