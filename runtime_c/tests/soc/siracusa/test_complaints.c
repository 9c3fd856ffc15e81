/* Complaints: a job that the engine would get wrong is refused with a message that has its values.
 */
#include "bench.h"

/* Writes the registers of a job and triggers it, without waiting for a context. */
static void start(const siracusa_neureka_registers_t *registers)
{
    bench_read(bench, NEUREKA(ACQUIRE));
    for (uint32_t i = 0; i < SIRACUSA_NEUREKA_JOB_REGISTERS; i++) {
        bench_write(bench, NEUREKA(JOB) + 4u * i, registers->value[i]);
    }
    bench_write(bench, NEUREKA(TRIGGER), 0);
}

static siracusa_neureka_registers_t good(void)
{
    const siracusa_neureka_job_t job = bench_job_defaults();
    siracusa_neureka_registers_t registers;
    siracusa_neureka_fill(&registers, &job);
    return registers;
}

/* Starts spoilt registers on a fresh machine: nothing runs, and the next job does. */
static void refused(const siracusa_neureka_registers_t *registers, const char *message)
{
    bench = bench_new();
    start(registers);
    CHECK_HAS(htvm_soc_error(bench->soc), message);
    CHECK_EQ(bench_read(bench, NEUREKA(STATUS)), 0);
    CHECK_EQ(htvm_soc_next_event(bench->soc, bench->now), UINT64_MAX);
    const siracusa_neureka_registers_t right = good();
    start(&right);
    bench_finish(bench);
    CHECK_EQ(bench_read(bench, NEUREKA(FINISHED)), 1);
    bench_free(bench);
}

static void refused_job(const siracusa_neureka_job_t *job, const char *message)
{
    siracusa_neureka_registers_t registers;
    siracusa_neureka_fill(&registers, job);
    refused(&registers, message);
}

#define REFUSED(message, ...)                                \
    do {                                                     \
        siracusa_neureka_job_t job = bench_job_defaults();   \
        __VA_ARGS__;                                         \
        refused_job(&job, message);                          \
    } while (0)

#define REFUSED_VALUE(number, bits, message)                          \
    do {                                                              \
        siracusa_neureka_registers_t registers = good();              \
        registers.value[SIRACUSA_NEUREKA_##number] = (bits);          \
        refused(&registers, message);                                 \
    } while (0)

static void test_conf0(void)
{
    const uint32_t conf0 = good().value[SIRACUSA_NEUREKA_CONF0];
    REFUSED_VALUE(CONF0, conf0 | 3u << 5, "N-EUREKA: job 0: conf0 0x03008077 has a mode or a bit");
    REFUSED_VALUE(CONF0, conf0 | 1u << 3, "that does not exist");
    REFUSED_VALUE(CONF0, conf0 | 1u << 7, "that does not exist");
    REFUSED_VALUE(CONF0, conf0 | 1u << 8, "that does not exist");
    REFUSED_VALUE(CONF0, conf0 | 1u << 12, "that does not exist");
    REFUSED_VALUE(CONF0, conf0 | 1u << 21, "that does not exist");
    REFUSED_VALUE(CONF0, conf0 | 1u << 27, "that does not exist");
    REFUSED("job 0: weights of 1 bits; there are 2 to 8", job.weight_bits = 1);
    REFUSED_VALUE(CONF0, conf0 | SIRACUSA_NEUREKA_OUTPUT_32, "has scaled sums of 32 bits");
    REFUSED_VALUE(CONF0, conf0 & ~SIRACUSA_NEUREKA_SCALED, "has sums of 8 bits");
    REFUSED("streams partial sums into scaled ones", job.flags |= SIRACUSA_NEUREKA_STREAM_IN);
}

static void test_sizes(void)
{
    REFUSED("0 tiles of output channels", job.outputs = 0);
    REFUSED_VALUE(TILES, 2u << 16, "and 0 of input channels");
    REFUSED_VALUE(LAST_CHANNELS, 33u << 16 | 2u, "the last with 33 of 32");
    REFUSED_VALUE(LAST_CHANNELS, 8u << 16 | 29u, "the last with 29 of 28");
    REFUSED_VALUE(LAST_CHANNELS, 8u << 16, "2 of input channels, the last with 0 of 28");
    REFUSED("depthwise with 2 tiles of output channels (last 12), but 2 of input channels (last 2)",
            job.mode = SIRACUSA_NEUREKA_MODE_DEPTHWISE);
    REFUSED_VALUE(BLOCKS, 2u << 16, "0 blocks of columns");
    REFUSED_VALUE(LAST_OUTPUTS, 7u << 16 | 2u, "2 blocks of rows, the last of 7; a block has 1 to");
    REFUSED_VALUE(LAST_OUTPUTS, 2u, "2 blocks of rows, the last of 0");
}

static void test_padding(void)
{
    REFUSED("padding of 3 and 1 rows; this mode has at most 2", job.padding_top = 3);
    REFUSED("padding of 1 and 3 columns", job.padding_right = 3);
    REFUSED("padding of 1 and 1 rows; this mode has at most 0",
            job.mode = SIRACUSA_NEUREKA_MODE_1X1);
    REFUSED_VALUE(PADDING, 0x11110100, "padding with 256, which is not a byte");
    REFUSED_VALUE(LAST_INPUTS, 4u << 16 | 3u,
                  "the last block reads 4 rows and 1 of padding, but its 2 outputs need 4");
    /* One row of blocks, nothing but padding; and a block that would need the next one's padding.
     */
    REFUSED("the last block reads 1 rows besides the padding behind; at least 3 must be there",
            job.rows = 1, job.padding_top = job.padding_bottom = 2);
    REFUSED("the last block reads 1 columns besides the padding behind; at least 2",
            job.columns = 7, job.padding_right = 2);
}

static void test_fixed_values(void)
{
    REFUSED_VALUE(INPUT_NONE, 1, "job register 8 is 1; in this job it is 0");
    REFUSED_VALUE(OUTPUT_WORD, 4, "job register 9 is 4; in this job it is 32");
    REFUSED_VALUE(WEIGHT_WORD, 36, "job register 12 is 36");
    REFUSED_VALUE(WEIGHT_CHANNEL, 256, "job register 13 is 256; in this job it is 512");
    REFUSED_VALUE(WEIGHT_NONE, 1, "job register 14 is 1");
    REFUSED("mask 0x00000200 for a filter with 9 taps", job.mask = 0x200);
    REFUSED("mask 0x00000001 for a filter with 1 taps", job.mask = 1,
            job.mode = SIRACUSA_NEUREKA_MODE_1X1, job.padding_top = job.padding_right = 0,
            job.padding_bottom = job.padding_left = 0);
}

static void test_places(void)
{
    REFUSED("outputs at 0x0FFFFFFF (2560 B) are not all in L1, 0x10000000 to 0x1003FFFF",
            job.output = L1(0) - 1u);
    REFUSED("outputs at 0x1003F601 (2560 B)", job.output = L1(HTVM_L1_SIZE - 2559));
    REFUSED("inputs at 0x10400000 (1920 B)", job.input = MRAM(0));
    REFUSED("inputs at 0x1003F881 (1920 B)", job.input = L1(HTVM_L1_SIZE - 1919));
    REFUSED("inputs at 0x10000000 (1879048320 B)", job.input_row = 0x0FFFFFF0u);
    /* The span is small modulo 2^32. */
    REFUSED("(34359738480 B) are not all in L1", job.input_row = 0xFFFFFFF0u, job.rows = 9,
            job.input_pixel = 30);
    REFUSED("outputs at 0x10004000 (15032385856 B)", job.output_row = 0x80000000u);
    REFUSED("scales at 0x20000000 (40 B)", job.scales = 0x20000000u);
    REFUSED("scales at 0x1003FFD9 (160 B)", job.scales = L1(HTVM_L1_SIZE - 39),
            job.flags |= SIRACUSA_NEUREKA_SCALE_32);
    REFUSED("shifts at 0x1003FFD9 (40 B)", job.shifts = L1(HTVM_L1_SIZE - 39));
    REFUSED("biases at 0x1003FF61 (160 B)", job.biases = L1(HTVM_L1_SIZE - 159));
    REFUSED("weights at 0x1003B001 (20480 B) are not all in L1",
            job.weights = L1(HTVM_L1_SIZE - 20479));
    REFUSED("weights at 0x107FB001 (20480 B) are not all in MRAM, 0x10400000 to 0x107FFFFF",
            job.weights = SRAM(0) - 20479u);
    REFUSED("weights at 0x10BFB001 (20480 B) are not all in SRAM",
            job.weights = SRAM(HTVM_SRAM_SIZE - 20479));
    REFUSED("weights at 0x10900000 (20480 B) are not in memory", job.weights = SRAM(BENCH_WEIGHTS));
    siracusa_neureka_registers_t registers = good();
    registers.value[SIRACUSA_NEUREKA_CONF0] |= SIRACUSA_NEUREKA_WEIGHT_MEMORY;
    registers.value[SIRACUSA_NEUREKA_WEIGHTS] = 0x800000;
    refused(&registers, "weights at 0x10C00000 (20480 B) are not all in MRAM");
    registers.value[SIRACUSA_NEUREKA_TILES] = 0xFFFFFFFFu;
    registers.value[SIRACUSA_NEUREKA_WEIGHT_CHANNEL] = 32u * 8u * 65535u;
    refused(&registers, "outputs at 0x10004000");
}

static void test_overlaps(void)
{
    REFUSED("outputs at 0x10004000 (8 x 8 pixels of 40 B) overwrite each other: a row every 320 B, "
            "a pixel every 39 B", job.output_pixel = 39);
    REFUSED("overwrite each other: a row every 319 B", job.output_row = 319);
    REFUSED("overwrite each other: a row every 90 B, a pixel every 100 B", job.output_row = 90,
            job.output_pixel = 100, job.rows = 2);
    REFUSED("overwrite each other", job.output_row = job.output_pixel = 0, job.rows = 6000,
            job.input_row = 0);
    REFUSED("outputs at 0x100000F0 (2560 B) overlap inputs at 0x10000000 (1920 B)",
            job.output = L1(240));
    REFUSED("overlap weights at 0x10008000", job.output = L1(32767 - 2559 + 1));
    REFUSED("overlap scales at 0x10002000", job.output = L1(8192 + 39));
    REFUSED("overlap shifts at 0x10002100", job.output = L1(8448 + 39), job.scales = L1(0));
    REFUSED("overlap biases at 0x10002200", job.biases = L1(8704), job.output = L1(8704 + 159));
}

/* Interleaved tensors have no byte in common: outputs in the gaps between the input's pixels. */
static void test_what_only_seems_to_overlap(void)
{
    bench = bench_new();
    siracusa_neureka_job_t job = bench_job_defaults();
    job.input_pixel = job.output_pixel = 70;
    job.input_row = job.output_row = 560;
    job.output = L1(30);
    siracusa_neureka_registers_t registers;
    siracusa_neureka_fill(&registers, &job);
    start(&registers);
    bench_finish(bench);
    CHECK(htvm_soc_error(bench->soc) == NULL);
    /* Without scaling there are no factors to be found. */
    job.flags = 0;
    job.scales = job.shifts = job.biases = 0;
    job.output = L1(65536);
    job.output_pixel = 160;
    job.output_row = 1280;
    siracusa_neureka_fill(&registers, &job);
    start(&registers);
    bench_finish(bench);
    CHECK(htvm_soc_error(bench->soc) == NULL);
    bench_free(bench);
}

static void test_somebody_else_writes(void)
{
    const struct {
        uint32_t place;
        const char *role;
    } cases[] = {
        {0, "inputs at 0x10000000"},
        {1919, "inputs"},
        {8192 + 39, "scales"},
        {8448, "shifts"},
        {8704 + 159, "biases"},
        {16384, "outputs"},
        {32768 + 20479, "weights at 0x10008000 (20480 B) were written by somebody else while"},
        {16384 + 2560, NULL},
        {1920, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bench = bench_new();
        const siracusa_neureka_registers_t registers = good();
        start(&registers);
        bench->l1[cases[i].place]++;
        bench_finish(bench);
        if (cases[i].role == NULL) {
            CHECK(htvm_soc_error(bench->soc) == NULL);
        } else {
            CHECK_HAS(htvm_soc_error(bench->soc), cases[i].role);
        }
        bench_free(bench);
    }
}

/* What depends on memory is known at the job's end. */
static void test_values_in_memory(void)
{
    bench = bench_new();
    const siracusa_neureka_registers_t registers = good();
    bench->l1[8448 + 33] = 32;
    start(&registers);
    bench_finish(bench);
    CHECK_HAS(htvm_soc_error(bench->soc),
              "job 0: shift 32 of output channel 33 is out of range (0 to 31)");
    bench_free(bench);

    bench = bench_new();
    siracusa_neureka_job_t job = bench_job_defaults();
    siracusa_neureka_registers_t positive;
    job.offset = 1;
    siracusa_neureka_fill(&positive, &job);
    bench->l1[7 * 240 + 7 * 30 + 29] = 1; /* the last input: seen by the last four outputs */
    bench->l1[8192 + 39] = 1;
    memset(bench->l1 + 8704 + 4 * 39, 0xFF, 3);
    bench->l1[8704 + 4 * 39 + 3] = 0x7F;
    start(&positive);
    bench_finish(bench);
    CHECK_HAS(htvm_soc_error(bench->soc), "the scaled sum 2147483648 of output channel 39, row 6, "
                                          "column 6, bias included, leaves 32 bits");
    bench_free(bench);
}

static void expect(const char *message)
{
    CHECK_HAS(htvm_soc_error(bench->soc), message);
    bench_free(bench);
    bench = bench_new();
}

static void test_registers(void)
{
    bench = bench_new();
    bench_write(bench, NEUREKA(TRIGGER), 0);
    expect("N-EUREKA: trigger without a job that was acquired");
    bench_write(bench, NEUREKA(JOB), 0);
    expect("write to job register 0 without a job that was acquired");
    bench_read(bench, NEUREKA(ACQUIRE));
    bench_write(bench, NEUREKA(TRIGGER), 1);
    expect("job 0: trigger with 1, which is not 0");
    bench_write(bench, NEUREKA(STATUS), 0);
    expect("write to 0x0020100C (4 B), which is no register to write");
    bench_write(bench, NEUREKA(JOB) + 2u, 0);
    expect("write to 0x00201022");
    bench_read(bench, NEUREKA(TRIGGER));
    expect("read of 0x00201000 (4 B), which is no register to read");
    bench_read(bench, NEUREKA(JOB) + 1u);
    expect("read of 0x00201021");
    const uint32_t end = NEUREKA(JOB) + 4u * SIRACUSA_NEUREKA_JOB_REGISTERS;
    CHECK(htvm_soc_owns(NEUREKA(TRIGGER)) && htvm_soc_owns(end - 1u));
    CHECK(!htvm_soc_owns(NEUREKA(TRIGGER) - 1u) && !htvm_soc_owns(end));
    bench_free(bench);
}

/* Two jobs are queued: a third gets no context, and nothing that is written for it reaches one. */
static void test_queue_overrun(void)
{
    const siracusa_neureka_registers_t registers = good();
    bench = bench_new();
    siracusa_neureka_job_t second = bench_job_defaults();
    siracusa_neureka_registers_t beside;
    second.output = bench_addr(bench, bench->l1 + 24576);
    siracusa_neureka_fill(&beside, &second);
    start(&registers);
    start(&beside);
    CHECK(htvm_soc_error(bench->soc) == NULL);
    CHECK_EQ(bench_read(bench, NEUREKA(ACQUIRE)), SIRACUSA_NEUREKA_FULL);
    bench_write(bench, NEUREKA(JOB), registers.value[0]);
    expect("N-EUREKA: write to job register 0 without a job that was acquired");
    bench_free(bench);
}

int main(void)
{
    test_conf0();
    test_sizes();
    test_padding();
    test_fixed_values();
    test_places();
    test_overlaps();
    test_what_only_seems_to_overlap();
    test_somebody_else_writes();
    test_values_in_memory();
    test_registers();
    test_queue_overrun();
    return htvm_test_report();
}
