/* Decoding of RV32IMAC with Zicsr. */
#include "bits.h"
#include "corev.h"
#include "insn.h"

#include <stddef.h>

static uint32_t bits(uint32_t word, unsigned high, unsigned low)
{
    return (word >> low) & ((1u << (high - low + 1u)) - 1u);
}

static int32_t sign_extend(uint32_t value, unsigned width)
{
    const uint32_t sign = 1u << (width - 1u);
    return (int32_t)((value ^ sign) - sign);
}

/* ---- 16-bit instructions ------------------------------------------------------------------ */

enum { OPC_LOAD = 0x03, OPC_FENCE = 0x0f, OPC_IMM = 0x13, OPC_AUIPC = 0x17, OPC_STORE = 0x23,
       OPC_ATOMIC = 0x2f, OPC_REG = 0x33, OPC_LUI = 0x37, OPC_BRANCH = 0x63, OPC_JALR = 0x67, OPC_JAL = 0x6f,
       OPC_SYSTEM = 0x73 };

static uint32_t encode_i(uint32_t imm, uint32_t rs1, uint32_t f3, uint32_t rd, uint32_t opcode)
{
    return (imm & 0xfffu) << 20 | rs1 << 15 | f3 << 12 | rd << 7 | opcode;
}

static uint32_t encode_r(uint32_t f7, uint32_t rs2, uint32_t rs1, uint32_t f3, uint32_t rd)
{
    return f7 << 25 | rs2 << 20 | rs1 << 15 | f3 << 12 | rd << 7 | OPC_REG;
}

static uint32_t encode_sw(uint32_t imm, uint32_t rs2, uint32_t rs1)
{
    return bits(imm, 11, 5) << 25 | rs2 << 20 | rs1 << 15 | 2u << 12 | bits(imm, 4, 0) << 7 |
           OPC_STORE;
}

static uint32_t encode_jal(uint32_t imm, uint32_t rd)
{
    return bits(imm, 20, 20) << 31 | bits(imm, 10, 1) << 21 | bits(imm, 11, 11) << 20 |
           bits(imm, 19, 12) << 12 | rd << 7 | OPC_JAL;
}

static uint32_t encode_branch(uint32_t imm, uint32_t rs1, uint32_t f3)
{
    return bits(imm, 12, 12) << 31 | bits(imm, 10, 5) << 25 | rs1 << 15 | f3 << 12 |
           bits(imm, 4, 1) << 8 | bits(imm, 11, 11) << 7 | OPC_BRANCH;
}

static uint32_t expand_quadrant0(uint32_t c)
{
    const uint32_t rd = 8u + bits(c, 4, 2); /* rs2 of a store */
    const uint32_t rs1 = 8u + bits(c, 9, 7);
    const uint32_t word_offset = bits(c, 5, 5) << 6 | bits(c, 12, 10) << 3 | bits(c, 6, 6) << 2;
    uint32_t imm;

    switch (bits(c, 15, 13)) {
    case 0: /* c.addi4spn */
        imm = bits(c, 10, 7) << 6 | bits(c, 12, 11) << 4 | bits(c, 5, 5) << 3 | bits(c, 6, 6) << 2;
        return imm == 0 ? 0 : encode_i(imm, REG_SP, 0, rd, OPC_IMM);
    case 2: /* c.lw */
        return encode_i(word_offset, rs1, 2, rd, OPC_LOAD);
    case 6: /* c.sw */
        return encode_sw(word_offset, rd, rs1);
    default:
        return 0;
    }
}

static uint32_t expand_arithmetic(uint32_t c)
{
    static const uint8_t f3_of[4] = {0, 4, 6, 7}; /* sub, xor, or, and */
    const uint32_t rd = 8u + bits(c, 9, 7);
    const uint32_t rs2 = 8u + bits(c, 4, 2);
    const uint32_t imm = (uint32_t)sign_extend(bits(c, 12, 12) << 5 | bits(c, 6, 2), 6);
    const uint32_t choice = bits(c, 6, 5);

    switch (bits(c, 11, 10)) {
    case 0: /* c.srli; a shift by 32 or more is reserved */
        return imm > 31 ? 0 : encode_i(imm, rd, 5, rd, OPC_IMM);
    case 1: /* c.srai */
        return imm > 31 ? 0 : encode_i(0x400u | imm, rd, 5, rd, OPC_IMM);
    case 2: /* c.andi */
        return encode_i(imm, rd, 7, rd, OPC_IMM);
    default:
        if (bits(c, 12, 12) != 0) {
            return 0;
        }
        return encode_r(choice == 0 ? 0x20u : 0u, rs2, rd, f3_of[choice], rd);
    }
}

static uint32_t expand_quadrant1(uint32_t c)
{
    const uint32_t rd = bits(c, 11, 7);
    const uint32_t imm = (uint32_t)sign_extend(bits(c, 12, 12) << 5 | bits(c, 6, 2), 6);
    const uint32_t f3 = bits(c, 15, 13);
    uint32_t wide;

    switch (f3) {
    case 0: /* c.addi, c.nop */
        return encode_i(imm, rd, 0, rd, OPC_IMM);
    case 1: /* c.jal */
    case 5: /* c.j */
        wide = bits(c, 12, 12) << 11 | bits(c, 8, 8) << 10 | bits(c, 10, 9) << 8 |
               bits(c, 6, 6) << 7 | bits(c, 7, 7) << 6 | bits(c, 2, 2) << 5 | bits(c, 11, 11) << 4 |
               bits(c, 5, 3) << 1;
        return encode_jal((uint32_t)sign_extend(wide, 12), f3 == 1 ? 1 : 0);
    case 2: /* c.li */
        return encode_i(imm, 0, 0, rd, OPC_IMM);
    case 3: /* c.addi16sp, c.lui */
        if (imm == 0) {
            return 0;
        }
        if (rd == REG_SP) {
            wide = bits(c, 12, 12) << 9 | bits(c, 4, 3) << 7 | bits(c, 5, 5) << 6 |
                   bits(c, 2, 2) << 5 | bits(c, 6, 6) << 4;
            return encode_i((uint32_t)sign_extend(wide, 10), REG_SP, 0, REG_SP, OPC_IMM);
        }
        return imm << 12 | rd << 7 | OPC_LUI;
    case 4:
        return expand_arithmetic(c);
    default: /* c.beqz, c.bnez */
        wide = bits(c, 12, 12) << 8 | bits(c, 6, 5) << 6 | bits(c, 2, 2) << 5 |
               bits(c, 11, 10) << 3 | bits(c, 4, 3) << 1;
        return encode_branch((uint32_t)sign_extend(wide, 9), 8u + bits(c, 9, 7), f3 == 6 ? 0 : 1);
    }
}

static uint32_t expand_quadrant2(uint32_t c)
{
    const uint32_t rd = bits(c, 11, 7);
    const uint32_t rs2 = bits(c, 6, 2);
    const bool bit12 = bits(c, 12, 12) != 0;
    uint32_t imm;

    switch (bits(c, 15, 13)) {
    case 0: /* c.slli */
        return bit12 ? 0 : encode_i(rs2, rd, 1, rd, OPC_IMM);
    case 2: /* c.lwsp */
        imm = bits(c, 3, 2) << 6 | bits(c, 12, 12) << 5 | bits(c, 6, 4) << 2;
        return rd == 0 ? 0 : encode_i(imm, REG_SP, 2, rd, OPC_LOAD);
    case 4:
        if (rs2 != 0) { /* c.mv, c.add */
            return encode_r(0, rs2, bit12 ? rd : 0, 0, rd);
        }
        if (rd == 0) {
            return bit12 ? encode_i(1, 0, 0, 0, OPC_SYSTEM) : 0; /* c.ebreak */
        }
        return encode_i(0, rd, 0, bit12 ? 1 : 0, OPC_JALR); /* c.jr, c.jalr */
    case 6: /* c.swsp */
        imm = bits(c, 8, 7) << 6 | bits(c, 12, 9) << 2;
        return encode_sw(imm, rs2, REG_SP);
    default:
        return 0;
    }
}

uint32_t htvm_iss_expand(uint16_t compressed)
{
    const uint32_t of_bits = HAS_BITS ? htvm_iss_bits_expand(compressed) : 0;

    if (of_bits != 0) {
        return of_bits;
    }
    switch (compressed & 3u) {
    case 0:
        return expand_quadrant0(compressed);
    case 1:
        return expand_quadrant1(compressed);
    case 2:
        return expand_quadrant2(compressed);
    default:
        return 0;
    }
}

/* ---- 32-bit instructions ------------------------------------------------------------------ */

static op_t decode_immediate(uint32_t f3, uint32_t imm)
{
    static const uint8_t by_f3[8] = {OP_ADDI, OP_SLLI, OP_SLTI, OP_SLTIU,
                                     OP_XORI, OP_SRLI, OP_ORI,  OP_ANDI};
    const uint32_t f7 = imm >> 5;
    if ((f3 != 1 && f3 != 5) || f7 == 0) {
        return (op_t)by_f3[f3];
    }
    if (f3 == 5 && f7 == 0x20) {
        return OP_SRAI;
    }
    return HAS_BITS ? htvm_iss_bits_immediate(f3, imm) : OP_ILLEGAL;
}

static op_t decode_register(uint32_t f3, uint32_t f7, uint32_t rs2)
{
    static const uint8_t base[8] = {OP_ADD, OP_SLL, OP_SLT, OP_SLTU, OP_XOR, OP_SRL, OP_OR, OP_AND};
    static const uint8_t muldiv[8] = {OP_MUL, OP_MULH, OP_MULHSU, OP_MULHU,
                                      OP_DIV, OP_DIVU, OP_REM,    OP_REMU};
    if (f7 == 0) {
        return (op_t)base[f3];
    }
    if (f7 == 1) {
        return (op_t)muldiv[f3];
    }
    if (f7 == 0x20 && (f3 == 0 || f3 == 5)) {
        return f3 == 0 ? OP_SUB : OP_SRA;
    }
    return HAS_BITS ? htvm_iss_bits_register(f3, f7, rs2) : OP_ILLEGAL;
}

/* aq and rl do not matter: the harts see each other's accesses in one order. */
static op_t decode_atomic(uint32_t f3, uint32_t f5, uint32_t rs2)
{
    if (f3 != 2) {
        return OP_ILLEGAL;
    }
    switch (f5) {
    case 0x00: return OP_AMOADD;
    case 0x01: return OP_AMOSWAP;
    case 0x02: return rs2 == 0 ? OP_LR : OP_ILLEGAL;
    case 0x03: return OP_SC;
    case 0x04: return OP_AMOXOR;
    case 0x08: return OP_AMOOR;
    case 0x0c: return OP_AMOAND;
    case 0x10: return OP_AMOMIN;
    case 0x14: return OP_AMOMAX;
    case 0x18: return OP_AMOMINU;
    case 0x1c: return OP_AMOMAXU;
    default: return OP_ILLEGAL;
    }
}

static op_t decode_system(uint32_t word, uint32_t f3)
{
    static const uint8_t csr[8] = {OP_ILLEGAL, OP_CSRRW,  OP_CSRRS,  OP_CSRRC,
                                   OP_ILLEGAL, OP_CSRRWI, OP_CSRRSI, OP_CSRRCI};
    switch (word) {
    case 0x00000073u:
        return OP_ECALL;
    case 0x00100073u:
        return OP_EBREAK;
    case 0x10500073u:
        return OP_WFI;
    default:
        return (op_t)csr[f3];
    }
}

static op_t stack_variant(op_t op)
{
    switch (op) {
    case OP_ADDI:
        return OP_ADDI_SP;
    case OP_ADD:
        return OP_ADD_SP;
    case OP_SUB:
        return OP_SUB_SP;
    default:
        return op;
    }
}

static void decode_word(insn_t *insn, uint32_t word, uint32_t pc)
{
    static const uint8_t loads[8] = {OP_LB,  OP_LH,  OP_LW,      OP_ILLEGAL,
                                     OP_LBU, OP_LHU, OP_ILLEGAL, OP_ILLEGAL};
    static const uint8_t stores[8] = {OP_SB,      OP_SH,      OP_SW,      OP_ILLEGAL,
                                      OP_ILLEGAL, OP_ILLEGAL, OP_ILLEGAL, OP_ILLEGAL};
    static const uint8_t branches[8] = {OP_BEQ, OP_BNE, OP_ILLEGAL, OP_ILLEGAL,
                                        OP_BLT, OP_BGE, OP_BLTU,    OP_BGEU};
    const uint32_t f3 = bits(word, 14, 12);
    const uint32_t f7 = bits(word, 31, 25);
    const uint32_t rd = bits(word, 11, 7);
    op_t op = OP_ILLEGAL;
    uint8_t uses = 0;

    insn->imm = sign_extend(bits(word, 31, 20), 12);
    switch (word & 0x7fu) {
    case OPC_LUI:
        op = OP_CONST;
        insn->imm = (int32_t)(word & 0xfffff000u);
        break;
    case OPC_AUIPC:
        op = OP_CONST;
        insn->imm = (int32_t)(pc + (word & 0xfffff000u));
        break;
    case OPC_JAL:
        op = OP_JAL;
        insn->imm = sign_extend(bits(word, 31, 31) << 20 | bits(word, 19, 12) << 12 |
                                    bits(word, 20, 20) << 11 | bits(word, 30, 21) << 1,
                                21);
        break;
    case OPC_JALR:
        op = f3 == 0 ? OP_JALR : OP_ILLEGAL;
        uses = USES_RS1;
        break;
    case OPC_BRANCH:
        op = (op_t)branches[f3];
        uses = USES_RS1 | USES_RS2;
        insn->imm = sign_extend(bits(word, 31, 31) << 12 | bits(word, 7, 7) << 11 |
                                    bits(word, 30, 25) << 5 | bits(word, 11, 8) << 1,
                                13);
        break;
    case OPC_LOAD:
        op = (op_t)loads[f3];
        uses = USES_RS1;
        break;
    case OPC_STORE:
        op = (op_t)stores[f3];
        uses = USES_RS1 | USES_RS2;
        insn->imm = sign_extend(f7 << 5 | rd, 12);
        break;
    case OPC_IMM:
        op = decode_immediate(f3, bits(word, 31, 20));
        uses = USES_RS1;
        if (f3 == 1 || f3 == 5) {
            insn->imm = (int32_t)bits(word, 24, 20);
        }
        break;
    case OPC_REG:
        op = decode_register(f3, f7, bits(word, 24, 20));
        uses = USES_RS1 | USES_RS2;
        break;
    case OPC_ATOMIC:
        op = decode_atomic(f3, bits(word, 31, 27), bits(word, 24, 20));
        uses = op == OP_LR ? USES_RS1 : USES_RS1 | USES_RS2;
        break;
    case OPC_FENCE:
        op = f3 == 0 ? OP_FENCE : f3 == 1 ? OP_FENCE_I : OP_ILLEGAL;
        break;
    case OPC_SYSTEM:
        op = decode_system(word, f3);
        insn->imm = (int32_t)bits(word, 31, 20);
        uses = op >= OP_CSRRW && op <= OP_CSRRC ? USES_RS1 : 0;
        break;
    default:
        break;
    }
    insn->rd = (uint8_t)(rd == 0 ? REG_SINK : rd);
    insn->rs1 = (uint8_t)bits(word, 19, 15);
    insn->rs2 = (uint8_t)bits(word, 24, 20);
    insn->uses = uses;
    insn->op = (uint8_t)(rd == REG_SP ? stack_variant(op) : op);
}

void htvm_iss_decode(insn_t *insn, uint16_t low, uint16_t high, uint32_t pc)
{
    const bool is_long = insn_is_long(low);
    const uint32_t word = is_long ? (uint32_t)high << 16 | low : htvm_iss_expand(low);

    *insn = (insn_t){0};
    /* Of the 32-bit opcodes, those of CORE-V are the ones that end in 1011. */
    if (HAS_COREV && (word & 0xfu) == 0xbu) {
        htvm_iss_corev_decode(insn, word);
    } else {
        decode_word(insn, word, pc);
    }
    insn->halfwords = is_long ? 2 : 1;
}
