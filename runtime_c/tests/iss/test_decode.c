/* Decoding: known patterns, and sound fields for every 16-bit and many 32-bit patterns. */
#include "htvm_test.h"
#include "insn.h"

static insn_t decoded(uint32_t word)
{
    insn_t insn;
    htvm_iss_decode(&insn, (uint16_t)word, (uint16_t)(word >> 16), 0x1000);
    return insn;
}

/* Patterns as an assembler makes them. */
static void known_patterns(void)
{
    insn_t i = decoded(0xff410113); /* addi sp, sp, -12 */
    CHECK_EQ(i.op, OP_ADDI_SP);
    CHECK_EQ(i.imm, -12);
    i = decoded(0x00000013); /* nop */
    CHECK_EQ(i.op, OP_ADDI);
    CHECK_EQ(i.rd, REG_SINK);
    i = decoded(0x12345097); /* auipc ra, 0x12345 */
    CHECK_EQ(i.op, OP_CONST);
    CHECK_EQ(i.imm, 0x12346000);
    i = decoded(0xfe209ee3); /* bne ra, sp, -4 */
    CHECK_EQ(i.op, OP_BNE);
    CHECK_EQ(i.imm, -4);
    i = decoded(0xffdff06f); /* j -4 */
    CHECK_EQ(i.op, OP_JAL);
    CHECK_EQ(i.imm, -4);
    i = decoded(0xfea42e23); /* sw a0, -4(s0) */
    CHECK_EQ(i.op, OP_SW);
    CHECK_EQ(i.imm, -4);
    CHECK_EQ(i.uses, USES_RS1 | USES_RS2);
    i = decoded(0x40355513); /* srai a0, a0, 3 */
    CHECK_EQ(i.op, OP_SRAI);
    CHECK_EQ(i.imm, 3);
    i = decoded(0xb0002573); /* csrr a0, mcycle */
    CHECK_EQ(i.op, OP_CSRRS);
    CHECK_EQ(i.imm, 0xb00);
    i = decoded(0x00b6252f); /* amoadd.w a0, a1, (a2) */
    CHECK_EQ(i.op, OP_AMOADD);
    CHECK_EQ(i.uses, USES_RS1 | USES_RS2);
    i = decoded(0x1406252f); /* lr.w.aq a0, (a2) */
    CHECK_EQ(i.op, OP_LR);
    CHECK_EQ(i.uses, USES_RS1);
    i = decoded(0x1ab6252f); /* sc.w.rl a0, a1, (a2) */
    CHECK_EQ(i.op, OP_SC);
    i = decoded(0x8082); /* ret */
    CHECK_EQ(i.op, OP_JALR);
    CHECK_EQ(i.halfwords, 1);
    CHECK_EQ(i.rs1, 1);
}

static void reserved_patterns(void)
{
    static const uint32_t reserved[] = {
        0x0000,     /* defined as illegal */
        0x0004,     /* c.addi4spn with 0 */
        0x2000,     /* c.fld */
        0x6000,     /* c.flw */
        0x4002,     /* c.lwsp to zero */
        0x8002,     /* c.jr zero */
        0x6101,     /* c.addi16sp with 0 */
        0x6081,     /* c.lui with 0 */
        0x1082,     /* c.slli by 32 */
        0x9001,     /* c.srli by 32 */
        0x9c01,     /* c.subw */
        0x00000053, /* floating point */
        0x40001033, /* sll with the bit of sub */
        0x02001013, /* slli by 32 */
        0x00003003, /* ld */
        0x00002063, /* branch, condition 2 */
        0x1010252f, /* lr.w with a second operand */
        0x0000302f, /* amoadd.d */
        0x2800252f, /* no such atomic operation */
        0x30200073, /* mret: there are no traps to return from */
        0xffffffff,
    };
    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; ++i) {
        if (!CHECK_EQ(decoded(reserved[i]).op, OP_ILLEGAL)) {
            fprintf(stderr, "    0x%08x\n", (unsigned)reserved[i]);
        }
    }
}

static void check_fields(uint32_t word)
{
    const insn_t i = decoded(word);
    const int sound = i.op != OP_UNDECODED && i.op <= OP_AMOMAXU && i.op != OP_END_OF_RAM &&
                      i.rd >= 1 && i.rd <= REG_SINK && i.rs1 < 32 && i.rs2 < 32 &&
                      i.halfwords == (insn_is_long((uint16_t)word) ? 2 : 1);
    if (!sound) {
        CHECK_EQ(word, 0);
    }
}

static void fields_stay_in_range(void)
{
    uint32_t state = 1;
    for (uint32_t low = 0; low < 0x10000; ++low) {
        check_fields(low);
    }
    for (int round = 0; round < 1000000; ++round) {
        state = state * 1664525u + 1013904223u;
        check_fields((state ^ state << 13) | 3u);
    }
    CHECK(1);
}

int main(void)
{
    known_patterns();
    reserved_patterns();
    fields_stay_in_range();
    return htvm_test_report();
}
