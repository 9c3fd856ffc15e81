/* Why a run stopped before its end, in words. */
#include "iss.h"

#include <inttypes.h>
#include <stdio.h>

bool htvm_iss_stack_write(iss_t *iss, uint32_t sp)
{
    if (iss->has_stack && sp < iss->lowest_sp) {
        if (sp < iss->stack_low) {
            snprintf(iss->trap, sizeof iss->trap,
                     "stack overflow: the stack pointer falls to 0x%08" PRIx32
                     ", below the stack's end 0x%08" PRIx32,
                     sp, iss->stack_low);
            return false;
        }
        iss->lowest_sp = sp;
    }
    return true;
}

void htvm_iss_explain(iss_t *iss, const insn_t *insn)
{
    switch (insn->op) {
    case OP_ECALL:
        snprintf(iss->trap, sizeof iss->trap, "ecall, but there is no operating system");
        break;
    case OP_EBREAK:
        snprintf(iss->trap, sizeof iss->trap, "ebreak");
        break;
    case OP_WFI:
        snprintf(iss->trap, sizeof iss->trap, "wfi would wait for ever: there are no interrupts");
        break;
    case OP_END_OF_RAM:
        snprintf(iss->trap, sizeof iss->trap, "the program runs over the end of RAM");
        break;
    default:
        snprintf(iss->trap, sizeof iss->trap, "illegal instruction");
        break;
    }
}

void htvm_iss_locate(iss_t *iss, uint32_t pc)
{
    size_t used = 0;
    while (iss->trap[used] != '\0') {
        ++used;
    }
    const uint8_t *low = htvm_iss_bus_map(&iss->bus, pc, 2);
    if (low == NULL) {
        snprintf(iss->trap + used, sizeof iss->trap - used, " (pc 0x%08" PRIx32 ")", pc);
        return;
    }
    const uint8_t *whole = insn_is_long((uint16_t)get16(low)) ? htvm_iss_bus_map(&iss->bus, pc, 4)
                                                              : NULL;
    const int digits = whole != NULL ? 8 : 4;
    snprintf(iss->trap + used, sizeof iss->trap - used,
             " (pc 0x%08" PRIx32 ", instruction 0x%0*" PRIx32 ")", pc, digits,
             whole != NULL ? get32(whole) : get16(low));
}
