/* What instructions do to registers and memory, for whoever executes them one by one: each list is
 * expanded to the cases of a switch.  The expressions name x (the registers), d (the instruction),
 * and in loads and stores p (the host's pointer to the bytes) and value. */
#ifndef HTVM_ISS_OPERATIONS_H
#define HTVM_ISS_OPERATIONS_H

#include "arithmetic.h"

#define IMM ((uint32_t)d->imm)
#define RS1 x[d->rs1]
#define RS2 x[d->rs2]

/* DO(operation, condition) */
#define BRANCH_OPERATIONS(DO)                    \
    DO(OP_BEQ, RS1 == RS2)                       \
    DO(OP_BNE, RS1 != RS2)                       \
    DO(OP_BLT, as_signed(RS1) < as_signed(RS2))  \
    DO(OP_BGE, as_signed(RS1) >= as_signed(RS2)) \
    DO(OP_BLTU, RS1 < RS2)                       \
    DO(OP_BGEU, RS1 >= RS2)

/* DO(operation, condition), of CORE-V: rs2 is a signed constant. */
#define BRANCH_IMMEDIATE_OPERATIONS(DO)              \
    DO(OP_BEQIMM, RS1 == (uint32_t)(int8_t)d->rs2)   \
    DO(OP_BNEIMM, RS1 != (uint32_t)(int8_t)d->rs2)

/* DO(operation, bytes, value read, value extended) */
#define LOAD_OPERATIONS(DO)                                      \
    DO(OP_LB, 1u, p[0], (value ^ 0x80u) - 0x80u)                 \
    DO(OP_LH, 2u, get16(p), (value ^ 0x8000u) - 0x8000u)         \
    DO(OP_LW, 4u, get32(p), value)                               \
    DO(OP_LBU, 1u, p[0], value)                                  \
    DO(OP_LHU, 2u, get16(p), value)

/* DO(operation, bytes, statement that writes) */
#define STORE_OPERATIONS(DO)              \
    DO(OP_SB, 1u, p[0] = (uint8_t)value)  \
    DO(OP_SH, 2u, put16(p, value))        \
    DO(OP_SW, 4u, put32(p, value))

/* DO(operation, result) */
#define ALU_OPERATIONS(DO)                         \
    DO(OP_CONST, IMM)                              \
    DO(OP_ADDI, RS1 + IMM)                         \
    DO(OP_SLTI, as_signed(RS1) < d->imm)           \
    DO(OP_SLTIU, RS1 < IMM)                        \
    DO(OP_XORI, RS1 ^ IMM)                         \
    DO(OP_ORI, RS1 | IMM)                          \
    DO(OP_ANDI, RS1 & IMM)                         \
    DO(OP_SLLI, RS1 << IMM)                        \
    DO(OP_SRLI, RS1 >> IMM)                        \
    DO(OP_SRAI, shift_right(RS1, IMM))             \
    DO(OP_ADD, RS1 + RS2)                          \
    DO(OP_SUB, RS1 - RS2)                          \
    DO(OP_SLL, RS1 << (RS2 & 31u))                 \
    DO(OP_SLT, as_signed(RS1) < as_signed(RS2))    \
    DO(OP_SLTU, RS1 < RS2)                         \
    DO(OP_XOR, RS1 ^ RS2)                          \
    DO(OP_SRL, RS1 >> (RS2 & 31u))                 \
    DO(OP_SRA, shift_right(RS1, RS2 & 31u))        \
    DO(OP_OR, RS1 | RS2)                           \
    DO(OP_AND, RS1 & RS2)

#endif
