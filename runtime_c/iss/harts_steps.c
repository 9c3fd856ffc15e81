/* What the loop of harts_execute.c leaves to functions: decoding, checks, messages. */
#include "harts.h"

#ifdef HTVM_ISS_HARTS
#include <inttypes.h>
#include <stdio.h>

/* Registers that an instruction does not use become those which are always ready. */
void htvm_harts_decode(ram_t *ram, insn_t *insn)
{
    const size_t index = (size_t)(insn - ram->insns);
    const uint32_t offset = 2u * (uint32_t)index;
    const uint32_t low = get16(ram->bytes + offset);

    if (offset + 4 > ram->size) {
        *insn = (insn_t){.op = OP_END_OF_RAM, .rd = REG_SINK};
        return;
    }
    htvm_iss_decode(insn, (uint16_t)low, (uint16_t)get16(ram->bytes + offset + 2),
                    ram->base + offset);
    if (!insn_is_long((uint16_t)low)) {
        *insn = (insn_t){.op = OP_ILLEGAL, .rd = REG_SINK};
    }
    if (index >= ram->decoded) {
        ram->decoded = index + 1;
    }
    if (insn_is_store(insn) || insn_is_branch(insn)) {
        insn->rd = REG_SINK;
    }
    if ((insn->uses & USES_RS1) == 0 && !insn_is_csr(insn)) { /* a CSR's operand may be there */
        insn->rs1 = 0;
    }
    if ((insn->uses & USES_RS2) == 0) {
        insn->rs2 = 0;
    }
}

bool htvm_harts_stack(iss_t *iss, const hart_t *hart, uint32_t sp)
{
    if (sp < hart->stack_low) {
        snprintf(iss->trap, sizeof iss->trap,
                 "stack overflow: the stack pointer falls to 0x%08" PRIx32
                 ", below the stack's end 0x%08" PRIx32,
                 sp, hart->stack_low);
        return false;
    }
    if (hart->number == 0 && iss->has_stack && sp < iss->lowest_sp) {
        iss->lowest_sp = sp;
    }
    return true;
}

void htvm_harts_misaligned(iss_t *iss, uint32_t addr, uint32_t size)
{
    snprintf(iss->trap, sizeof iss->trap,
             "access to %" PRIu32 " bytes at 0x%08" PRIx32 " is misaligned", size, addr);
}

void htvm_harts_locate(harts_t *all, const hart_t *hart, uint32_t pc)
{
    iss_t *iss = all->iss;
    htvm_iss_locate(iss, pc);
    size_t used = 0;
    while (iss->trap[used] != '\0') {
        ++used;
    }
    if (all->count > 1) {
        snprintf(iss->trap + used, sizeof iss->trap - used, " on hart %" PRIu32, hart->number);
    }
    iss->pc = pc;
}

#endif
