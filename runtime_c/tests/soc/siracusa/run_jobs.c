/* Runs jobs that it reads from standard input through driver and device model, one after another.
 *
 * A job is: the job's fields as words, in the order of `read_job`; the number of bytes of L1, and
 * these; the address and number of the weights outside of L1 (0: none), and these.  Written are, for
 * each job, its registers, its cycles as two words, the low one first, and the bytes of L1.  Words
 * are this machine's. */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

static uint32_t word(void)
{
    uint32_t value;
    if (fread(&value, sizeof value, 1, stdin) != 1) {
        fprintf(stderr, "the jobs end in the middle of one\n");
        exit(1);
    }
    return value;
}

static void bytes(uint8_t *to, uint32_t count)
{
    if (to == NULL || fread(to, 1, count, stdin) != count) {
        fprintf(stderr, "%u bytes are missing, or have no place\n", count);
        exit(1);
    }
}

static siracusa_neureka_job_t read_job(uint32_t first)
{
    siracusa_neureka_job_t job = {.flags = first};
    uint32_t *const places[] = {&job.weights, &job.input, &job.output, &job.scales, &job.shifts,
                                &job.biases, &job.input_row, &job.input_pixel, &job.output_row,
                                &job.output_pixel};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        *places[i] = word();
    }
    job.offset = (int32_t)word();
    uint16_t *const sizes[] = {&job.rows, &job.columns, &job.inputs, &job.outputs, &job.mask};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        *sizes[i] = (uint16_t)word();
    }
    uint8_t *const small[] = {&job.mode, &job.weight_bits, &job.shift, &job.padding_top,
                              &job.padding_right, &job.padding_bottom, &job.padding_left,
                              &job.padding_value};
    for (size_t i = 0; i < sizeof small / sizeof small[0]; i++) {
        *small[i] = (uint8_t)word();
    }
    return job;
}

static void run(uint32_t first)
{
    const siracusa_neureka_job_t job = read_job(first);
    siracusa_neureka_registers_t registers;
    bench = bench_new();
    const uint32_t count = word();
    bytes(bench_map(bench, L1(0), count), count);
    const uint32_t weights = word();
    const uint32_t weight_bytes = word();
    if (weights != 0) {
        bytes(bench_map(bench, weights, weight_bytes), weight_bytes);
    }
    siracusa_neureka_fill(&registers, &job);
    siracusa_neureka_program(&registers);
    const uint64_t start = bench->now;
    const uint64_t cycles = htvm_soc_next_event(bench->soc, start) - start;
    bench_finish(bench);
    if (htvm_soc_error(bench->soc) != NULL) {
        fprintf(stderr, "%s\n", htvm_soc_error(bench->soc));
        exit(1);
    }
    fwrite(registers.value, sizeof registers.value, 1, stdout);
    fwrite(&cycles, sizeof cycles, 1, stdout);
    fwrite(bench->l1, 1, count, stdout);
    bench_free(bench);
}

int main(void)
{
    uint32_t first;
    while (fread(&first, sizeof first, 1, stdin) == 1) {
        run(first);
    }
    return 0;
}
