/* The operations of OP_COREV_ALU and OP_COREV_SIMD as lists of a name and its result (see
 * operations.h).  The names are `function` of a decoded instruction.
 *
 * In the first list, the second operand is rs2 or a constant: their sum, as the other is 0.
 * Bit fields have their lowest bit in bits 4:0 of that operand and their width less 1 in 9:5.
 * Instructions that add, round and shift have rs2 and the amount in imm, or add to rd and have the
 * amount in rs2.
 *
 * In the lists of SIMD operations, ua and ub are the operands' lanes zero-extended, sa and sb
 * sign-extended, WIDTH the bits of a lane; a, b and c are whole registers: rs1, the second operand,
 * and rd before.  Every operation there is for halfwords and, behind it, for bytes.
 */
#ifndef HTVM_ISS_COREV_OPERATIONS_H
#define HTVM_ISS_COREV_OPERATIONS_H

#define COREV_ALU_OPERATIONS(DO)                                        \
    DO(ALU_ABS, magnitude(RS1))                                         \
    DO(ALU_SLET, as_signed(RS1) <= as_signed(RS2))                      \
    DO(ALU_SLETU, RS1 <= RS2)                                           \
    DO(ALU_MIN, as_signed(RS1) < as_signed(RS2) ? RS1 : RS2)            \
    DO(ALU_MINU, RS1 < RS2 ? RS1 : RS2)                                 \
    DO(ALU_MAX, as_signed(RS1) > as_signed(RS2) ? RS1 : RS2)            \
    DO(ALU_MAXU, RS1 > RS2 ? RS1 : RS2)                                 \
    DO(ALU_EXTHS, ((RS1 & 0xffffu) ^ 0x8000u) - 0x8000u)                \
    DO(ALU_EXTHZ, RS1 & 0xffffu)                                        \
    DO(ALU_EXTBS, ((RS1 & 0xffu) ^ 0x80u) - 0x80u)                      \
    DO(ALU_EXTBZ, RS1 & 0xffu)                                          \
    DO(ALU_CLIP, clip(RS1, -as_signed(SECOND & INT32_MAX) - 1, SECOND)) \
    DO(ALU_CLIPU, clip(RS1, 0, SECOND))                                 \
    DO(ALU_ROR, rotate_right(RS1, RS2 & 31u))                           \
    DO(ALU_FF1, first_one(RS1))                                         \
    DO(ALU_FL1, last_one(RS1))                                          \
    DO(ALU_CLB, leading_copies(RS1))                                    \
    DO(ALU_CNT, ones(RS1))                                              \
    DO(ALU_EXTRACT, extract(RS1, SECOND))                               \
    DO(ALU_EXTRACTU, shift_field(RS1, SECOND) & field_mask(SECOND, 0))  \
    DO(ALU_INSERT, insert(RD, RS1, SECOND))                             \
    DO(ALU_BCLR, RS1 & ~field_mask(SECOND, SECOND & 31u))               \
    DO(ALU_BSET, RS1 | field_mask(SECOND, SECOND & 31u))                \
    DO(ALU_BITREV, reverse_groups(RS1 << (IMM & 31u), IMM >> 5 & 3u))   \
    DO(ALU_MAC, RD + RS1 * RS2)                                         \
    DO(ALU_MSU, RD - RS1 * RS2)                                         \
    DO(ALU_ADDN, shift_right(RS1 + RS2, IMM))                           \
    DO(ALU_ADDUN, (RS1 + RS2) >> IMM)                                   \
    DO(ALU_ADDRN, shift_right(RS1 + RS2 + half(IMM), IMM))              \
    DO(ALU_ADDURN, (RS1 + RS2 + half(IMM)) >> IMM)                      \
    DO(ALU_SUBN, shift_right(RS1 - RS2, IMM))                           \
    DO(ALU_SUBUN, (RS1 - RS2) >> IMM)                                   \
    DO(ALU_SUBRN, shift_right(RS1 - RS2 + half(IMM), IMM))              \
    DO(ALU_SUBURN, (RS1 - RS2 + half(IMM)) >> IMM)                      \
    DO(ALU_ADDNR, shift_right(RD + RS1, AMOUNT))                        \
    DO(ALU_ADDUNR, (RD + RS1) >> AMOUNT)                                \
    DO(ALU_ADDRNR, shift_right(RD + RS1 + half(AMOUNT), AMOUNT))        \
    DO(ALU_ADDURNR, (RD + RS1 + half(AMOUNT)) >> AMOUNT)                \
    DO(ALU_SUBNR, shift_right(RD - RS1, AMOUNT))                        \
    DO(ALU_SUBUNR, (RD - RS1) >> AMOUNT)                                \
    DO(ALU_SUBRNR, shift_right(RD - RS1 + half(AMOUNT), AMOUNT))        \
    DO(ALU_SUBURNR, (RD - RS1 + half(AMOUNT)) >> AMOUNT)

/* DO(operation, result of a lane) */
#define COREV_LANE_OPERATIONS(DO)                            \
    DO(SIMD_ADD, ua + ub)                                    \
    DO(SIMD_SUB, ua - ub)                                    \
    DO(SIMD_AVG, shift_right(SIGNED_LANE(ua + ub), 1))       \
    DO(SIMD_AVGU, UNSIGNED_LANE(ua + ub) >> 1)               \
    DO(SIMD_MIN, sa < sb ? ua : ub)                          \
    DO(SIMD_MINU, ua < ub ? ua : ub)                         \
    DO(SIMD_MAX, sa > sb ? ua : ub)                          \
    DO(SIMD_MAXU, ua > ub ? ua : ub)                         \
    DO(SIMD_SRL, ua >> (ub & (WIDTH - 1u)))                  \
    DO(SIMD_SRA, shift_right((uint32_t)sa, ub & (WIDTH - 1u))) \
    DO(SIMD_SLL, ua << (ub & (WIDTH - 1u)))                  \
    DO(SIMD_OR, ua | ub)                                     \
    DO(SIMD_XOR, ua ^ ub)                                    \
    DO(SIMD_AND, ua & ub)                                    \
    DO(SIMD_ABS, sa < 0 ? 0u - ua : ua)                      \
    DO(SIMD_CMPEQ, ALL_ONES_IF(ua == ub))                    \
    DO(SIMD_CMPNE, ALL_ONES_IF(ua != ub))                    \
    DO(SIMD_CMPGT, ALL_ONES_IF(sa > sb))                     \
    DO(SIMD_CMPGE, ALL_ONES_IF(sa >= sb))                    \
    DO(SIMD_CMPLT, ALL_ONES_IF(sa < sb))                     \
    DO(SIMD_CMPLE, ALL_ONES_IF(sa <= sb))                    \
    DO(SIMD_CMPGTU, ALL_ONES_IF(ua > ub))                    \
    DO(SIMD_CMPGEU, ALL_ONES_IF(ua >= ub))                   \
    DO(SIMD_CMPLTU, ALL_ONES_IF(ua < ub))                    \
    DO(SIMD_CMPLEU, ALL_ONES_IF(ua <= ub))

/* DO(operation, summand of a lane, what the sum starts from) */
#define COREV_DOT_OPERATIONS(DO)              \
    DO(SIMD_DOTUP, ua * ub, 0)                \
    DO(SIMD_DOTUSP, ua * (uint32_t)sb, 0)     \
    DO(SIMD_DOTSP, (uint32_t)(sa * sb), 0)    \
    DO(SIMD_SDOTUP, ua * ub, c)               \
    DO(SIMD_SDOTUSP, ua * (uint32_t)sb, c)    \
    DO(SIMD_SDOTSP, (uint32_t)(sa * sb), c)

/* DO(operation, result of halfwords, result of bytes) */
#define COREV_WHOLE_OPERATIONS(DO)                                                          \
    DO(SIMD_EXTRACT, sign_extend(half_of(a, IMM), 16), sign_extend(byte_of(a, IMM), 8))     \
    DO(SIMD_EXTRACTU, half_of(a, IMM), byte_of(a, IMM))                                     \
    DO(SIMD_INSERT, with_half(c, IMM, a), with_byte(c, IMM, a))                             \
    DO(SIMD_SHUFFLE, shuffle_halves(a, a, b), shuffle_bytes(a, a, b))                       \
    DO(SIMD_SHUFFLE2, shuffle_halves(c, a, b), shuffle_bytes(c, a, b))                      \
    DO(SIMD_PACKLO, pair(a, b), (c & 0xffff0000u) | (a & 0xffu) << 8 | (b & 0xffu))         \
    DO(SIMD_PACKHI, pair(a >> 16, b >> 16), (c & 0xffffu) | a << 24 | (b & 0xffu) << 16)

/* Of complex numbers: the real part is the low halfword.  Results are divided by 2 to the power of
 * imm.  There are none for bytes. */
#define COREV_COMPLEX_OPERATIONS(DO)                                           \
    DO(SIMD_CPLXMUL_R, pair(c >> 16, real_of_product(a, b, IMM)))              \
    DO(SIMD_CPLXMUL_I, pair(imaginary_of_product(a, b, IMM), c))               \
    DO(SIMD_CPLXCONJ, pair(0u - (a >> 16), a))                                 \
    DO(SIMD_SUBROTMJ, pair(quotient(b - a, IMM), quotient((a >> 16) - (b >> 16), IMM))) \
    DO(SIMD_ADD_DIV, pair(quotient((a >> 16) + (b >> 16), IMM), quotient(a + b, IMM)))  \
    DO(SIMD_SUB_DIV, pair(quotient((a >> 16) - (b >> 16), IMM), quotient(a - b, IMM)))

#define COREV_ALU_NAME(name, result) name,
enum { COREV_ALU_OPERATIONS(COREV_ALU_NAME) COREV_ALU_COUNT };

#define COREV_NAME(name, ...) name, name##_BYTES,
enum {
    COREV_LANE_OPERATIONS(COREV_NAME)
    COREV_DOT_OPERATIONS(COREV_NAME)
    COREV_WHOLE_OPERATIONS(COREV_NAME)
    COREV_COMPLEX_OPERATIONS(COREV_NAME)
    COREV_SIMD_COUNT
};

/* `function` of OP_COREV_MUL16: rs1 * rs2 of halfwords, the amount of the shift in imm. */
enum { MUL16_UNSIGNED = 1, MUL16_ACCUMULATES = 2, MUL16_HIGH = 4, MUL16_ROUNDS = 8 };

#endif
