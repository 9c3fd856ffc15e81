/* Control and status registers, as far as a bare-metal program without interrupts meets them. */
#include "corev.h"
#include "iss.h"
#include "timing.h"

enum {
    INHIBIT_CYCLE = 1u << 0,
    INHIBIT_INSTRET = 1u << 2,
    INHIBIT_HPM3 = 1u << 3, /* the core has one event counter; here it counts nothing */
    INHIBIT_ALL = INHIBIT_CYCLE | INHIBIT_INSTRET | INHIBIT_HPM3
};

void htvm_iss_init(iss_t *iss)
{
    *iss = (iss_t){0};
    iss->max_cycles = UINT64_MAX;
    iss->csrs = htvm_iss_csrs(0, HAS_COREV ? 0x40801104u : 0x40001104u); /* misa: RV32IMC, X */
}

csrs_t htvm_iss_csrs(uint32_t hart, uint32_t misa)
{
    return (csrs_t){.mhartid = hart, .misa = misa, .mstatus = 0x1800};
}

static uint64_t read_mcycle(const csrs_t *csrs, counts_t now)
{
    return csrs->mcountinhibit & INHIBIT_CYCLE ? csrs->mcycle_frozen
                                               : now.cycles + csrs->mcycle_offset;
}

static uint64_t read_minstret(const csrs_t *csrs, counts_t now)
{
    return csrs->mcountinhibit & INHIBIT_INSTRET ? csrs->minstret_frozen
                                                 : now.retired + csrs->minstret_offset;
}

static void write_mcycle(csrs_t *csrs, counts_t now, uint64_t value)
{
    csrs->mcycle_frozen = value;
    csrs->mcycle_offset = value - now.cycles;
}

static void write_minstret(csrs_t *csrs, counts_t now, uint64_t value)
{
    csrs->minstret_frozen = value;
    csrs->minstret_offset = value - now.retired;
}

static void write_mcountinhibit(csrs_t *csrs, counts_t now, uint32_t value)
{
    const uint64_t mcycle = read_mcycle(csrs, now);
    const uint64_t minstret = read_minstret(csrs, now);
    csrs->mcountinhibit = value & INHIBIT_ALL;
    write_mcycle(csrs, now, mcycle);
    write_minstret(csrs, now, minstret);
}

static uint64_t with_low(uint64_t old, uint32_t low) { return (old & ~0xffffffffull) | low; }
static uint64_t with_high(uint64_t old, uint32_t high)
{
    return (old & 0xffffffffull) | (uint64_t)high << 32;
}

static bool is_event_counter(uint32_t csr)
{
    const uint32_t number = csr & 0x1fu;
    return number >= 3 && ((csr & 0xf60u) == 0xb00u || (csr & 0xf60u) == 0xc00u ||
                           (csr & 0xfe0u) == 0x320u);
}

/* The registers of hardware loops, and what comes with them. */
static bool read_corev_csr(const csrs_t *csrs, uint32_t csr, uint32_t *value)
{
    const loop_t *loop = &csrs->loops[csr >> 2 & 1u];
    switch (csr) {
    case 0xcc0: case 0xcc4: *value = loop->start; return true;
    case 0xcc1: case 0xcc5: *value = loop->end; return true;
    case 0xcc2: case 0xcc6: *value = loop->count; return true;
    case 0xcd0: *value = csrs->mhartid; return true; /* uhartid */
    case 0xcd1: *value = 3; return true;             /* privlv: machine mode */
    default: return false;
    }
}

static bool read_csr(const csrs_t *csrs, counts_t now, uint32_t csr, uint32_t *value)
{
    switch (csr) {
    case 0x300: *value = csrs->mstatus; return true;
    case 0x301: *value = csrs->misa; return true;
    case 0x304: *value = csrs->mie; return true;
    case 0x305: *value = csrs->mtvec; return true;
    case 0x320: *value = csrs->mcountinhibit; return true;
    case 0x340: *value = csrs->mscratch; return true;
    case 0x341: *value = csrs->mepc; return true;
    case 0x342: *value = csrs->mcause; return true;
    case 0xf14: *value = csrs->mhartid; return true;
    case 0x343: /* mtval */
    case 0x344: /* mip */
    case 0xf11: case 0xf12: case 0xf13: /* vendor, architecture, implementation */
        *value = 0;
        return true;
    case 0xb00: case 0xc00: *value = (uint32_t)read_mcycle(csrs, now); return true;
    case 0xb80: case 0xc80: *value = (uint32_t)(read_mcycle(csrs, now) >> 32); return true;
    case 0xb02: case 0xc02: *value = (uint32_t)read_minstret(csrs, now); return true;
    case 0xb82: case 0xc82: *value = (uint32_t)(read_minstret(csrs, now) >> 32); return true;
    default:
        if (HAS_COREV && read_corev_csr(csrs, csr, value)) {
            return true;
        }
        *value = 0;
        return is_event_counter(csr);
    }
}

static void write_csr(csrs_t *csrs, counts_t now, uint32_t csr, uint32_t value)
{
    switch (csr) {
    case 0x300: csrs->mstatus = (value & 0x88u) | 0x1800u; break;
    case 0x304: csrs->mie = value & 0xffff0888u; break;
    case 0x305: csrs->mtvec = value & 0xffffff01u; break;
    case 0x320: write_mcountinhibit(csrs, now, value); break;
    case 0x340: csrs->mscratch = value; break;
    case 0x341: csrs->mepc = value & ~1u; break;
    case 0x342: csrs->mcause = value & 0x8000001fu; break;
    case 0xb00: write_mcycle(csrs, now, with_low(read_mcycle(csrs, now), value)); break;
    case 0xb80: write_mcycle(csrs, now, with_high(read_mcycle(csrs, now), value)); break;
    case 0xb02: write_minstret(csrs, now, with_low(read_minstret(csrs, now), value)); break;
    case 0xb82: write_minstret(csrs, now, with_high(read_minstret(csrs, now), value)); break;
    default: break; /* misa, mtval, mip and the event counters ignore writes */
    }
}

bool htvm_iss_csr_access(csrs_t *csrs, counts_t now, const insn_t *insn, const uint32_t *x,
                         uint32_t *result)
{
    const uint32_t csr = (uint32_t)insn->imm;
    const bool immediate = insn->op >= OP_CSRRWI;
    const uint32_t operand = immediate ? insn->rs1 : x[insn->rs1];
    const bool exchanges = insn->op == OP_CSRRW || insn->op == OP_CSRRWI;
    const bool sets = insn->op == OP_CSRRS || insn->op == OP_CSRRSI;
    const bool writes = exchanges || insn->rs1 != 0;
    uint32_t old;

    if (!read_csr(csrs, now, csr, &old) || (writes && csr >= 0xc00u)) {
        return false;
    }
    if (writes) {
        write_csr(csrs, now, csr, exchanges ? operand : sets ? old | operand : old & ~operand);
    }
    *result = old;
    return true;
}

bool htvm_iss_csr(iss_t *iss, const insn_t *insn, uint32_t *result)
{
    const counts_t now = {iss->cycles, iss->retired};
    return htvm_iss_csr_access(&iss->csrs, now, insn, iss->x, result);
}
