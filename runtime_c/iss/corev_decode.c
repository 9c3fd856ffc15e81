/* Decoding of the CORE-V extensions but SIMD. */
#include "corev.h"
#include "corev_operations.h"

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

/* What an instruction is, found by some of its bits. */
typedef struct {
    uint8_t op; /* 0: illegal */
    uint8_t function;
    uint8_t uses;
    bool lacks_rs2; /* those bits must be 0 */
} pattern_t;

enum { USES_BOTH = USES_RS1 | USES_RS2, USES_ALL = USES_RS1 | USES_RS2 | USES_RD };

static void take(insn_t *insn, const pattern_t *pattern)
{
    insn->op = pattern->op == 0 ? OP_ILLEGAL : pattern->op;
    insn->function = pattern->function;
    insn->uses = pattern->uses;
    if (pattern->lacks_rs2 && insn->rs2 != 0) {
        insn->op = OP_ILLEGAL;
    }
}

/* ---- custom-0: loads that increment by a constant, immediate branches --------------------- */

static void decode_custom0(insn_t *insn, uint32_t word)
{
    static const pattern_t by_f3[8] = {
        {OP_LB_POST, 0, USES_RS1, false},  {OP_LH_POST, 0, USES_RS1, false},
        {OP_LW_POST, 0, USES_RS1, false},  {0, 0, 0, false}, /* cv.elw */
        {OP_LBU_POST, 0, USES_RS1, false}, {OP_LHU_POST, 0, USES_RS1, false},
        {OP_BEQIMM, 0, USES_RS1, false},   {OP_BNEIMM, 0, USES_RS1, false},
    };
    take(insn, &by_f3[bits(word, 14, 12)]);
    if (insn_is_branch(insn)) {
        insn->rs2 = (uint8_t)sign_extend(insn->rs2, 5);
        insn->imm = sign_extend(bits(word, 31, 31) << 12 | bits(word, 7, 7) << 11 |
                                    bits(word, 30, 25) << 5 | bits(word, 11, 8) << 1,
                                13);
    } else {
        insn->rs2 = 0;
        insn->imm = sign_extend(bits(word, 31, 20), 12);
    }
}

/* ---- custom-1: stores, accesses by registers, ALU, multiply-accumulate, loops ------------- */

#define ACCESS(op, uses) {op, 0, uses, false}
#define ALU2(function) {OP_COREV_ALU, function, USES_BOTH, false}
#define ALU1(function) {OP_COREV_ALU, function, USES_RS1, true}
#define ALU3(function) {OP_COREV_ALU, function, USES_ALL, false}
#define ALUI(function) {OP_COREV_ALU, function, USES_RS1, false}

/* Those with three registers, by bits 31:25. */
static const pattern_t by_f7[128] = {
    [0x00] = ACCESS(OP_LB_POST, USES_BOTH),
    [0x01] = ACCESS(OP_LH_POST, USES_BOTH),
    [0x02] = ACCESS(OP_LW_POST, USES_BOTH),
    [0x04] = ACCESS(OP_LB_INDEXED, USES_BOTH),
    [0x05] = ACCESS(OP_LH_INDEXED, USES_BOTH),
    [0x06] = ACCESS(OP_LW_INDEXED, USES_BOTH),
    [0x08] = ACCESS(OP_LBU_POST, USES_BOTH),
    [0x09] = ACCESS(OP_LHU_POST, USES_BOTH),
    [0x0c] = ACCESS(OP_LBU_INDEXED, USES_BOTH),
    [0x0d] = ACCESS(OP_LHU_INDEXED, USES_BOTH),
    [0x10] = ACCESS(OP_SB_POST, USES_ALL),
    [0x11] = ACCESS(OP_SH_POST, USES_ALL),
    [0x12] = ACCESS(OP_SW_POST, USES_ALL),
    [0x14] = ACCESS(OP_SB_INDEXED, USES_ALL),
    [0x15] = ACCESS(OP_SH_INDEXED, USES_ALL),
    [0x16] = ACCESS(OP_SW_INDEXED, USES_ALL),
    [0x18] = ALU2(ALU_EXTRACT),
    [0x19] = ALU2(ALU_EXTRACTU),
    [0x1a] = ALU3(ALU_INSERT),
    [0x1c] = ALU2(ALU_BCLR),
    [0x1d] = ALU2(ALU_BSET),
    [0x20] = ALU2(ALU_ROR),
    [0x21] = ALU1(ALU_FF1),
    [0x22] = ALU1(ALU_FL1),
    [0x23] = ALU1(ALU_CLB),
    [0x24] = ALU1(ALU_CNT),
    [0x28] = ALU1(ALU_ABS),
    [0x29] = ALU2(ALU_SLET),
    [0x2a] = ALU2(ALU_SLETU),
    [0x2b] = ALU2(ALU_MIN),
    [0x2c] = ALU2(ALU_MINU),
    [0x2d] = ALU2(ALU_MAX),
    [0x2e] = ALU2(ALU_MAXU),
    [0x30] = ALU1(ALU_EXTHS),
    [0x31] = ALU1(ALU_EXTHZ),
    [0x32] = ALU1(ALU_EXTBS),
    [0x33] = ALU1(ALU_EXTBZ),
    [0x38] = ALUI(ALU_CLIP),
    [0x39] = ALUI(ALU_CLIPU),
    [0x3a] = ALU2(ALU_CLIP),
    [0x3b] = ALU2(ALU_CLIPU),
    [0x40] = ALU3(ALU_ADDNR),
    [0x41] = ALU3(ALU_ADDUNR),
    [0x42] = ALU3(ALU_ADDRNR),
    [0x43] = ALU3(ALU_ADDURNR),
    [0x44] = ALU3(ALU_SUBNR),
    [0x45] = ALU3(ALU_SUBUNR),
    [0x46] = ALU3(ALU_SUBRNR),
    [0x47] = ALU3(ALU_SUBURNR),
    [0x48] = ALU3(ALU_MAC),
    [0x49] = ALU3(ALU_MSU),
};

static void decode_three_registers(insn_t *insn, uint32_t word)
{
    take(insn, &by_f7[bits(word, 31, 25)]);
    insn->imm = 0;
    if (insn_is_store(insn)) {
        insn->rd = (uint8_t)bits(word, 11, 7);
    } else if (insn->op == OP_COREV_ALU && (insn->uses & USES_RS2) == 0) {
        /* The limit of a clip by a constant; all others are 0 there. */
        insn->imm = (int32_t)(((1u << insn->rs2) - 1u) >> 1);
        insn->rs2 = 0;
    }
}

static void decode_loop(insn_t *insn, uint32_t word)
{
    const uint32_t function = bits(word, 11, 8);
    const bool has_constant = function == LOOP_STARTI || function == LOOP_ENDI ||
                              function == LOOP_COUNTI;
    const bool has_register = function == LOOP_START || function == LOOP_END ||
                              function == LOOP_COUNT;
    insn->op = OP_COREV_LOOP;
    insn->function = (uint8_t)function;
    insn->rd = (uint8_t)bits(word, 7, 7);
    insn->imm = (int32_t)bits(word, 31, 20);
    insn->uses = has_register || function == LOOP_SETUP ? USES_RS1 : 0;
    if (function > LOOP_SETUP || (has_constant && insn->rs1 != 0) ||
        (has_register && insn->imm != 0)) {
        insn->op = OP_ILLEGAL;
    }
    insn->rs2 = function == LOOP_SETUPI ? insn->rs1 : 0;
}

static void decode_custom1(insn_t *insn, uint32_t word)
{
    static const uint8_t stores[3] = {OP_SB_POST, OP_SH_POST, OP_SW_POST};
    const uint32_t f3 = bits(word, 14, 12);
    if (f3 <= 2) {
        insn->op = stores[f3];
        insn->uses = USES_BOTH;
        insn->imm = sign_extend(bits(word, 31, 25) << 5 | bits(word, 11, 7), 12);
        insn->rd = 0;
    } else if (f3 == 3) {
        decode_three_registers(insn, word);
    } else if (f3 == 4) {
        decode_loop(insn, word);
    }
}

/* ---- custom-2: bit fields, sums that are rounded and shifted, products of halfwords ------- */

static void decode_bit_field(insn_t *insn, uint32_t word)
{
    /* by bit 12, then bits 31:30 */
    static const pattern_t patterns[2][4] = {
        {ALUI(ALU_EXTRACT), ALUI(ALU_EXTRACTU), {OP_COREV_ALU, ALU_INSERT, USES_RS1 | USES_RD, false},
         {0, 0, 0, false}},
        {ALUI(ALU_BCLR), ALUI(ALU_BSET), {0, 0, 0, false},
         {OP_COREV_ALU, ALU_BITREV, USES_RS1 | USES_RD, false}},
    };
    take(insn, &patterns[bits(word, 12, 12)][bits(word, 31, 30)]);
    if (insn->function == ALU_BITREV && bits(word, 29, 27) != 0) {
        insn->op = OP_ILLEGAL;
    }
    insn->imm = (int32_t)(bits(word, 29, 25) << 5 | bits(word, 24, 20));
    insn->rs2 = 0;
}

static void decode_custom2(insn_t *insn, uint32_t word)
{
    static const uint8_t sums[2][4] = {{ALU_ADDN, ALU_ADDUN, ALU_ADDRN, ALU_ADDURN},
                                       {ALU_SUBN, ALU_SUBUN, ALU_SUBRN, ALU_SUBURN}};
    const uint32_t f3 = bits(word, 14, 12);
    const uint32_t kind = bits(word, 31, 30);
    if (f3 <= 1) {
        decode_bit_field(insn, word);
        return;
    }
    insn->uses = USES_BOTH;
    insn->imm = (int32_t)bits(word, 29, 25);
    if (f3 <= 3) {
        insn->op = OP_COREV_ALU;
        insn->function = sums[f3 & 1u][kind];
        return;
    }
    insn->op = OP_COREV_MUL16;
    insn->function = (uint8_t)((f3 & 3u) | kind << 2);
    insn->uses = (f3 & MUL16_ACCUMULATES) != 0 ? USES_ALL : USES_BOTH;
}

void htvm_iss_corev_decode(insn_t *insn, uint32_t word)
{
    const uint32_t rd = bits(word, 11, 7);
    insn->op = OP_ILLEGAL;
    insn->rd = (uint8_t)(rd == 0 ? REG_SINK : rd);
    insn->rs1 = (uint8_t)bits(word, 19, 15);
    insn->rs2 = (uint8_t)bits(word, 24, 20);
    switch (word & 0x7fu) {
    case OPC_CUSTOM_0:
        decode_custom0(insn, word);
        break;
    case OPC_CUSTOM_1:
        decode_custom1(insn, word);
        break;
    case OPC_CUSTOM_2:
        decode_custom2(insn, word);
        break;
    case OPC_CUSTOM_3:
        htvm_iss_corev_decode_simd(insn, word);
        break;
    default:
        break;
    }
    if (insn->op == OP_ILLEGAL) {
        *insn = (insn_t){.op = OP_ILLEGAL, .rd = REG_SINK};
    }
}
