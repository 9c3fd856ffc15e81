/* Two devices, or a device and a hart, on the same bytes; and what is no race. */
#include "bench.h"

static bench_t *with_task(snitch_ita_task_t task)
{
    bench_t *b = bench_new();
    CHECK_EQ(bench_task(b, &task), 0);
    return b;
}

static void test_transfers_beside_a_task(void)
{
    const struct {
        bench_transfer_t transfer;
        const char *message; /* NULL: it is allowed */
    } cases[] = {
        {{L2(0), L1(0), 64, 1, 0, 0}, "destination writes 0x10000000 (1 x 64 B) while the ITA "
                                      "still reads 0x10000000 (64 x 64 B)"},
        {{L2(0), L1(4032), 128, 1, 0, 0}, "still reads"},
        {{L2(0), L1(8192), 1, 1, 0, 0}, "still reads 0x10002000 (1 x 192 B)"},
        {{L2(0), L1(20479), 1, 1, 0, 0}, "still writes 0x10004000 (64 x 64 B)"},
        {{L1(16384), L2(0), 64, 1, 0, 0}, "source reads 0x10004000"},
        {{L1(0), L2(0), 64, 1, 0, 0}, NULL},
        {{L1(4096), L1(40960), 64, 1, 0, 0}, NULL},
        {{L2(0), L1(20480), 64, 1, 0, 0}, NULL},
        {{L2(0), L1(8192 + 192), 64, 1, 0, 0}, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bench_t *b = with_task(bench_task_defaults());
        const uint32_t code = cases[i].message == NULL ? 0 : SNITCH_ERROR_RACE;
        CHECK_EQ(bench_transfer(b, cases[i].transfer), code);
        if (code != 0) {
            CHECK_HAS(htvm_soc_error(b->soc), cases[i].message);
        }
        bench_free(b);
        /* The same with the transfer first. */
        b = bench_new();
        const snitch_ita_task_t task = bench_task_defaults();
        CHECK_EQ(bench_transfer(b, cases[i].transfer), 0);
        CHECK_EQ(bench_task(b, &task), code);
        if (code != 0) {
            CHECK_HAS(htvm_soc_error(b->soc), "while the DMA still");
        }
        bench_finish(b, DMA);
        CHECK_EQ(bench_task(b, &task), code);
        bench_free(b);
    }
}

/* A task that waits for its turn has its operands already: they must be there. */
static void test_waiting_tasks_race_too(void)
{
    bench_t *b = with_task(bench_task_defaults());
    snitch_ita_task_t next = bench_task_defaults();
    next.left = L1(32768);
    next.out = L1(40960);
    CHECK_EQ(bench_task(b, &next), 0);
    CHECK_EQ(bench_transfer(b, (bench_transfer_t){L2(0), L1(32768), 64, 1, 0, 0}),
             SNITCH_ERROR_RACE);
    bench_free(b);
}

/* Rows of a strided area, byte by byte. */
static void test_strided_areas(void)
{
    snitch_ita_task_t task = bench_task_defaults();
    task.left_stride = 128;
    task.right = L1(16384);
    task.out = L1(32768);
    task.bias_kind = SNITCH_ITA_BIAS_NONE;
    for (uint32_t at = 8192 - 400; at < 8192 + 200; at += 8) {
        bench_t *b = with_task(task);
        const bool hit = at < 64 * 128 && at % 128 < 64;
        CHECK_EQ(bench_transfer(b, (bench_transfer_t){L2(0), L1(at), 8, 1, 0, 0}),
                 hit ? SNITCH_ERROR_RACE : 0);
        bench_free(b);
    }
    /* Columns beside the operand's, all rows of them. */
    bench_t *b = with_task(task);
    CHECK_EQ(bench_transfer(b, (bench_transfer_t){L2(0), L1(64), 64, 64, 64, 128}), 0);
    CHECK_EQ(bench_transfer(b, (bench_transfer_t){L2(0), L1(60), 64, 64, 64, 128}),
             SNITCH_ERROR_RACE);
    bench_free(b);
}

static void test_a_hart_writes_into_a_task(void)
{
    const uint32_t places[] = {64 * 63, 4096, 8192 + 191, 16384 + 64};
    const char *const roles[] = {"left operand", "right operand", "bias", "result"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        bench_t *b = with_task(bench_task_defaults());
        b->l1[places[i]]++;
        bench_finish(b, ITA);
        CHECK_EQ(bench_read(b, ITA + SNITCH_REG_ERROR), SNITCH_ERROR_RACE);
        CHECK_HAS(htvm_soc_error(b->soc), roles[i]);
        CHECK_HAS(htvm_soc_error(b->soc), "was written by somebody else while in use");
        bench_free(b);
    }
    bench_t *b = with_task(bench_task_defaults());
    b->l1[8192 + 192]++; /* behind the biases */
    bench_finish(b, ITA);
    CHECK(htvm_soc_error(b->soc) == NULL);
    bench_free(b);
}

static void test_a_hart_writes_into_a_transfer(void)
{
    for (uint32_t side = 0; side < 2; side++) {
        bench_t *b = bench_new();
        CHECK_EQ(bench_transfer(b, (bench_transfer_t){L2(0), L1(0), 64, 2, 128, 64}), 0);
        b->l2[64]++; /* between the rows */
        if (side == 0) {
            b->l2[130]++;
        } else {
            b->l1[127]++;
        }
        bench_finish(b, DMA);
        CHECK_HAS(htvm_soc_error(b->soc), side == 0 ? "source at 0x80000080 (row 1 of 2, 64 B) was"
                                                    : "destination at 0x10000040 (row 1 of 2");
        bench_free(b);
    }
}

/* Bytes move when a transfer is done, one after another, so that the next may need them.  Until then
 * other bytes are where the first of those that wait writes. */
static void test_transfers_in_turn(void)
{
    bench_t *b = bench_new();
    for (uint32_t i = 0; i < 64; i++) {
        b->l2[i] = (uint8_t)(i + 1);
    }
    CHECK_EQ(bench_transfer(b, (bench_transfer_t){L2(0), L1(0), 64, 1, 0, 0}), 0);
    CHECK_EQ(bench_transfer(b, (bench_transfer_t){L1(0), L1(1000), 16, 4, 16, 100}), 0);
    CHECK_EQ(bench_transfer(b, (bench_transfer_t){L1(1000), L2(1024), 16, 3, 0, 16}), 0);
    b->now = 50;
    CHECK_EQ(bench_read(b, DMA + SNITCH_REG_COMPLETED), 0);
    CHECK_EQ(b->l1[0], 0xA5);
    CHECK_EQ(b->l1[1000], 0);
    b->now = 51;
    CHECK_EQ(bench_read(b, DMA + SNITCH_REG_COMPLETED), 1);
    CHECK_EQ(b->l1[63], 64);
    CHECK_EQ(b->l1[1000], 0xA5);
    bench_finish(b, DMA);
    CHECK(htvm_soc_error(b->soc) == NULL);
    CHECK_EQ(b->l1[1000 + 300], 49);
    CHECK_EQ(b->l1[1000 + 300 + 16], 0);
    for (uint32_t i = 0; i < 48; i++) {
        CHECK_EQ(b->l2[1024 + i], i % 16 + 1);
    }
    bench_free(b);
}

/* Registers may be written for the next order while one runs. */
static void test_values_are_taken_at_the_start(void)
{
    bench_t *b = with_task(bench_task_defaults());
    b->l1[0] = 0; /* as it was: no change */
    bench_write(b, ITA + SNITCH_ITA_OUT, L1(0));
    bench_write(b, ITA + SNITCH_ITA_SIZE0, 0);
    bench_finish(b, ITA);
    CHECK(htvm_soc_error(b->soc) == NULL);
    CHECK_EQ(bench_read(b, ITA + SNITCH_REG_COMPLETED), 1);
    bench_free(b);
}

/* Harts may be a little apart: the devices' time never goes back. */
static void test_time_does_not_go_back(void)
{
    bench_t *b = with_task(bench_task_defaults());
    b->now = 1000;
    CHECK_EQ(bench_read(b, ITA + SNITCH_REG_COMPLETED), 1);
    b->now = 990;
    CHECK_EQ(bench_transfer(b, (bench_transfer_t){L2(0), L1(0), 64, 1, 0, 0}), 0);
    CHECK_EQ(htvm_soc_next_event(b->soc, b->now), 1051);
    bench_free(b);
}

int main(void)
{
    test_transfers_beside_a_task();
    test_waiting_tasks_race_too();
    test_strided_areas();
    test_a_hart_writes_into_a_task();
    test_a_hart_writes_into_a_transfer();
    test_transfers_in_turn();
    test_values_are_taken_at_the_start();
    test_time_does_not_go_back();
    return htvm_test_report();
}
