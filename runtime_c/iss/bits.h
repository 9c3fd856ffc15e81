/* Instructions on bits and addresses: the standard extensions Zba, Zbb and Zbs, and Zcb, the 16-bit
 * forms of more instructions (RISC-V Unprivileged ISA, 20240411, chapters 28 and 29).
 *
 * A core has all of them if the SoC's htvm_soc.h defines HTVM_CORE_BITS; otherwise they are illegal.
 */
#ifndef HTVM_ISS_BITS_H
#define HTVM_ISS_BITS_H

#include "core.h"
#include "insn.h"

#ifdef HTVM_CORE_BITS
enum { HAS_BITS = true };
#else
enum { HAS_BITS = false };
#endif

/* The operation with OPC_IMM (f3 is 1 or 5, imm all twelve bits) or OPC_REG; OP_ILLEGAL if there is
 * none of these extensions. */
op_t htvm_iss_bits_immediate(uint32_t f3, uint32_t imm);
op_t htvm_iss_bits_register(uint32_t f3, uint32_t f7, uint32_t rs2);

/* The 32-bit instruction that a 16-bit one of Zcb abbreviates; 0 if it is none. */
uint32_t htvm_iss_bits_expand(uint32_t compressed);

static inline uint32_t rotate_right(uint32_t value, uint32_t amount)
{
    return value >> (amount & 31u) | value << ((0u - amount) & 31u);
}

static inline uint32_t count_ones(uint32_t value)
{
    uint32_t count = 0;
    for (; value != 0; value &= value - 1u) {
        ++count;
    }
    return count;
}

static inline uint32_t trailing_zeros(uint32_t value) { return count_ones(~value & (value - 1u)); }

static inline uint32_t leading_zeros(uint32_t value)
{
    for (uint32_t shift = 1; shift < 32; shift *= 2) {
        value |= value >> shift;
    }
    return count_ones(~value);
}

/* 0xff for each byte that is not 0. */
static inline uint32_t nonzero_bytes(uint32_t value)
{
    uint32_t result = 0;
    for (uint32_t byte = 0xffu; byte != 0; byte <<= 8) {
        result |= (value & byte) != 0 ? byte : 0u;
    }
    return result;
}

static inline uint32_t reversed_bytes(uint32_t value)
{
    return value >> 24 | (value >> 8 & 0xff00u) | (value << 8 & 0xff0000u) | value << 24;
}

/* DO(operation, result): see operations.h. */
#define BIT_OPERATIONS(DO)                                                \
    DO(OP_SH1ADD, (RS1 << 1) + RS2)                                       \
    DO(OP_SH2ADD, (RS1 << 2) + RS2)                                       \
    DO(OP_SH3ADD, (RS1 << 3) + RS2)                                       \
    DO(OP_ANDN, RS1 & ~RS2)                                               \
    DO(OP_ORN, RS1 | ~RS2)                                                \
    DO(OP_XNOR, ~(RS1 ^ RS2))                                             \
    DO(OP_MIN, as_signed(RS1) < as_signed(RS2) ? RS1 : RS2)               \
    DO(OP_MINU, RS1 < RS2 ? RS1 : RS2)                                    \
    DO(OP_MAX, as_signed(RS1) < as_signed(RS2) ? RS2 : RS1)               \
    DO(OP_MAXU, RS1 < RS2 ? RS2 : RS1)                                    \
    DO(OP_ROL, rotate_right(RS1, 0u - RS2))                               \
    DO(OP_ROR, rotate_right(RS1, RS2))                                    \
    DO(OP_RORI, rotate_right(RS1, IMM))                                   \
    DO(OP_CLZ, leading_zeros(RS1))                                        \
    DO(OP_CTZ, trailing_zeros(RS1))                                       \
    DO(OP_CPOP, count_ones(RS1))                                          \
    DO(OP_SEXT_B, ((RS1 & 0xffu) ^ 0x80u) - 0x80u)                        \
    DO(OP_SEXT_H, ((RS1 & 0xffffu) ^ 0x8000u) - 0x8000u)                  \
    DO(OP_ZEXT_H, RS1 & 0xffffu)                                          \
    DO(OP_ORC_B, nonzero_bytes(RS1))                                      \
    DO(OP_REV8, reversed_bytes(RS1))                                      \
    DO(OP_BCLR, RS1 & ~(1u << (RS2 & 31u)))                               \
    DO(OP_BEXT, RS1 >> (RS2 & 31u) & 1u)                                  \
    DO(OP_BINV, RS1 ^ 1u << (RS2 & 31u))                                  \
    DO(OP_BSET, RS1 | 1u << (RS2 & 31u))                                  \
    DO(OP_BCLRI, RS1 & ~(1u << IMM))                                      \
    DO(OP_BEXTI, RS1 >> IMM & 1u)                                         \
    DO(OP_BINVI, RS1 ^ 1u << IMM)                                         \
    DO(OP_BSETI, RS1 | 1u << IMM)

#endif
