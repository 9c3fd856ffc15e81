/* The accelerator dla: random instructions never leave SRAM or system memory, whatever its
 * registers hold, and those that it accepts are executed.  To be run with sanitizers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dla_core.h"

enum { SRAM = 2048, SYSTEM = 4096, ROUNDS = 60000 };

static uint8_t system_memory[DLA_SLOTS][SYSTEM];

static uint8_t *find(void *ctx, uint32_t slot, uint64_t offset, uint64_t bytes)
{
    (void)ctx;
    if (bytes > SYSTEM || offset > SYSTEM - bytes) {
        return NULL;
    }
    return system_memory[slot] + offset;
}

static uint32_t state = 12345;

static uint32_t draw(uint32_t limit)
{
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % limit;
}

/* Mostly small values that may make sense, sometimes any. */
static uint32_t value_for(uint32_t reg)
{
    static const uint32_t odd[] = {0, 1, 0x7fffffffu, 0x80000000u, 0xffffffffu, SRAM, SRAM - 1u};
    if (draw(60) == 0) {
        return odd[draw(sizeof odd / sizeof *odd)];
    }
    switch (reg) {
    case DLA_KERNEL:
    case DLA_STRIDE: return (1u + draw(3)) << 16 | (1u + draw(3));
    case DLA_PAD: return draw(3) << 16 | draw(3);
    case DLA_CLIP: return (uint32_t)(0xffffu & -(uint32_t)draw(129)) << 16 | draw(128);
    case DLA_SHIFT: return draw(32);
    case DLA_ALPHA: return draw(8);
    case DLA_SLOT: return draw(DLA_SLOTS);
    case DLA_IN0:
    case DLA_IN1:
    case DLA_WEIGHTS:
    case DLA_BIAS:
    case DLA_OUT:
    case DLA_LOCAL: return 4u * draw(SRAM / 4u);
    case DLA_OFFSET: return draw(SYSTEM);
    case DLA_BYTES: return 1u + draw(32);
    case DLA_IN_ROW:
    case DLA_IN1_ROW:
    case DLA_OUT_ROW: return 4u * (1u + draw(40));
    case DLA_IN_PIXEL:
    case DLA_IN1_PIXEL:
    case DLA_OUT_PIXEL: return 4u * (1u + draw(6));
    default: return 1u + draw(6);
    }
}

#define OPCODE(name, opcode, kind, flags, reads) {opcode, flags},
static const struct {
    uint32_t opcode, flags;
} INSTRUCTION[] = {DLA_INSTRUCTIONS(OPCODE)};
enum { INSTRUCTIONS = sizeof INSTRUCTION / sizeof *INSTRUCTION };

/* Executes one random instruction; whether it was accepted. */
static bool step(dla_core_t *core, uint32_t number)
{
    dla_job_t job;
    for (uint32_t reg = 0; reg < DLA_CONFIG_REGISTERS; ++reg) {
        if (!dla_core_write(core, reg, value_for(reg))) {
            return false;
        }
    }
    const uint32_t flags = draw(8) & INSTRUCTION[number].flags;
    const uint32_t word = INSTRUCTION[number].opcode << 24 | flags;
    if (!dla_core_issue(core, word, &job)) {
        core->complained = false;
        return false;
    }
    if (job.cycles == 0 || !dla_core_execute(core, &job)) {
        printf("%s was accepted and then failed\n", job.name);
        exit(1);
    }
    return true;
}

static int refused(dla_core_t *core, bool accepted, const char *text)
{
    if (accepted || strstr(core->complaint, text) == NULL) {
        printf("not refused with '%s': %s\n", text, core->complaint);
        return 1;
    }
    core->complained = false;
    return 0;
}

int main(void)
{
    const dla_design_t design = {2, 3, SRAM, 4, 7};
    uint32_t accepted[INSTRUCTIONS] = {0};
    dla_core_t core;
    dla_job_t job;
    int failed = 0;
    if (!dla_core_init(&core, &design, (dla_far_t){.find = find})) {
        return 1;
    }
    failed += refused(&core, dla_core_write(&core, DLA_CONFIG_REGISTERS, 0), "is written, there are");
    failed += refused(&core, dla_core_issue(&core, 0xff000000u, &job), "no instruction 0xff");
    failed += refused(&core, dla_core_issue(&core, (uint32_t)DLA_OP_POOL << 24 | 1u, &job),
                      "has no flags");
    failed += refused(&core, dla_core_issue(&core, (uint32_t)DLA_OP_DMA_READ << 24, &job),
                      "reads register SLOT, which nobody wrote");
    for (uint32_t round = 0; round < ROUNDS; ++round) {
        const uint32_t number = draw(INSTRUCTIONS);
        accepted[number] += step(&core, number);
    }
    for (uint32_t number = 0; number < INSTRUCTIONS; ++number) {
        if (accepted[number] < 20) {
            printf("opcode 0x%02x was accepted %u times only\n", (unsigned)INSTRUCTION[number].opcode,
                   (unsigned)accepted[number]);
            failed = 1;
        }
    }
    dla_core_free(&core);
    return failed;
}
