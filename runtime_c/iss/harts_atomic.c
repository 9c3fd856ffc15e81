/* Atomic instructions.  They need no locks: every access to memory has its turn. */
#include "harts.h"

#ifdef HTVM_CORE_SCOREBOARD
#include "arithmetic.h"

static void reserve(harts_t *all, hart_t *hart, uint32_t addr)
{
    all->reservations += hart->core.reserved ? 0 : 1;
    hart->core.reserved = true;
    hart->core.reservation = addr;
}

static void drop(harts_t *all, hart_t *hart)
{
    all->reservations -= hart->core.reserved ? 1 : 0;
    hart->core.reserved = false;
}

void htvm_harts_stored(harts_t *all, const hart_t *hart, uint32_t addr)
{
    for (uint32_t i = 0; i < all->count; ++i) {
        hart_t *other = &all->hart[i];
        if (other != hart && other->core.reserved && other->core.reservation == (addr & ~3u)) {
            drop(all, other);
        }
    }
}

static uint32_t modified(op_t op, uint32_t old, uint32_t operand)
{
    switch (op) {
    case OP_AMOADD: return old + operand;
    case OP_AMOXOR: return old ^ operand;
    case OP_AMOAND: return old & operand;
    case OP_AMOOR: return old | operand;
    case OP_AMOMIN: return as_signed(operand) < as_signed(old) ? operand : old;
    case OP_AMOMAX: return as_signed(operand) > as_signed(old) ? operand : old;
    case OP_AMOMINU: return operand < old ? operand : old;
    case OP_AMOMAXU: return operand > old ? operand : old;
    default: return operand; /* amoswap, sc */
    }
}

uint32_t htvm_harts_atomic(harts_t *all, hart_t *hart, const insn_t *insn, uint32_t addr,
                           uint8_t *p)
{
    const uint32_t old = get32(p);
    if (insn->op == OP_LR) {
        reserve(all, hart, addr);
        return old;
    }
    if (insn->op == OP_SC) {
        const bool holds = hart->core.reserved && hart->core.reservation == addr;
        drop(all, hart);
        if (!holds) {
            return 1;
        }
    }
    put32(p, modified((op_t)insn->op, old, hart->x[insn->rs2]));
    htvm_harts_stored(all, hart, addr);
    return insn->op == OP_SC ? 0 : old;
}

#endif
