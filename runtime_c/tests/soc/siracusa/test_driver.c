/* N-EUREKA's driver, run against the device model. */
#include "bench.h"

/* A 1x1 job on one pixel: out[k] = 2 * in[0] >> shift, for k < 64. */
static siracusa_neureka_job_t doubling(void)
{
    siracusa_neureka_job_t job = bench_job_defaults();
    job.mode = SIRACUSA_NEUREKA_MODE_1X1;
    job.flags = SIRACUSA_NEUREKA_SCALED;
    job.padding_top = job.padding_right = job.padding_bottom = job.padding_left = 0;
    job.rows = job.columns = 1;
    job.inputs = 1;
    job.outputs = 64;
    job.offset = 2;
    memset(bench->l1 + 8192, 1, 64);
    return job;
}

static siracusa_neureka_registers_t filled(const siracusa_neureka_job_t *job)
{
    siracusa_neureka_registers_t registers;
    siracusa_neureka_fill(&registers, job);
    return registers;
}

static void test_one_job(void)
{
    bench = bench_new();
    siracusa_neureka_job_t job = doubling();
    const siracusa_neureka_registers_t registers = filled(&job);
    bench->l1[0] = 21;
    CHECK_EQ(siracusa_neureka_program(&registers), 0);
    siracusa_neureka_wait_for(0);
    CHECK(htvm_soc_error(bench->soc) == NULL);
    CHECK_EQ(bench->l1[16384], 42);
    CHECK_EQ(bench->l1[16384 + 63], 42);
    CHECK_EQ(bench->l1[16384 + 64], 0);
    siracusa_neureka_wait();
    bench_free(bench);
}

/* Four jobs, each on the result of the one before: the third waits for a context, the waits for
 * what they name. */
static void test_queue(void)
{
    bench = bench_new();
    siracusa_neureka_registers_t registers[4];
    for (uint32_t i = 0; i < 4; i++) {
        siracusa_neureka_job_t job = doubling();
        job.input = i == 0 ? L1(0) : L1(16384 + 64 * (i - 1));
        job.output = L1(16384 + 64 * i);
        registers[i] = filled(&job);
    }
    bench->l1[0] = 5;
    const uint32_t first = siracusa_neureka_program(&registers[0]);
    const uint32_t second = siracusa_neureka_program(&registers[1]);
    CHECK(bench->now < 60);
    CHECK_EQ(bench_read(bench, NEUREKA(STATUS)), 0x101);
    CHECK_EQ(bench->l1[16384], 0);
    siracusa_neureka_wait_for(first);
    CHECK_EQ(bench_read(bench, NEUREKA(FINISHED)), 1);
    CHECK_EQ(bench->l1[16384], 10);
    const uint32_t third = siracusa_neureka_program(&registers[2]);
    const uint32_t fourth = siracusa_neureka_program(&registers[3]);
    CHECK_EQ(bench_read(bench, NEUREKA(FINISHED)), 2);
    siracusa_neureka_wait_for(second);
    CHECK_EQ(bench_read(bench, NEUREKA(FINISHED)), 2);
    siracusa_neureka_wait_for(third);
    CHECK_EQ(bench_read(bench, NEUREKA(FINISHED)), 3);
    CHECK_EQ(bench_read(bench, NEUREKA(RUNNING_JOB)), fourth);
    siracusa_neureka_wait();
    CHECK_EQ(bench_read(bench, NEUREKA(FINISHED)), 4);
    siracusa_neureka_wait_for(first);
    siracusa_neureka_wait_for(fourth);
    CHECK_EQ(bench->l1[16384 + 64 * 3], 80);
    CHECK(htvm_soc_error(bench->soc) == NULL);
    bench_free(bench);
}

/* Numbers of jobs wrap around, and are still waited for. */
static void test_many_jobs(void)
{
    bench = bench_new();
    siracusa_neureka_job_t job = doubling();
    const siracusa_neureka_registers_t one = filled(&job);
    job.output = L1(20480);
    const siracusa_neureka_registers_t other = filled(&job);
    uint32_t next = siracusa_neureka_program(&one);
    for (uint32_t i = 1; i <= 300; i++) {
        const uint32_t now = next;
        next = siracusa_neureka_program(i % 2 != 0 ? &other : &one);
        CHECK_EQ(next, i % 256);
        siracusa_neureka_wait_for(now);
        CHECK_EQ(bench_read(bench, NEUREKA(FINISHED)), i);
    }
    siracusa_neureka_clear();
    CHECK_EQ(bench_read(bench, NEUREKA(STATUS)), 0);
    CHECK_EQ(siracusa_neureka_program(&one), 0);
    CHECK(htvm_soc_error(bench->soc) == NULL);
    bench_free(bench);
}

/* The weight memory is told from L1 by the address. */
static void test_weights_anywhere(void)
{
    const uint32_t places[] = {L1(32768), MRAM(64), SRAM(0)};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        bench = bench_new();
        siracusa_neureka_job_t job = doubling();
        job.weights = places[i];
        *bench_map(bench, places[i], 1) = 0x01; /* weight 1 of channel 0, for output 0 */
        bench->l1[0] = 7;
        const siracusa_neureka_registers_t registers = filled(&job);
        siracusa_neureka_program(&registers);
        siracusa_neureka_wait();
        CHECK_EQ(bench->l1[16384], 21);
        CHECK_EQ(bench->l1[16385], 14);
        CHECK(htvm_soc_error(bench->soc) == NULL);
        bench_free(bench);
    }
}

int main(void)
{
    test_one_job();
    test_queue();
    test_many_jobs();
    test_weights_anywhere();
    return htvm_test_report();
}
