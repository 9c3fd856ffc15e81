/* dla: cycles and multiply-accumulates of an instruction; the same formulas as in
 * byoc_dory/soc/dla/tiles.py. */
#include "dla_core.h"

static uint64_t groups(uint64_t size, uint64_t width) { return (size + width - 1u) / width; }

static void count_move(const dla_design_t *design, dla_job_t *job)
{
    uint64_t rows = job->reg[DLA_ROWS], bytes = job->reg[DLA_BYTES];
    job->bytes = rows * bytes;
    if (job->reg[DLA_FAR_PITCH] == bytes && job->reg[DLA_LOCAL_PITCH] == bytes) {
        bytes *= rows;
        rows = 1;
    }
    job->cycles = design->dma_setup + rows * groups(bytes, design->dma_bytes);
}

void dla_count(const dla_design_t *design, dla_job_t *job)
{
    const uint32_t *reg = job->reg;
    const uint64_t pixels = (uint64_t)reg[DLA_OUT_HEIGHT] * reg[DLA_OUT_WIDTH];
    const uint64_t taps = (uint64_t)dla_high(reg[DLA_KERNEL]) * dla_low(reg[DLA_KERNEL]);
    const uint64_t outputs = reg[DLA_OUT_CHANNELS], channels = reg[DLA_CHANNELS];
    const uint64_t pes = (uint64_t)design->pes_in * design->pes_out;
    switch (job->opcode) {
    case DLA_OP_DMA_READ:
    case DLA_OP_DMA_WRITE: count_move(design, job); return;
    case DLA_OP_CONV:
    case DLA_OP_CONV_RELU:
    case DLA_OP_MAT_MUL: {
        const uint64_t positions = job->opcode == DLA_OP_MAT_MUL ? pixels : pixels * taps;
        job->macs = positions * channels * outputs;
        job->cycles =
            positions * groups(channels, design->pes_in) * groups(outputs, design->pes_out);
        return;
    }
    case DLA_OP_DEPTH_CONV:
        job->macs = pixels * taps * outputs;
        job->cycles = pixels * taps * groups(outputs, pes);
        return;
    case DLA_OP_POOL: job->cycles = pixels * taps * groups(outputs, pes); return;
    default: job->cycles = groups(pixels * outputs, pes); return;
    }
}
