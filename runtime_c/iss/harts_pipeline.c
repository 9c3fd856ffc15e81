/* Executing the instructions of harts with the pipeline of the CV32E40P, one by one; see harts.h for
 * their order.
 *
 * Each hart alone has the timing of timing.h.  What it shares with others adds to that:
 *
 *   each cycle in which a bank of the memory nearby does not serve an access    +1
 *   access to other memory                                                      +HTVM_CLUSTER_FAR_WAIT
 *   access to a register of a device or of the cluster                          +HTVM_CLUSTER_REGISTER_WAIT
 *
 * The core waits with the access in its execute stage, whatever follows; a jump behind hides one of
 * these cycles, as behind every instruction that keeps that stage busy.  An access that crosses a word
 * boundary is two, the second one cycle after the first was served.  wfi leaves an empty pipeline.
 * The RTL does the same where accesses are granted late (tests/rtl/test_cluster.py).
 *
 * Each instruction is compared with the ends of its hart's hardware loops: marks in the decode cache
 * (corev_marks.c) would be seen by all harts.
 */
#include "harts.h"

#if defined(HTVM_ISS_HARTS) && !defined(HTVM_CORE_SCOREBOARD)
#include "bits.h"
#include "corev.h"
#include "fetch.h"
#include "harts_access.h"
#include "harts_watch.h"
#include "operations.h"
#include "timing.h"

#include <inttypes.h>
#include <stdio.h>

enum { FAR_WAIT = HTVM_CLUSTER_FAR_WAIT, REGISTER_WAIT = HTVM_CLUSTER_REGISTER_WAIT };

/* How many cycles a hart that touches no memory may be ahead of the others: no result depends on
 * it. */
enum { MOST_AHEAD = 4096 };

/* What pipelines hold of the instructions that are forgotten must not be looked at. */
static void forget_insns(harts_t *all)
{
    htvm_iss_bus_forget_insns(&all->iss->bus);
    for (uint32_t i = 0; i < all->count; ++i) {
        all->hart[i].core.last = all->hart[i].core.second = NULL;
    }
}

/* A branch or jump leads to where an active loop ends. */
static void explain_end(harts_t *all, const hart_t *hart, const insn_t *insn)
{
    const loop_t *const loops = hart->csrs.loops;
    htvm_iss_loop_complain(all->iss, loops, loops[0].behind == insn ? &loops[0] : &loops[1],
                           "a branch or jump leads to its end while it is active");
}

/* ---- one instruction ------------------------------------------------------------------------ */

/* What the loop touches with every instruction is in local variables. */
#define SAVE()                                                                                  \
    (hart->cycle = cycle, hart->retired = retired, hart->next = d, hart->ram = ram,             \
     hart->core = (core_t){last, second, busy_at == retired ? busy : 1, waited})
#define FETCH()                                                                                 \
    (x = hart->x, cycle = hart->cycle, retired = hart->retired, d = hart->next, ram = hart->ram, \
     last = hart->core.last, second = hart->core.second, busy = hart->core.busy,                \
     busy_at = retired, waited = hart->core.waited, FETCH_LOOPS())
#define FETCH_LOOPS() (end0 = hart->csrs.loops[0].behind, end1 = hart->csrs.loops[1].behind)

/* The instruction spends this many cycles more in the execute stage. */
#define BUSY(extra) (busy = (uint32_t)(extra) + 1u, busy_at = retired + 1)

/* What other harts may notice is done in turns. */
#define TURN()           \
    if (cycle > until) { \
        goto not_yet;    \
    }

#define RESULT(operation, expression) \
    case operation:                   \
        x[d->rd] = (expression);      \
        break;

#define BRANCH(operation, condition)                     \
    case operation:                                      \
        if (condition) {                                 \
            cycle += (uint64_t)d->cycles + d->redirect;  \
            retired += 1;                                \
            target = address_of(ram, d) + IMM;           \
            last = second = NULL;                        \
            goto redirected;                             \
        }                                                \
        break;

bool RUN(harts_t *all)
{
    /* In variables, as a machine without such memory has size 0. */
    const uint32_t near_base = NEAR_BASE, near_size = NEAR_SIZE;
    uint8_t *const near = all->near;
    uint64_t other, until, cycle, retired, busy_at;
    const insn_t *last, *second, *end0, *end1;
    uint32_t *x;
    uint32_t target, busy, waited;
    access_t access;
    hart_t *hart;
    ram_t *ram;
    insn_t *d;

next_turn:
    hart = htvm_harts_next(all, &other);
    if (hart == NULL) {
        all->iss->cycles = all->hart[0].cycle;
        return false;
    }
    until = (other - hart->number) >> 8; /* the last cycle of which this hart has a turn before */
    FETCH();
    if (d != NULL) {
        goto arrived;
    }
    target = hart->pc;

redirected:
    if (ram == NULL || target - ram->base >= ram->size || target % 2 != 0) {
        ram = target % 2 == 0 ? htvm_iss_bus_code(&all->iss->bus, target) : NULL;
        if (ram == NULL) {
            snprintf(all->iss->trap, sizeof all->iss->trap,
                     "instruction fetch from 0x%08" PRIx32 ", %s", target,
                     target % 2 == 0 ? "where there is no RAM" : "an odd address");
            goto stopped;
        }
    }
    d = ram->insns + (target - ram->base) / 2;
    if (cycle > all->iss->max_cycles) {
        snprintf(all->iss->trap, sizeof all->iss->trap, "not finished after %" PRIu64 " cycles",
                 all->iss->max_cycles);
        goto stopped;
    }
    if (d == end0 || d == end1) {
        explain_end(all, hart, d);
        goto stopped;
    }
    if (cycle > until && cycle - until > MOST_AHEAD) {
        goto not_yet;
    }

    for (;;) {
        switch ((op_t)d->op) {
        case OP_UNDECODED:
            htvm_iss_decode_in_place(ram, d);
            continue;
        case OP_JAL:
        case OP_JALR: {
            const uint32_t pc = address_of(ram, d);
            const pipeline_t pipe = {last, second, busy_at == retired ? busy : 1};
            target = d->op == OP_JAL ? pc + IMM : (RS1 + IMM) & ~1u;
            const jump_time_t time = htvm_iss_jump_cycles(d, &pipe, straddles(ram, target));
            ON_JUMP(pc);
            x[d->rd] = pc + 2u * d->halfwords;
            cycle += time.cycles;
            retired += 1;
            second = time.hidden ? last : NULL;
            last = time.hidden ? d : NULL;
            goto redirected;
        }
            BRANCH_OPERATIONS(BRANCH)
            BRANCH_IMMEDIATE_OPERATIONS(BRANCH)
            LOAD_OPERATIONS(LOAD)
            LOAD_OPERATIONS(LOAD_POST)
            LOAD_OPERATIONS(LOAD_INDEXED)
            STORE_OPERATIONS(STORE)
            STORE_OPERATIONS(STORE_POST)
            STORE_OPERATIONS(STORE_INDEXED)
            ALU_OPERATIONS(RESULT)
            BIT_OPERATIONS(RESULT)
            RESULT(OP_COREV_ALU, htvm_iss_corev_alu(d, x))
            RESULT(OP_COREV_MUL16, htvm_iss_corev_mul16(d, x))
            RESULT(OP_COREV_SIMD, htvm_iss_corev_simd(d, x, RS2))
            RESULT(OP_COREV_SIMD_SCALAR,
                   htvm_iss_corev_simd(d, x, htvm_iss_corev_replicate(d, RS2)))
            RESULT(OP_COREV_SIMD_CONSTANT, htvm_iss_corev_simd(d, x, IMM))
            RESULT(OP_MUL, RS1 * RS2)
        case OP_ADDI_SP:
        case OP_ADD_SP:
        case OP_SUB_SP:
            x[REG_SP] = d->op == OP_ADDI_SP ? RS1 + IMM
                        : d->op == OP_ADD_SP ? RS1 + RS2
                                             : RS1 - RS2;
            if (!htvm_harts_stack(all->iss, hart, x[REG_SP])) {
                goto trapped;
            }
            break;
        case OP_MULH:
        case OP_MULHSU:
        case OP_MULHU:
            BUSY(MULH_EXTRA); /* in d->cycles already */
            x[d->rd] = high_product((op_t)d->op, RS1, RS2);
            break;
        case OP_DIV:
        case OP_DIVU:
        case OP_REM:
        case OP_REMU: {
            const bool is_signed = d->op == OP_DIV || d->op == OP_REM;
            const uint32_t extra = htvm_iss_division_extra(RS2, is_signed);
            BUSY(extra);
            cycle += extra;
            x[d->rd] = divide((op_t)d->op, RS1, RS2);
            break;
        }
        case OP_FENCE:
        case OP_FENCE_I:
            cycle += d->cycles;
            retired += 1;
            target = address_of(ram, d) + 2u * d->halfwords;
            cycle += straddles(ram, target) ? 1 : 0;
            if (d->op == OP_FENCE_I) {
                forget_insns(all); /* *d too */
            }
            last = second = NULL;
            goto redirected;
        case OP_WFI: {
            const uint64_t now = cycle;
            TURN();
            cycle += d->cycles;
            retired += 1;
            last = second = NULL;
            d += d->halfwords;
            SAVE();
            htvm_harts_sleep(all, hart, now);
            goto next_turn;
        }
        case OP_CSRRW:
        case OP_CSRRS:
        case OP_CSRRC:
        case OP_CSRRWI:
        case OP_CSRRSI:
        case OP_CSRRCI: {
            const counts_t now = {cycle, retired};
            uint32_t result;
            hart->last_effect = retired;
            if (!htvm_iss_csr_access(&hart->csrs, now, d, x, &result)) {
                htvm_iss_explain(all->iss, d);
                goto trapped;
            }
            x[d->rd] = result;
            break;
        }
        case OP_COREV_LOOP:
            if (!htvm_iss_loop_set(all->iss, hart->csrs.loops, x, ram, d)) {
                goto trapped;
            }
            FETCH_LOOPS();
            break;
        case OP_COREV_LOOP_END: /* marks of a core that is alone */
        case OP_LR:
        case OP_SC:
        case OP_AMOSWAP:
        case OP_AMOADD:
        case OP_AMOXOR:
        case OP_AMOAND:
        case OP_AMOOR:
        case OP_AMOMIN:
        case OP_AMOMAX:
        case OP_AMOMINU:
        case OP_AMOMAXU:
        case OP_ILLEGAL:
        case OP_END_OF_RAM:
        case OP_ECALL:
        case OP_EBREAK:
            htvm_iss_explain(all->iss, d);
            goto trapped;
        }
        cycle += d->cycles;
        retired += 1;
        second = last;
        last = d;
        d += d->halfwords;
    arrived:
        if (d == end0 || d == end1) {
            goto loop_end;
        }
    }

loop_end: /* inner loops first; one that has ended is not active any more */
    for (size_t i = 0; i < LOOPS; ++i) {
        loop_t *const loop = &hart->csrs.loops[i];
        if (loop->behind == d) {
            hart->last_effect = retired;
            loop->count -= 1;
            if (loop->count != 0) {
                cycle += (uint64_t)(int64_t)loop->back_cycles;
                target = loop->start;
                goto redirected;
            }
            loop->behind = NULL;
        }
    }
    FETCH_LOOPS();
    goto arrived;

/* Accesses to registers: others may go on before this hart does. */
read_register: {
    insn_t *const insn = d;
    const uint64_t now = cycle;
    uint32_t value;
    BUSY(REGISTER_WAIT);
    cycle += (uint64_t)d->cycles + REGISTER_WAIT;
    retired += 1;
    second = last;
    last = d;
    d += d->halfwords;
    SAVE();
    if (!htvm_harts_read(all, hart, insn, access.addr, access.size, now, &value)) {
        d = insn;
        goto trapped;
    }
    d = insn;
    if (insn_increments(d)) {
        INCREMENT_TO(access.after);
    }
    x[d->rd] = value; /* of a word, as registers are */
    goto next_turn;
}

write_register: {
    insn_t *const insn = d;
    const uint64_t now = cycle;
    ON_STORE(access.addr, access.size, now);
    BUSY(REGISTER_WAIT);
    cycle += (uint64_t)d->cycles + REGISTER_WAIT;
    retired += 1;
    second = last;
    last = d;
    d += d->halfwords;
    SAVE();
    const bool good = htvm_harts_write(all, hart, access.addr, access.size, access.value, now);
    d = insn;
    if (!good) {
        goto trapped;
    }
    if (all->iss->bus.ended) {
        all->iss->cycles = now;
        all->iss->retired = all->hart[0].retired - (hart->number == 0 ? 1 : 0);
        all->iss->pc = address_of(ram, d);
        return true;
    }
    if (insn_increments(d)) {
        INCREMENT_TO(access.after);
    }
    goto next_turn;
}

not_yet:
    SAVE();
    all->due[hart->number] = turn_of(cycle, hart->number);
    goto next_turn;

trapped:
    target = address_of(ram, d);
stopped:
    all->iss->cycles = cycle;
    all->iss->retired = all->hart[0].retired;
    htvm_harts_locate(all, hart, target);
    return false;
}

#endif
