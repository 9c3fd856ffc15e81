/* The PULP extensions in CORE-V encoding: post-increment and register-register accesses, ALU,
 * multiply-accumulate, SIMD, bit manipulation, immediate branches, and hardware loops (XcvMem,
 * XcvAlu, XcvMac, XcvSimd, XcvBitmanip, XcvBi, XcvHwlp of the CV32E40P's manual).  cv.elw is
 * illegal.
 *
 * Chips with older cores of the family (RI5CY) have the same operations in another encoding, which
 * this simulator does not execute.
 *
 * A core has them if the SoC's htvm_soc.h defines HTVM_CORE_COREV; otherwise they are illegal.
 */
#ifndef HTVM_ISS_COREV_H
#define HTVM_ISS_COREV_H

#include "core.h"
#include "insn.h"

#ifdef HTVM_CORE_COREV
enum { HAS_COREV = true };
#else
enum { HAS_COREV = false };
#endif

enum { OPC_CUSTOM_0 = 0x0b, OPC_CUSTOM_1 = 0x2b, OPC_CUSTOM_2 = 0x5b, OPC_CUSTOM_3 = 0x7b };

/* What an OP_COREV_LOOP sets of loop rd: addresses are imm words from here, or in rs1; the count is
 * imm or in rs1.  LOOP_SETUPI has the count in imm and the words to the end in rs2. */
enum { LOOP_STARTI, LOOP_START, LOOP_ENDI, LOOP_END, LOOP_COUNTI, LOOP_COUNT, LOOP_SETUPI,
       LOOP_SETUP };

/* corev_decode.c: the instruction with one of the four opcodes above.  Fills op, function, imm,
 * uses, rd, rs1, rs2. */
void htvm_iss_corev_decode(insn_t *insn, uint32_t word);

/* corev_simd_decode.c: the same with OPC_CUSTOM_3. */
void htvm_iss_corev_decode_simd(insn_t *insn, uint32_t word);

/* corev_alu.c, corev_simd.c: results of OP_COREV_ALU, OP_COREV_MUL16, and OP_COREV_SIMD* with the
 * second operand in b.  x are the registers. */
uint32_t htvm_iss_corev_alu(const insn_t *d, const uint32_t *x);
uint32_t htvm_iss_corev_mul16(const insn_t *d, const uint32_t *x);
uint32_t htvm_iss_corev_simd(const insn_t *d, const uint32_t *x, uint32_t b);

/* The lowest lane in every lane. */
static inline uint32_t htvm_iss_corev_replicate(const insn_t *d, uint32_t value)
{
    return (d->function & 1u) != 0 ? (value & 0xffu) * 0x01010101u : (value & 0xffffu) * 0x00010001u;
}

/* All operations that only these extensions have. */
#define COREV_CASES                                                                              \
    case OP_BEQIMM: case OP_BNEIMM: case OP_LB_POST: case OP_LH_POST: case OP_LW_POST:           \
    case OP_LBU_POST: case OP_LHU_POST: case OP_LB_INDEXED: case OP_LH_INDEXED:                  \
    case OP_LW_INDEXED: case OP_LBU_INDEXED: case OP_LHU_INDEXED: case OP_SB_POST:               \
    case OP_SH_POST: case OP_SW_POST: case OP_SB_INDEXED: case OP_SH_INDEXED:                    \
    case OP_SW_INDEXED: case OP_COREV_ALU: case OP_COREV_MUL16: case OP_COREV_SIMD:              \
    case OP_COREV_SIMD_SCALAR: case OP_COREV_SIMD_CONSTANT: case OP_COREV_LOOP:                  \
    case OP_COREV_LOOP_END:

#endif
