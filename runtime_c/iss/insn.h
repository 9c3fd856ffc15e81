/* Decoded instructions of RV32IMAC, of those on bits (bits.h), and of the PULP extensions in CORE-V
 * encoding (corev.h). */
#ifndef HTVM_ISS_INSN_H
#define HTVM_ISS_INSN_H

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    OP_UNDECODED = 0, /* what a zeroed decode cache holds */
    OP_ILLEGAL,
    OP_END_OF_RAM, /* the place after the last instruction of a RAM */
    OP_CONST,      /* lui, auipc: imm is the result */
    OP_JAL,
    OP_JALR,
    OP_BEQ,
    OP_BNE,
    OP_BLT,
    OP_BGE,
    OP_BLTU,
    OP_BGEU,
    OP_BEQIMM, /* CORE-V: rs2 is a signed constant */
    OP_BNEIMM,
    OP_LB,
    OP_LH,
    OP_LW,
    OP_LBU,
    OP_LHU,
    OP_LB_INDEXED, /* CORE-V: from rs1 + rs2 */
    OP_LH_INDEXED,
    OP_LW_INDEXED,
    OP_LBU_INDEXED,
    OP_LHU_INDEXED,
    OP_LB_POST, /* CORE-V: from rs1, to which imm + rs2 is added afterwards */
    OP_LH_POST,
    OP_LW_POST,
    OP_LBU_POST,
    OP_LHU_POST,
    OP_SB_POST, /* CORE-V: to rs1, to which imm + rd is added afterwards; here rd 0 is x0 */
    OP_SH_POST,
    OP_SW_POST,
    OP_SB_INDEXED, /* CORE-V: to rs1 + rd */
    OP_SH_INDEXED,
    OP_SW_INDEXED,
    OP_SB,
    OP_SH,
    OP_SW,
    OP_ADDI,
    OP_SLTI,
    OP_SLTIU,
    OP_XORI,
    OP_ORI,
    OP_ANDI,
    OP_SLLI,
    OP_SRLI,
    OP_SRAI,
    OP_ADD,
    OP_SUB,
    OP_SLL,
    OP_SLT,
    OP_SLTU,
    OP_XOR,
    OP_SRL,
    OP_SRA,
    OP_OR,
    OP_AND,
    OP_SH1ADD, /* Zba, Zbb, Zbs: bits.h */
    OP_SH2ADD,
    OP_SH3ADD,
    OP_ANDN,
    OP_ORN,
    OP_XNOR,
    OP_MIN,
    OP_MINU,
    OP_MAX,
    OP_MAXU,
    OP_ROL,
    OP_ROR,
    OP_RORI,
    OP_CLZ,
    OP_CTZ,
    OP_CPOP,
    OP_SEXT_B,
    OP_SEXT_H,
    OP_ZEXT_H,
    OP_ORC_B,
    OP_REV8,
    OP_BCLR,
    OP_BEXT,
    OP_BINV,
    OP_BSET,
    OP_BCLRI,
    OP_BEXTI,
    OP_BINVI,
    OP_BSETI,
    OP_ADDI_SP, /* addi, add, sub writing the stack pointer: its lowest value is recorded */
    OP_ADD_SP,
    OP_SUB_SP,
    OP_COREV_ALU, /* CORE-V: `function` is one of corev_operations.h */
    OP_COREV_MUL16,
    OP_COREV_SIMD,
    OP_COREV_SIMD_SCALAR, /* the second operand is the lowest lane of rs2 in every lane */
    OP_COREV_SIMD_CONSTANT, /* it is imm */
    OP_MUL,
    OP_MULH,
    OP_MULHSU,
    OP_MULHU,
    OP_DIV,
    OP_DIVU,
    OP_REM,
    OP_REMU,
    OP_FENCE,
    OP_FENCE_I,
    OP_ECALL,
    OP_EBREAK,
    OP_WFI,
    OP_COREV_LOOP,     /* CORE-V: `function` is one of LOOP_*, rd the loop */
    OP_COREV_LOOP_END, /* stands behind the body of a hardware loop while that is active */
    OP_CSRRW,
    OP_CSRRS,
    OP_CSRRC,
    OP_CSRRWI,
    OP_CSRRSI,
    OP_CSRRCI,
    OP_LR, /* the atomic instructions, which only cores with a scoreboard have */
    OP_SC,
    OP_AMOSWAP,
    OP_AMOADD,
    OP_AMOXOR,
    OP_AMOAND,
    OP_AMOOR,
    OP_AMOMIN,
    OP_AMOMAX,
    OP_AMOMINU,
    OP_AMOMAXU
} op_t;

enum {
    REG_SP = 2,
    REG_SINK = 32, /* where instructions with rd = x0 write, so that x0 needs no test */
    REG_COUNT = 33
};

/* imm holds: the immediate; for OP_CONST the result; for branches and OP_JAL the distance in
 * bytes; for shifts the amount; for CSR instructions the CSR's number, with rs1 the register or
 * the immediate.  What it holds for CORE-V instructions is in corev_operations.h. */
typedef struct {
    uint8_t op;
    uint8_t rd; /* REG_SINK instead of 0 */
    uint8_t rs1;
    uint8_t rs2;
    int32_t imm;
    uint8_t halfwords; /* its length: 1 or 2 */
    uint8_t cycles;    /* cost, with the stalls it causes to the next instruction (timing.h) */
    union {
        uint8_t redirect; /* further cost when a branch is taken, or of a jump */
        uint8_t function; /* of OP_COREV_*: which of its operations */
    };
    uint8_t uses; /* of rs1, rs2, rd: USES_* */
} insn_t;

enum { USES_RS1 = 1, USES_RS2 = 2, USES_RD = 4 };

/* Decodes the instruction of which `low` is the first and `high` the second halfword, at `pc`.
 * Fills all of the fields but cycles and redirect.  A 16-bit instruction ignores `high`. */
void htvm_iss_decode(insn_t *insn, uint16_t low, uint16_t high, uint32_t pc);

/* The 32-bit instruction that a 16-bit one abbreviates; 0 (illegal) if it is reserved. */
uint32_t htvm_iss_expand(uint16_t compressed);

static inline bool insn_is_long(uint16_t low) { return (low & 3u) == 3u; }
static inline bool insn_is_load(const insn_t *i) { return i->op >= OP_LB && i->op <= OP_LHU_POST; }
static inline bool insn_is_store(const insn_t *i) { return i->op >= OP_SB_POST && i->op <= OP_SW; }
static inline bool insn_is_branch(const insn_t *i) { return i->op >= OP_BEQ && i->op <= OP_BNEIMM; }
static inline bool insn_is_jump(const insn_t *i) { return i->op == OP_JAL || i->op == OP_JALR; }
static inline bool insn_is_atomic(const insn_t *i) { return i->op >= OP_LR; }
static inline bool insn_is_csr(const insn_t *i) { return i->op >= OP_CSRRW && i->op <= OP_CSRRCI; }
static inline bool insn_increments(const insn_t *i)
{
    return i->op >= OP_LB_POST && i->op <= OP_SW_POST;
}

/* Whether it writes this register (REG_SINK for x0) through the ALU's port: everything with a
 * result but loads, and the addresses that accesses increment. */
static inline bool insn_writes_from_alu(const insn_t *i, uint8_t reg)
{
    const bool has_result = i->op == OP_CONST || insn_is_jump(i) ||
                            (i->op >= OP_ADDI && i->op <= OP_REMU) || insn_is_csr(i);
    return (i->rd == reg && has_result) ||
           (insn_increments(i) && reg == (i->rs1 == 0 ? REG_SINK : i->rs1));
}

#endif
