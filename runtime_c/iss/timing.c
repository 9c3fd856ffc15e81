#include "timing.h"

#include "bits.h"

#include <stddef.h>

bool htvm_iss_csr_flushes(uint32_t csr)
{
    switch (csr) {
    case 0x300: /* mstatus */
    case 0x305: /* mtvec */
    case 0x341: /* mepc */
    case 0x342: /* mcause */
    case 0x320: /* mcountinhibit */
        return true;
    default:
        return (csr >= 0x323 && csr <= 0x33f) || /* mhpmevent */
               (csr & 0xf60u) == 0xb00u ||       /* mcycle, minstret, mhpmcounter, and ...h */
               (csr & 0xf60u) == 0xc00u;         /* their read-only mirrors */
    }
}

static bool reads(const insn_t *insn, uint8_t reg)
{
    return ((insn->uses & USES_RS1) != 0 && insn->rs1 == reg) ||
           ((insn->uses & USES_RS2) != 0 && insn->rs2 == reg) ||
           ((insn->uses & USES_RD) != 0 && insn->rd == reg);
}

uint8_t htvm_iss_static_cycles(const insn_t *insn, const insn_t *next)
{
    uint32_t cycles = 1;

    if (insn->op >= OP_MULH && insn->op <= OP_MULHU) {
        cycles += MULH_EXTRA;
    } else if (insn_is_csr(insn)) {
        cycles += htvm_iss_csr_flushes((uint32_t)insn->imm) ? CSR_EXTRA : 0;
    } else if (insn->op == OP_FENCE || insn->op == OP_FENCE_I) {
        cycles += FENCE_EXTRA;
    } else if (insn->op == OP_WFI) {
        cycles += WFI_EXTRA;
    } else if (insn_is_load(insn) && !insn_is_jump(next)) {
        /* A jump looks after itself: see htvm_iss_jump_cycles(). */
        if (reads(next, insn->rd) || insn_writes_from_alu(next, insn->rd)) {
            cycles += 1;
        }
    }
    return (uint8_t)cycles;
}

uint32_t htvm_iss_division_extra(uint32_t divisor, bool is_signed)
{
    if (is_signed && (divisor & 0x80000000u) != 0) {
        return 2 + leading_zeros(~divisor) - 1;
    }
    return 2 + leading_zeros(divisor);
}

/* The cycle, counted from the arrival of the jalr in decode, in which its base can be read. */
static uint32_t base_ready(const insn_t *jump, const pipeline_t *pipe)
{
    const insn_t *last = pipe->last;
    const insn_t *second = pipe->second;

    if (jump->op != OP_JALR || jump->rs1 == 0 || last == NULL) {
        return 0;
    }
    if (insn_is_csr(last) && htvm_iss_csr_flushes((uint32_t)last->imm)) {
        return 0; /* the pipeline is empty behind it */
    }
    if (last->rd == jump->rs1 && insn_is_load(last)) {
        return pipe->busy + 1;
    }
    if (insn_writes_from_alu(last, jump->rs1)) {
        return pipe->busy;
    }
    /* Unless the last one had to wait for the load, the load is now in write-back. */
    if (second != NULL && insn_is_load(second) && second->rd == jump->rs1 &&
        htvm_iss_static_cycles(second, last) == 1) {
        return 1;
    }
    return 0;
}

jump_time_t htvm_iss_jump_cycles(const insn_t *jump, const pipeline_t *pipe, bool target_straddles)
{
    const uint32_t execute_free = pipe->busy - 1;
    const uint32_t redirect = base_ready(jump, pipe);
    const bool overwrites = pipe->last != NULL && insn_is_load(pipe->last) &&
                            pipe->last->rd == jump->rd; /* waits until the load has left */
    const uint32_t vacant = execute_free + (overwrites ? 1 : 0);
    const uint32_t leaves = redirect > vacant ? redirect : vacant;
    uint32_t arrives = redirect + 2;

    if (arrives < leaves + 1) {
        arrives = leaves + 1;
    }
    /* The second word is asked for only when decode can take the first: this never hides. */
    if (target_straddles) {
        arrives += 1;
    }
    /* jalr that overwrites its own base: decode, still holding it while there is nothing new,
     * sees the base being written and waits once more. */
    if (jump->op == OP_JALR && jump->rd == jump->rs1 && arrives > leaves + 1) {
        arrives += 1;
    }
    jump_time_t time;
    time.hidden = arrives == leaves + 1;
    time.cycles = arrives - execute_free;
    return time;
}
