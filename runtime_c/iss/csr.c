/* Control and status registers, as far as a bare-metal program without interrupts meets them. */
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
    iss->mstatus = 0x1800;
}

static uint64_t read_mcycle(const iss_t *iss)
{
    return iss->mcountinhibit & INHIBIT_CYCLE ? iss->mcycle_frozen
                                              : iss->cycles + iss->mcycle_offset;
}

static uint64_t read_minstret(const iss_t *iss)
{
    return iss->mcountinhibit & INHIBIT_INSTRET ? iss->minstret_frozen
                                                : iss->retired + iss->minstret_offset;
}

static void write_mcycle(iss_t *iss, uint64_t value)
{
    iss->mcycle_frozen = value;
    iss->mcycle_offset = value - iss->cycles;
}

static void write_minstret(iss_t *iss, uint64_t value)
{
    iss->minstret_frozen = value;
    iss->minstret_offset = value - iss->retired;
}

static void write_mcountinhibit(iss_t *iss, uint32_t value)
{
    const uint64_t mcycle = read_mcycle(iss);
    const uint64_t minstret = read_minstret(iss);
    iss->mcountinhibit = value & INHIBIT_ALL;
    write_mcycle(iss, mcycle);
    write_minstret(iss, minstret);
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

static bool read_csr(const iss_t *iss, uint32_t csr, uint32_t *value)
{
    switch (csr) {
    case 0x300: *value = iss->mstatus; return true;
    case 0x301: *value = 0x40001104u; return true; /* misa: RV32IMC */
    case 0x304: *value = iss->mie; return true;
    case 0x305: *value = iss->mtvec; return true;
    case 0x320: *value = iss->mcountinhibit; return true;
    case 0x340: *value = iss->mscratch; return true;
    case 0x341: *value = iss->mepc; return true;
    case 0x342: *value = iss->mcause; return true;
    case 0x343: /* mtval */
    case 0x344: /* mip */
    case 0xf11: case 0xf12: case 0xf13: case 0xf14: /* vendor, architecture, implementation, hart */
        *value = 0;
        return true;
    case 0xb00: case 0xc00: *value = (uint32_t)read_mcycle(iss); return true;
    case 0xb80: case 0xc80: *value = (uint32_t)(read_mcycle(iss) >> 32); return true;
    case 0xb02: case 0xc02: *value = (uint32_t)read_minstret(iss); return true;
    case 0xb82: case 0xc82: *value = (uint32_t)(read_minstret(iss) >> 32); return true;
    default:
        *value = 0;
        return is_event_counter(csr);
    }
}

static void write_csr(iss_t *iss, uint32_t csr, uint32_t value)
{
    switch (csr) {
    case 0x300: iss->mstatus = (value & 0x88u) | 0x1800u; break;
    case 0x304: iss->mie = value & 0xffff0888u; break;
    case 0x305: iss->mtvec = value & 0xffffff01u; break;
    case 0x320: write_mcountinhibit(iss, value); break;
    case 0x340: iss->mscratch = value; break;
    case 0x341: iss->mepc = value & ~1u; break;
    case 0x342: iss->mcause = value & 0x8000001fu; break;
    case 0xb00: write_mcycle(iss, with_low(read_mcycle(iss), value)); break;
    case 0xb80: write_mcycle(iss, with_high(read_mcycle(iss), value)); break;
    case 0xb02: write_minstret(iss, with_low(read_minstret(iss), value)); break;
    case 0xb82: write_minstret(iss, with_high(read_minstret(iss), value)); break;
    default: break; /* misa, mtval, mip and the event counters ignore writes */
    }
}

bool htvm_iss_csr(iss_t *iss, const insn_t *insn, uint32_t *result)
{
    const uint32_t csr = (uint32_t)insn->imm;
    const bool immediate = insn->op >= OP_CSRRWI;
    const uint32_t operand = immediate ? insn->rs1 : iss->x[insn->rs1];
    const bool exchanges = insn->op == OP_CSRRW || insn->op == OP_CSRRWI;
    const bool sets = insn->op == OP_CSRRS || insn->op == OP_CSRRSI;
    const bool writes = exchanges || insn->rs1 != 0;
    uint32_t old;

    if (!read_csr(iss, csr, &old) || (writes && csr >= 0xc00u)) {
        return false;
    }
    if (writes) {
        write_csr(iss, csr, exchanges ? operand : sets ? old | operand : old & ~operand);
    }
    *result = old;
    return true;
}
