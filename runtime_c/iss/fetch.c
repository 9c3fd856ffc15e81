#include "fetch.h"
#include "timing.h"

insn_t htvm_iss_decode_at(const ram_t *ram, uint32_t offset)
{
    insn_t insn = {.op = OP_END_OF_RAM};
    if (offset < ram->size) {
        const uint16_t low = (uint16_t)get16(ram->bytes + offset);
        const bool whole = !insn_is_long(low) || offset + 4 <= ram->size;
        if (whole) {
            const uint32_t high = insn_is_long(low) ? get16(ram->bytes + offset + 2) : 0;
            htvm_iss_decode(&insn, low, (uint16_t)high, ram->base + offset);
        }
    }
    return insn;
}

void htvm_iss_decode_in_place(ram_t *ram, insn_t *insn)
{
    const size_t index = (size_t)(insn - ram->insns);
    const uint32_t offset = 2u * (uint32_t)index;
    *insn = htvm_iss_decode_at(ram, offset);
    const insn_t next = htvm_iss_decode_at(ram, offset + 2u * insn->halfwords);
    insn->cycles = htvm_iss_static_cycles(insn, &next);
    if (index >= ram->decoded) {
        ram->decoded = index + 1;
    }
    if (insn_is_branch(insn)) {
        const bool two = straddles(ram, ram->base + offset + (uint32_t)insn->imm);
        insn->redirect = (uint8_t)(BRANCH_EXTRA + (two ? 1 : 0));
    }
}
