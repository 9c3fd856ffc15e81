#include "bits.h"

op_t htvm_iss_bits_immediate(uint32_t f3, uint32_t imm)
{
    const uint32_t f7 = imm >> 5;
    if (f3 == 1) {
        switch (imm) {
        case 0x600: return OP_CLZ;
        case 0x601: return OP_CTZ;
        case 0x602: return OP_CPOP;
        case 0x604: return OP_SEXT_B;
        case 0x605: return OP_SEXT_H;
        default: break;
        }
        return f7 == 0x14 ? OP_BSETI : f7 == 0x24 ? OP_BCLRI : f7 == 0x34 ? OP_BINVI : OP_ILLEGAL;
    }
    if (imm == 0x287) {
        return OP_ORC_B;
    }
    if (imm == 0x698) {
        return OP_REV8;
    }
    return f7 == 0x24 ? OP_BEXTI : f7 == 0x30 ? OP_RORI : OP_ILLEGAL;
}

op_t htvm_iss_bits_register(uint32_t f3, uint32_t f7, uint32_t rs2)
{
    switch (f7 << 3 | f3) {
    case 0x10 << 3 | 2: return OP_SH1ADD;
    case 0x10 << 3 | 4: return OP_SH2ADD;
    case 0x10 << 3 | 6: return OP_SH3ADD;
    case 0x20 << 3 | 4: return OP_XNOR;
    case 0x20 << 3 | 6: return OP_ORN;
    case 0x20 << 3 | 7: return OP_ANDN;
    case 0x05 << 3 | 4: return OP_MIN;
    case 0x05 << 3 | 5: return OP_MINU;
    case 0x05 << 3 | 6: return OP_MAX;
    case 0x05 << 3 | 7: return OP_MAXU;
    case 0x30 << 3 | 1: return OP_ROL;
    case 0x30 << 3 | 5: return OP_ROR;
    case 0x04 << 3 | 4: return rs2 == 0 ? OP_ZEXT_H : OP_ILLEGAL;
    case 0x14 << 3 | 1: return OP_BSET;
    case 0x24 << 3 | 1: return OP_BCLR;
    case 0x24 << 3 | 5: return OP_BEXT;
    case 0x34 << 3 | 1: return OP_BINV;
    default: return OP_ILLEGAL;
    }
}

/* Fields of 32-bit instructions: opcodes of loads, stores, constant and register operands. */
enum { LOAD = 0x03, STORE = 0x23, IMMEDIATE = 0x13, REGISTER = 0x33 };

static uint32_t i_type(uint32_t imm, uint32_t rs1, uint32_t f3, uint32_t rd, uint32_t opcode)
{
    return imm << 20 | rs1 << 15 | f3 << 12 | rd << 7 | opcode;
}

static uint32_t expand_access(uint32_t c)
{
    const uint32_t data = 8u + (c >> 2 & 7u);
    const uint32_t base = 8u + (c >> 7 & 7u);
    const uint32_t byte = (c >> 5 & 1u) << 1 | (c >> 6 & 1u); /* offset of a byte */
    const uint32_t half = (c >> 5 & 1u) << 1;                 /* of a halfword */

    switch (c >> 10 & 7u) {
    case 0: /* c.lbu */
        return i_type(byte, base, 4, data, LOAD);
    case 1: /* c.lhu, c.lh */
        return i_type(half, base, (c & 0x40u) != 0 ? 1 : 5, data, LOAD);
    case 2: /* c.sb: as i_type, but the offset is where rd is there, and rs2 behind it */
        return i_type(data, base, 0, byte, STORE);
    case 3: /* c.sh */
        return (c & 0x40u) != 0 ? 0 : i_type(data, base, 1, half, STORE);
    default:
        return 0;
    }
}

static uint32_t expand_unary(uint32_t c, uint32_t rd)
{
    switch (c >> 2 & 7u) {
    case 0: /* c.zext.b */
        return i_type(0xffu, rd, 7, rd, IMMEDIATE);
    case 1: /* c.sext.b */
        return i_type(0x604u, rd, 1, rd, IMMEDIATE);
    case 2: /* c.zext.h */
        return i_type(0x080u, rd, 4, rd, REGISTER);
    case 3: /* c.sext.h */
        return i_type(0x605u, rd, 1, rd, IMMEDIATE);
    case 5: /* c.not */
        return i_type(0xfffu, rd, 4, rd, IMMEDIATE);
    default:
        return 0;
    }
}

uint32_t htvm_iss_bits_expand(uint32_t compressed)
{
    const uint32_t rd = 8u + (compressed >> 7 & 7u);

    if ((compressed & 0xe003u) == 0x8000u) {
        return expand_access(compressed);
    }
    if ((compressed & 0xfc63u) == 0x9c61u) {
        return expand_unary(compressed, rd);
    }
    if ((compressed & 0xfc63u) == 0x9c41u) { /* c.mul */
        return i_type(0x020u | (8u + (compressed >> 2 & 7u)), rd, 0, rd, REGISTER);
    }
    return 0;
}
