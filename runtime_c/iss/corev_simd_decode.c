/* Decoding of the CORE-V SIMD instructions. */
#include "corev.h"
#include "corev_operations.h"

static uint32_t bits(uint32_t word, unsigned high, unsigned low)
{
    return (word >> low) & ((1u << (high - low + 1u)) - 1u);
}

/* Values of bits 14:12 without the lowest, which is 1 for bytes: where the second operand is from. */
enum { FORM_VECTOR = 0, FORM_SCALAR = 4, FORM_CONSTANT = 6 };

typedef enum {
    NONE = 0,          /* no such instruction */
    OF_SIGNED,         /* lane by lane; a constant is sign-extended */
    OF_UNSIGNED,       /* the same, zero-extended */
    OF_AMOUNT,         /* the same, and the constant must be less than a lane's width */
    ACCUMULATES,       /* as OF_SIGNED, and reads rd */
    ACCUMULATES_UNSIGNED,
    OF_ONE,            /* without a second operand */
    OF_LANE,           /* cv.extract, cv.extractu, cv.insert */
    SHUFFLES,          /* cv.shuffle, cv.shuffleI0 */
    SHUFFLES_CONSTANT, /* cv.shuffleI1 to I3 */
    SHUFFLES_TWO,
    PACKS,             /* cv.pack, cv.pack.h */
    PACKS_BYTES,       /* cv.packlo, cv.packhi */
    CPLXMUL,
    CPLXCONJ,
    DIVIDES,           /* of complex numbers, by a power of two */
    ROTATES            /* cv.subrotmj: the same, also by 1 */
} kind_t;

typedef struct {
    uint8_t kind, function;
} pattern_t;

/* By bits 31:26. */
static const pattern_t by_f6[64] = {
    [0x00] = {OF_SIGNED, SIMD_ADD},
    [0x02] = {OF_SIGNED, SIMD_SUB},
    [0x04] = {OF_SIGNED, SIMD_AVG},
    [0x06] = {OF_UNSIGNED, SIMD_AVGU},
    [0x08] = {OF_SIGNED, SIMD_MIN},
    [0x0a] = {OF_UNSIGNED, SIMD_MINU},
    [0x0c] = {OF_SIGNED, SIMD_MAX},
    [0x0e] = {OF_UNSIGNED, SIMD_MAXU},
    [0x10] = {OF_AMOUNT, SIMD_SRL},
    [0x12] = {OF_AMOUNT, SIMD_SRA},
    [0x14] = {OF_AMOUNT, SIMD_SLL},
    [0x16] = {OF_SIGNED, SIMD_OR},
    [0x18] = {OF_SIGNED, SIMD_XOR},
    [0x1a] = {OF_SIGNED, SIMD_AND},
    [0x1c] = {OF_ONE, SIMD_ABS},
    [0x20] = {OF_UNSIGNED, SIMD_DOTUP},
    [0x22] = {OF_SIGNED, SIMD_DOTUSP},
    [0x24] = {OF_SIGNED, SIMD_DOTSP},
    [0x26] = {ACCUMULATES_UNSIGNED, SIMD_SDOTUP},
    [0x28] = {ACCUMULATES, SIMD_SDOTUSP},
    [0x2a] = {ACCUMULATES, SIMD_SDOTSP},
    [0x2e] = {OF_LANE, SIMD_EXTRACT},
    [0x30] = {SHUFFLES, SIMD_SHUFFLE},
    [0x32] = {SHUFFLES_CONSTANT, SIMD_SHUFFLE},
    [0x34] = {SHUFFLES_CONSTANT, SIMD_SHUFFLE},
    [0x36] = {SHUFFLES_CONSTANT, SIMD_SHUFFLE},
    [0x38] = {SHUFFLES_TWO, SIMD_SHUFFLE2},
    [0x3c] = {PACKS, SIMD_PACKLO},
    [0x3e] = {PACKS_BYTES, SIMD_PACKLO},
    [0x01] = {OF_SIGNED, SIMD_CMPEQ},
    [0x03] = {OF_SIGNED, SIMD_CMPNE},
    [0x05] = {OF_SIGNED, SIMD_CMPGT},
    [0x07] = {OF_SIGNED, SIMD_CMPGE},
    [0x09] = {OF_SIGNED, SIMD_CMPLT},
    [0x0b] = {OF_SIGNED, SIMD_CMPLE},
    [0x0d] = {OF_UNSIGNED, SIMD_CMPGTU},
    [0x0f] = {OF_UNSIGNED, SIMD_CMPGEU},
    [0x11] = {OF_UNSIGNED, SIMD_CMPLTU},
    [0x13] = {OF_UNSIGNED, SIMD_CMPLEU},
    [0x15] = {CPLXMUL, SIMD_CPLXMUL_R},
    [0x17] = {CPLXCONJ, SIMD_CPLXCONJ},
    [0x19] = {ROTATES, SIMD_SUBROTMJ},
    [0x1b] = {DIVIDES, SIMD_ADD_DIV},
    [0x1d] = {DIVIDES, SIMD_SUB_DIV},
};

/* The fields that most kinds look at. */
typedef struct {
    uint32_t form;   /* FORM_*, or 2 */
    uint32_t bytes;  /* 1 for bytes, 0 for halfwords */
    uint32_t bit25;
    uint32_t field;  /* bits 24:20 */
} fields_t;

/* Lane by lane, in three forms.  False if there is no such form. */
static bool decode_lanes(insn_t *insn, const fields_t *f, bool is_signed, bool amount)
{
    if (f->form != FORM_CONSTANT) {
        insn->uses |= USES_RS2;
        insn->op = f->form == FORM_SCALAR ? OP_COREV_SIMD_SCALAR : OP_COREV_SIMD;
        return f->bit25 == 0 && (f->form == FORM_VECTOR || f->form == FORM_SCALAR);
    }
    const uint32_t constant = f->field << 1 | f->bit25;
    const uint32_t extended = is_signed ? (constant ^ 0x20u) - 0x20u : constant;
    insn->op = OP_COREV_SIMD_CONSTANT;
    insn->imm = (int32_t)htvm_iss_corev_replicate(insn, extended);
    return !amount || constant < (f->bytes != 0 ? 8u : 16u);
}

/* The lane is a constant; its bits count as the number of a register that is read. */
static bool decode_lane(insn_t *insn, const fields_t *f)
{
    insn->imm = (int32_t)((f->field & 1u) << 1 | f->bit25);
    insn->uses |= USES_RS2;
    if (f->form == 2) {
        insn->function = (uint8_t)(SIMD_EXTRACTU + f->bytes);
    } else if (f->form == FORM_SCALAR) {
        insn->function = (uint8_t)(SIMD_INSERT + f->bytes);
        insn->uses |= USES_RD;
    } else if (f->form != FORM_VECTOR) {
        return false;
    }
    return f->field <= f->bytes;
}

/* A constant's bits count as the number of a register that is read, here too. */
static bool decode_shuffle(insn_t *insn, const fields_t *f, uint32_t highest_lane)
{
    insn->uses |= USES_RS2;
    if (f->form == FORM_VECTOR) {
        return highest_lane == 0 && f->bit25 == 0;
    }
    if (f->form != FORM_CONSTANT) {
        return false;
    }
    const uint32_t second = f->field & 1u;
    insn->op = OP_COREV_SIMD_CONSTANT;
    if (f->bytes == 0) {
        insn->imm = (int32_t)(second << 16 | f->bit25);
        return highest_lane == 0 && f->field <= 1;
    }
    insn->imm = (int32_t)(highest_lane << 24 | (f->field >> 3 & 3u) << 16 |
                          (f->field >> 1 & 3u) << 8 | second << 1 | f->bit25);
    return true;
}

static bool decode_pack(insn_t *insn, const fields_t *f, bool bytes)
{
    insn->uses |= bytes ? USES_RS2 | USES_RD : USES_RS2;
    insn->function = (uint8_t)((f->bit25 != 0 ? SIMD_PACKHI : SIMD_PACKLO) + f->bytes);
    return f->form == FORM_VECTOR && (f->bytes != 0) == bytes;
}

static bool decode_complex(insn_t *insn, const fields_t *f, kind_t kind)
{
    insn->imm = (int32_t)(f->form >> 1); /* halved so many times */
    insn->uses |= USES_RS2;
    if (kind == CPLXMUL) {
        insn->function = f->bit25 != 0 ? SIMD_CPLXMUL_I : SIMD_CPLXMUL_R;
        insn->uses |= USES_RD;
        return f->bytes == 0;
    }
    return f->bytes == 0 && f->bit25 == 0 && (kind == ROTATES || f->form != 0);
}

static bool decode_one(insn_t *insn, const fields_t *f)
{
    return f->form == FORM_VECTOR && f->bit25 == 0 && insn->rs2 == 0;
}

static bool decode_kind(insn_t *insn, const fields_t *f, kind_t kind, uint32_t word)
{
    switch (kind) {
    case OF_SIGNED:
        return decode_lanes(insn, f, true, false);
    case OF_UNSIGNED:
        return decode_lanes(insn, f, false, false);
    case OF_AMOUNT:
        return decode_lanes(insn, f, false, true);
    case ACCUMULATES:
    case ACCUMULATES_UNSIGNED:
        insn->uses |= USES_RD;
        return decode_lanes(insn, f, kind == ACCUMULATES, false);
    case OF_ONE:
        return decode_one(insn, f);
    case CPLXCONJ:
        return decode_one(insn, f) && f->bytes == 0;
    case OF_LANE:
        return decode_lane(insn, f);
    case SHUFFLES:
        return decode_shuffle(insn, f, 0);
    case SHUFFLES_CONSTANT:
        return f->bytes != 0 && f->form == FORM_CONSTANT &&
               decode_shuffle(insn, f, bits(word, 28, 27));
    case SHUFFLES_TWO:
        insn->uses |= USES_RS2 | USES_RD;
        return f->form == FORM_VECTOR && f->bit25 == 0;
    case PACKS:
        return decode_pack(insn, f, false);
    case PACKS_BYTES:
        return decode_pack(insn, f, true);
    case CPLXMUL:
    case DIVIDES:
    case ROTATES:
        return decode_complex(insn, f, kind);
    default:
        return false;
    }
}

void htvm_iss_corev_decode_simd(insn_t *insn, uint32_t word)
{
    const pattern_t *pattern = &by_f6[bits(word, 31, 26)];
    const fields_t fields = {bits(word, 14, 13) << 1, bits(word, 12, 12), bits(word, 25, 25),
                             bits(word, 24, 20)};
    insn->op = OP_COREV_SIMD;
    insn->function = (uint8_t)(pattern->function + fields.bytes);
    insn->uses = USES_RS1;
    if (!decode_kind(insn, &fields, (kind_t)pattern->kind, word)) {
        insn->op = OP_ILLEGAL;
    }
}
