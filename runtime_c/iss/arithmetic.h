/* Results of the instructions that C has no operator for, without undefined behaviour. */
#ifndef HTVM_ISS_ARITHMETIC_H
#define HTVM_ISS_ARITHMETIC_H

#include "insn.h"

static inline uint32_t high_product(op_t op, uint32_t a, uint32_t b)
{
    const int64_t signed_a = (int32_t)a;
    switch (op) {
    case OP_MULH:
        return (uint32_t)((uint64_t)(signed_a * (int32_t)b) >> 32);
    case OP_MULHSU:
        return (uint32_t)((uint64_t)(signed_a * (int64_t)b) >> 32);
    default:
        return (uint32_t)((uint64_t)a * b >> 32);
    }
}

static inline uint32_t divide(op_t op, uint32_t a, uint32_t b)
{
    const bool wants_quotient = op == OP_DIV || op == OP_DIVU;
    if (b == 0) {
        return wants_quotient ? UINT32_MAX : a;
    }
    if (op == OP_DIVU || op == OP_REMU) {
        return wants_quotient ? a / b : a % b;
    }
    if (b == UINT32_MAX) { /* -1: the most negative number has no quotient that fits */
        return wants_quotient ? 0u - a : 0;
    }
    const int32_t quotient = (int32_t)a / (int32_t)b;
    return wants_quotient ? (uint32_t)quotient : a - (uint32_t)quotient * b;
}

/* The shift of a negative number is left to the compiler by C; all of them extend the sign. */
static inline uint32_t shift_right(uint32_t value, uint32_t amount)
{
    return (uint32_t)((int32_t)value >> amount);
}

static inline int32_t as_signed(uint32_t value) { return (int32_t)value; }

#endif
