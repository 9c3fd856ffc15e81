/* ITA's driver, run against the device models. */
#include "bench.h"
#include "../hal_on_bench.h"

/* Every field goes where the model looks for it: each changes something. */
static void test_every_field(void)
{
    bench = bench_new();
    snitch_ita_task_t task = {
        .rows = 64, .cols = 128, .inner = 192,
        .operation = SNITCH_ITA_OP_LINEAR, .bias_kind = SNITCH_ITA_BIAS_COLS,
        .activation = SNITCH_ITA_ACT_GELU,
        .requant = {.mult = 3, .shift = 2, .add = -1},
        .act_requant = {.mult = 255, .shift = 19, .add = 7},
        .gelu_b = -40, .gelu_c = -800,
        .left = L1(0), .left_stride = 200,
        .right = L1(16384), .right_stride = 208,
        .bias = L1(65536), .out = L1(69632), .out_stride = 136,
    };
    bench->l1[5 * 200 + 191] = 2;
    bench->l1[16384 + 127 * 208 + 191] = 5;
    bench->l1[65536 + 3 * 127] = 0xF4; /* -12 */
    bench->l1[65536 + 3 * 127 + 1] = bench->l1[65536 + 3 * 127 + 2] = 0xFF;
    CHECK_EQ(snitch_ita_program(&task), 1);
    CHECK_EQ(snitch_ita_wait(), 0);
    CHECK(htvm_soc_error(bench->soc) == NULL);
    /* (10 - 12) * 3 / 4 = -1.5, up to -1, - 1 = -2; erf of 2: (2 - 40)^2 - 800 = 644, negated;
     * -2 * (-644 - 800) = 2888; * 255 / 2^19 = 1.4, + 7. */
    CHECK_EQ((int8_t)bench->l1[69632 + 5 * 136 + 127], 8);
    /* -12 * 3 / 4 = -9, - 1 = -10; -(900 - 800) - 800 = -900; * -10 = 9000; 4.4 + 7. */
    CHECK_EQ((int8_t)bench->l1[69632 + 6 * 136 + 127], 11);
    /* 0 - 1 = -1: -(1521 - 800) - 800 = -1521; 1521 * 255 / 2^19 = 0.7, + 7. */
    CHECK_EQ((int8_t)bench->l1[69632 + 6 * 136 + 126], 8);
    CHECK_EQ(bench->l1[69632 + 128], 0);
    bench_free(bench);
}

/* Three tasks: the third waits for a context, the waits for what they name. */
static void test_contexts(void)
{
    bench = bench_new();
    snitch_ita_task_t task = bench_task_defaults();
    const uint32_t first = snitch_ita_program(&task);
    task.out = L1(20480);
    const uint32_t second = snitch_ita_program(&task);
    CHECK(bench->now < 60);
    CHECK_EQ(snitch_ita_wait_for(first), 0);
    CHECK_EQ(bench_read(bench, ITA + SNITCH_REG_COMPLETED), 1);
    task.out = L1(24576);
    const uint32_t third = snitch_ita_program(&task);
    task.out = L1(28672);
    const uint32_t fourth = snitch_ita_program(&task);
    CHECK_EQ(bench_read(bench, ITA + SNITCH_REG_COMPLETED), 2);
    CHECK_EQ(snitch_ita_wait_for(second), 0);
    CHECK_EQ(bench_read(bench, ITA + SNITCH_REG_COMPLETED), 2);
    CHECK_EQ(snitch_ita_wait_for(third), 0);
    CHECK_EQ(bench_read(bench, ITA + SNITCH_REG_COMPLETED), 3);
    CHECK_EQ(snitch_ita_wait(), 0);
    CHECK_EQ(snitch_ita_wait_for(fourth), 0);
    CHECK_EQ(bench_read(bench, ITA + SNITCH_REG_COMPLETED), 4);
    CHECK_EQ(fourth, 4);
    CHECK_EQ(snitch_ita_wait_for(first), 0);
    bench_free(bench);
}

static void test_errors(void)
{
    bench = bench_new();
    snitch_ita_task_t task = bench_task_defaults();
    snitch_ita_program(&task);
    task.rows = 63;
    const uint32_t number = snitch_ita_program(&task);
    CHECK_EQ(snitch_ita_wait_for(number), SNITCH_ERROR_PARAMETER);
    CHECK_EQ(snitch_ita_wait(), SNITCH_ERROR_PARAMETER);
    CHECK_HAS(htvm_soc_error(bench->soc), "linear: 63 rows");
    bench_free(bench);
}

int main(void)
{
    test_every_field();
    test_contexts();
    test_errors();
    return htvm_test_report();
}
