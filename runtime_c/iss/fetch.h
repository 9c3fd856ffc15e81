/* From memory to decoded instructions, for the core that is alone. */
#ifndef HTVM_ISS_FETCH_H
#define HTVM_ISS_FETCH_H

#include "bus.h"

/* Decodes what is at `offset`; OP_END_OF_RAM if the RAM ends before the instruction does. */
insn_t htvm_iss_decode_at(const ram_t *ram, uint32_t offset);

/* Fills an entry of the decode cache, with the cycles that are known by then. */
void htvm_iss_decode_in_place(ram_t *ram, insn_t *insn);

static inline uint32_t address_of(const ram_t *ram, const insn_t *insn)
{
    return ram->base + 2u * (uint32_t)(insn - ram->insns);
}

/* Whether fetching an instruction from here after a redirection takes two words. */
static inline bool straddles(const ram_t *ram, uint32_t addr)
{
    const uint32_t offset = addr - ram->base;
    return addr % 4 != 0 && offset < ram->size &&
           insn_is_long((uint16_t)get16(ram->bytes + offset));
}

#endif
