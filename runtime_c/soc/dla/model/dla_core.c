/* dla: registers, decoding, transfers. */
#include "dla_core.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const REGISTER[] = {DLA_REGISTER_NAMES};

typedef struct {
    const char *name;
    uint32_t opcode, kind, flags, reads;
} dla_instruction_t;

#define ENTRY(name, opcode, kind, flags, reads) {#name, opcode, kind, flags, reads},
static const dla_instruction_t INSTRUCTION[] = {DLA_INSTRUCTIONS(ENTRY)};

bool dla_complain(dla_core_t *core, const char *format, ...)
{
    if (!core->complained) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(core->complaint, sizeof core->complaint, format, arguments);
        va_end(arguments);
        core->complained = true;
    }
    return false;
}

bool dla_core_init(dla_core_t *core, const dla_design_t *design, dla_far_t far)
{
    *core = (dla_core_t){.design = *design, .far = far};
    core->sram = calloc(design->sram, 1);
    core->written = calloc(design->sram, 1);
    if (core->sram == NULL || core->written == NULL) {
        dla_core_free(core);
        return false;
    }
    return true;
}

void dla_core_free(dla_core_t *core)
{
    free(core->sram);
    free(core->written);
    free(core->wide);
    core->sram = core->written = NULL;
    core->wide = NULL;
}

int16_t *dla_scratch(dla_core_t *core, uint64_t elements)
{
    if (elements > core->wide_elements) {
        int16_t *grown = realloc(core->wide, elements * sizeof *grown);
        if (grown == NULL) {
            dla_complain(core, "no memory on the simulating machine for %" PRIu64 " elements",
                         elements);
            return NULL;
        }
        core->wide = grown;
        core->wide_elements = elements;
    }
    return core->wide;
}

bool dla_core_write(dla_core_t *core, uint32_t reg, uint32_t value)
{
    if (reg >= DLA_CONFIG_REGISTERS) {
        return dla_complain(core, "register %" PRIu32 " is written, there are %d", reg,
                            (int)DLA_CONFIG_REGISTERS);
    }
    core->reg[reg] = value;
    core->known |= 1u << reg;
    return true;
}

_Static_assert(DLA_CONFIG_REGISTERS <= 32, "one bit for each register");

static const dla_instruction_t *find(uint32_t opcode)
{
    for (size_t i = 0; i < sizeof INSTRUCTION / sizeof *INSTRUCTION; ++i) {
        if (INSTRUCTION[i].opcode == opcode) {
            return &INSTRUCTION[i];
        }
    }
    return NULL;
}

/* Bytes from the first to behind the last of a transfer's rows. */
static uint64_t span(uint64_t rows, uint64_t bytes, uint64_t pitch)
{
    return (rows - 1u) * (rows > 1u ? pitch : 0) + bytes;
}

static bool check_move(dla_core_t *core, const dla_job_t *job)
{
    const uint64_t rows = job->reg[DLA_ROWS], bytes = job->reg[DLA_BYTES];
    const uint32_t local = job->reg[DLA_LOCAL], slot = job->reg[DLA_SLOT];
    if (rows == 0 || bytes == 0 || slot >= DLA_SLOTS) {
        return dla_complain(core, "%s: %" PRIu64 " rows of %" PRIu64 " B, slot %" PRIu32, job->name,
                            rows, bytes, slot);
    }
    if (rows > 1u && (job->reg[DLA_LOCAL_PITCH] < bytes || job->reg[DLA_FAR_PITCH] < bytes)) {
        return dla_complain(core, "%s: rows of %" PRIu64 " B overlap, %" PRIu32 " B and %" PRIu32
                                  " B apart",
                            job->name, bytes, job->reg[DLA_LOCAL_PITCH], job->reg[DLA_FAR_PITCH]);
    }
    const uint64_t near = span(rows, bytes, job->reg[DLA_LOCAL_PITCH]);
    if (near > core->design.sram || local > core->design.sram - near) {
        return dla_complain(core, "%s: SRAM 0x%" PRIx32 " (%" PRIu64 " B) leaves the SRAM of %" PRIu32
                                  " B",
                            job->name, local, near, core->design.sram);
    }
    const uint64_t far = span(rows, bytes, job->reg[DLA_FAR_PITCH]);
    if (core->far.find(core->far.ctx, slot, job->reg[DLA_OFFSET], far) == NULL) {
        return dla_complain(core, "%s: %s at 0x%" PRIx32 " of slot %" PRIu32 " (%" PRIu64
                                  " B) is not in system memory",
                            job->name, REGISTER[DLA_OFFSET], job->reg[DLA_OFFSET], slot, far);
    }
    if (job->opcode != DLA_OP_DMA_WRITE) {
        return true;
    }
    for (uint64_t row = 0; row < rows; ++row) {
        const uint64_t at = local + row * job->reg[DLA_LOCAL_PITCH];
        const uint8_t *hole = memchr(core->written + at, 0, bytes);
        if (hole != NULL) {
            return dla_complain(core, "%s reads SRAM 0x%" PRIx64 ", which nobody wrote", job->name,
                                (uint64_t)(hole - core->written));
        }
    }
    return true;
}

static bool move(dla_core_t *core, const dla_job_t *job)
{
    const uint64_t rows = job->reg[DLA_ROWS], bytes = job->reg[DLA_BYTES];
    const uint64_t far_pitch = job->reg[DLA_FAR_PITCH], pitch = job->reg[DLA_LOCAL_PITCH];
    const uint64_t size = span(rows, bytes, far_pitch);
    uint8_t *far = core->far.find(core->far.ctx, job->reg[DLA_SLOT], job->reg[DLA_OFFSET], size);
    uint8_t *near = core->sram + job->reg[DLA_LOCAL];
    if (far == NULL) {
        return dla_complain(core, "%s: system memory is gone", job->name);
    }
    for (uint64_t row = 0; row < rows; ++row) {
        if (job->opcode == DLA_OP_DMA_READ) {
            memcpy(near + row * pitch, far + row * far_pitch, bytes);
            memset(core->written + job->reg[DLA_LOCAL] + row * pitch, 1, bytes);
        } else {
            memcpy(far + row * far_pitch, near + row * pitch, bytes);
        }
    }
    return true;
}

/* The registers that an instruction reads with these flags. */
static uint32_t registers(const dla_core_t *core, const dla_instruction_t *known, uint32_t flags)
{
    uint32_t reads = known->reads;
    if ((flags & DLA_FLAG_REQUANT) != 0 || known->opcode == DLA_OP_CONV_RELU) {
        reads |= 1u << DLA_SHIFT | 1u << DLA_CLIP;
    }
    if ((flags & DLA_FLAG_BIAS) != 0) {
        reads |= 1u << DLA_BIAS;
    }
    if (core->reg[DLA_ROWS] <= 1u) { /* a single row is not apart from any other */
        reads &= ~(1u << DLA_FAR_PITCH | 1u << DLA_LOCAL_PITCH);
    }
    return reads;
}

static bool check_registers(dla_core_t *core, const dla_instruction_t *known, uint32_t flags)
{
    const uint32_t missing = registers(core, known, flags) & ~core->known;
    for (uint32_t reg = 0; reg < DLA_CONFIG_REGISTERS; ++reg) {
        if ((missing >> reg & 1u) != 0) {
            return dla_complain(core, "%s reads register %s, which nobody wrote", known->name,
                                REGISTER[reg]);
        }
    }
    return true;
}

bool dla_core_issue(dla_core_t *core, uint32_t word, dla_job_t *job)
{
    const dla_instruction_t *known = find(word >> 24);
    if (core->complained) {
        return false;
    }
    if (known == NULL) {
        return dla_complain(core, "there is no instruction 0x%02" PRIx32, word >> 24);
    }
    const uint32_t flags = word & 0xffffffu;
    if ((flags & ~known->flags) != 0) {
        return dla_complain(core, "%s has no flags 0x%" PRIx32, known->name, flags & ~known->flags);
    }
    if (!check_registers(core, known, flags)) {
        return false;
    }
    *job = (dla_job_t){
        .name = known->name, .opcode = known->opcode, .flags = flags, .kind = known->kind};
    memcpy(job->reg, core->reg, sizeof job->reg);
    const bool right = known->kind == DLA_KIND_DMA ? check_move(core, job) : dla_check(core, job);
    if (right) {
        dla_count(&core->design, job);
    }
    return right;
}

static void mark(dla_core_t *core, const dla_view_t *view)
{
    const uint64_t size = (uint64_t)view->channels * view->size;
    for (uint32_t y = 0; y < view->height; ++y) {
        uint8_t *row = core->written + view->at + (uint64_t)y * view->row;
        if (size == view->pixel) {
            memset(row, 1, size * view->width);
            continue;
        }
        for (uint32_t x = 0; x < view->width; ++x) {
            memset(row + (uint64_t)x * view->pixel, 1, size);
        }
    }
}

bool dla_core_execute(dla_core_t *core, const dla_job_t *job)
{
    bool done = true;
    if (job->kind == DLA_KIND_DMA) {
        return move(core, job);
    }
    if (job->opcode == DLA_OP_DEPTH_CONV) {
        done = dla_convolve_depthwise(core, job);
    } else if (dla_is_product(job->opcode)) {
        done = dla_convolve(core, job);
    } else if (job->opcode == DLA_OP_POOL) {
        dla_pool(core, job);
    } else {
        dla_elements(core, job);
    }
    const dla_view_t result = dla_result(job);
    mark(core, &result);
    return done;
}
