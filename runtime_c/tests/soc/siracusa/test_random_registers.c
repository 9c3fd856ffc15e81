/* Spoilt registers, thousands of times: the model either complains or computes; what else it may do
 * wrong, sanitizers see. */
#include "bench.h"

static uint32_t state = 1;

/* Marsaglia's xorshift. */
static uint32_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

/* Another value for a register: any, a near one, one with another bit or halfword. */
static uint32_t spoilt(uint32_t value)
{
    switch (draw() % 5u) {
    case 0:
        return draw();
    case 1:
        return value + draw() % 9u - 4u;
    case 2:
        return value ^ 1u << draw() % 32u;
    case 3:
        return (value & 0xFFFFu) | draw() % 12u << 16;
    default:
        return (value & 0xFFFF0000u) | draw() % 12u;
    }
}

static siracusa_neureka_registers_t any_job(void)
{
    siracusa_neureka_job_t job = bench_job_defaults();
    siracusa_neureka_registers_t registers;
    job.mode = (uint8_t)(draw() % 3u);
    job.weight_bits = (uint8_t)(2u + draw() % 7u);
    job.rows = (uint16_t)(1u + draw() % 9u);
    job.columns = (uint16_t)(1u + draw() % 8u);
    job.inputs = (uint16_t)(1u + draw() % 30u);
    job.outputs = job.mode == SIRACUSA_NEUREKA_MODE_DEPTHWISE ? job.inputs : job.outputs;
    job.padding_value = (uint8_t)draw();
    job.offset = (int32_t)draw();
    job.shift = (uint8_t)(draw() % 32u);
    job.flags = draw() % 2u != 0 ? SIRACUSA_NEUREKA_SCALED : SIRACUSA_NEUREKA_STREAM_IN;
    job.output_pixel = job.flags == SIRACUSA_NEUREKA_SCALED ? 40u : 160u;
    job.output_row = 8u * job.output_pixel;
    job.weights = L1(65536);
    if (job.mode == SIRACUSA_NEUREKA_MODE_1X1) {
        job.padding_top = job.padding_right = job.padding_bottom = job.padding_left = 0;
    }
    siracusa_neureka_fill(&registers, &job);
    return registers;
}

int main(void)
{
    uint32_t computed = 0;
    for (uint32_t round = 0; round < 2000; round++) {
        bench = bench_new();
        for (uint32_t i = 0; i < 65536; i += 4) {
            const uint32_t value = i < 16384 ? draw() & 0x1F1F1F1Fu : 0;
            memcpy(bench->l1 + i, &value, sizeof value);
        }
        siracusa_neureka_registers_t registers = any_job();
        for (uint32_t n = draw() % 3u; n != 0; n--) {
            uint32_t *value = &registers.value[draw() % SIRACUSA_NEUREKA_JOB_REGISTERS];
            *value = spoilt(*value);
        }
        bench_read(bench, NEUREKA(ACQUIRE));
        for (uint32_t i = 0; i < SIRACUSA_NEUREKA_JOB_REGISTERS; i++) {
            bench_write(bench, NEUREKA(JOB) + 4u * i, registers.value[i]);
        }
        bench_write(bench, NEUREKA(TRIGGER), 0);
        bench_finish(bench);
        const uint32_t done = bench_read(bench, NEUREKA(FINISHED));
        CHECK_EQ(done, htvm_soc_error(bench->soc) == NULL);
        computed += done;
        bench_free(bench);
    }
    CHECK(computed > 400 && computed < 1600);
    printf("%u of 2000 computed\n", (unsigned)computed);
    return htvm_test_report();
}
