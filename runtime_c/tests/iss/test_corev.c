/* The CORE-V extensions: known patterns, sound fields for many, and results without undefined
 * behaviour for all operations. */
#include "corev.h"
#include "corev_operations.h"
#include "htvm_test.h"

static insn_t decoded(uint32_t word)
{
    insn_t insn = {0};
    htvm_iss_corev_decode(&insn, word);
    return insn;
}

/* Patterns as an assembler makes them. */
static void known_patterns(void)
{
    insn_t i = decoded(0x0045a50b); /* cv.lw a0, (a1), 4 */
    CHECK_EQ(i.op, OP_LW_POST);
    CHECK_EQ(i.imm, 4);
    CHECK_EQ(i.rs2, 0);
    i = decoded(0x10c5b52b); /* cv.lbu a0, (a1), a2 */
    CHECK_EQ(i.op, OP_LBU_POST);
    CHECK_EQ(i.imm, 0);
    CHECK_EQ(i.rs2, 12);
    i = decoded(0x00a5a22b); /* cv.sw a0, (a1), 4 */
    CHECK_EQ(i.op, OP_SW_POST);
    CHECK_EQ(i.imm, 4);
    CHECK_EQ(i.rd, 0);
    CHECK_EQ(i.uses, USES_RS1 | USES_RS2);
    i = decoded(0x28a5b62b); /* cv.sb a0, a2(a1) */
    CHECK_EQ(i.op, OP_SB_INDEXED);
    CHECK_EQ(i.rd, 12);
    CHECK_EQ(i.uses, USES_RS1 | USES_RS2 | USES_RD);
    i = decoded(0x7085352b); /* cv.clip a0, a0, 8 */
    CHECK_EQ(i.function, ALU_CLIP);
    CHECK_EQ(i.imm, 127);
    i = decoded(0x0625855b); /* cv.extract a0, a1, 3, 2 */
    CHECK_EQ(i.function, ALU_EXTRACT);
    CHECK_EQ(i.imm, 3 << 5 | 2);
    i = decoded(0xabe5f57b); /* cv.sdotsp.sci.b a0, a1, -3 */
    CHECK_EQ(i.op, OP_COREV_SIMD_CONSTANT);
    CHECK_EQ(i.function, SIMD_SDOTSP_BYTES);
    CHECK_EQ((uint32_t)i.imm, 0xfdfdfdfd);
    CHECK_EQ(i.uses, USES_RS1 | USES_RD);
    i = decoded(0x0035740b); /* cv.bneimm a0, 3, 8 */
    CHECK_EQ(i.op, OP_BNEIMM);
    CHECK_EQ(i.rs2, 3);
    CHECK_EQ(i.imm, 8);
    i = decoded(0x0052c62b); /* cv.setupi 0, 5, 20 */
    CHECK_EQ(i.op, OP_COREV_LOOP);
    CHECK_EQ(i.function, LOOP_SETUPI);
    CHECK_EQ(i.imm, 5);
    CHECK_EQ(i.rs2, 5);
}

static void reserved_patterns(void)
{
    static const uint32_t reserved[] = {
        0x0000300b, /* cv.elw */
        0x0000502b, /* no such store */
        0x0000482b, /* no such loop instruction */
        0x0008402b, /* cv.starti with a source */
        0x0010412b, /* cv.start with a constant */
        0x4210302b, /* cv.ff1 with a second operand */
        0x8000105b, /* no such operation on bit fields */
        0xc000005b,
        0x0200007b, /* cv.add.h with bit 25 */
        0x0000207b, /* a form that does not exist */
        0x4100607b, /* cv.srl.sci.h by 16 and more */
        0x4040707b, /* cv.srl.sci.b by 8 */
        0xb820007b, /* cv.extract.h of a lane beyond 1 */
        0xf000107b, /* cv.pack of bytes */
        0xf800007b, /* cv.packlo of halfwords */
        0x6c00007b, /* cv.add.div without one */
    };
    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; ++i) {
        if (!CHECK_EQ(decoded(reserved[i]).op, OP_ILLEGAL)) {
            fprintf(stderr, "    0x%08x\n", (unsigned)reserved[i]);
        }
    }
}

static bool sound(const insn_t *i)
{
    const bool loop = i->op == OP_COREV_LOOP;
    const bool has_result = !insn_is_store(i) && !insn_is_branch(i) && !loop;
    const bool rs2 = i->rs2 < 32 || insn_is_branch(i); /* there, a signed constant */
    return i->rd <= REG_SINK && !(has_result && i->rd == 0) && i->rs1 < 32 && rs2 &&
           (!loop || (i->rd < 2 && i->function <= LOOP_SETUP)) &&
           (i->op != OP_COREV_ALU || i->function < COREV_ALU_COUNT) &&
           (i->op < OP_COREV_SIMD || i->op > OP_COREV_SIMD_CONSTANT ||
            i->function < COREV_SIMD_COUNT);
}

/* Every operation on extreme and random values: the sanitizers look at them. */
static uint32_t result_of(const insn_t *i, const uint32_t *x)
{
    switch (i->op) {
    case OP_COREV_ALU:
        return htvm_iss_corev_alu(i, x);
    case OP_COREV_MUL16:
        return htvm_iss_corev_mul16(i, x);
    case OP_COREV_SIMD:
    case OP_COREV_SIMD_SCALAR:
        return htvm_iss_corev_simd(i, x, x[i->rs2]);
    case OP_COREV_SIMD_CONSTANT:
        return htvm_iss_corev_simd(i, x, (uint32_t)i->imm);
    default:
        return 0;
    }
}

static void fields_stay_in_range(void)
{
    static const uint32_t opcodes[] = {OPC_CUSTOM_0, OPC_CUSTOM_1, OPC_CUSTOM_2, OPC_CUSTOM_3};
    uint32_t x[REG_COUNT] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 31, 32, 0x80808080};
    uint32_t state = 1, kinds = 0;
    for (int round = 0; round < 1000000; ++round) {
        state = state * 1664525u + 1013904223u;
        const uint32_t word = ((state ^ state >> 15) & ~0x7fu) | opcodes[round % 4];
        const insn_t i = decoded(word);
        if (!sound(&i)) {
            CHECK_EQ(word, 0);
            return;
        }
        x[8 + round % 24] = state;
        kinds |= result_of(&i, x) != 0 ? 1u << round % 4 : 0;
    }
    CHECK_EQ(kinds, 0xe); /* custom-0 has accesses and branches only */
}

int main(void)
{
    known_patterns();
    reserved_patterns();
    fields_stay_in_range();
    return htvm_test_report();
}
