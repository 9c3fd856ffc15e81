/* Executing the instructions of harts with a scoreboard, one by one; see harts.h for their order.
 *
 * Timing (htvm_soc.h has the numbers): an instruction issues when its operands have arrived and its
 * destination is not awaited, one per cycle; a result arrives later than the next cycle after a
 * load, a multiplication or division, an atomic operation.  Taken branches and jumps take longer.
 * Accesses to memory that is not nearby go through a queue of few places.
 */
#include "harts.h"

#ifdef HTVM_CORE_SCOREBOARD
#include "bits.h"
#include "corev.h"
#include "harts_watch.h"
#include "operations.h"

#include <inttypes.h>
#include <stdio.h>

/* How many cycles a hart that touches no memory may be ahead of the others: no result depends on
 * it. */
enum { MOST_AHEAD = 4096 };

static uint32_t address_of(const ram_t *ram, const insn_t *insn)
{
    return ram->base + 2u * (uint32_t)(insn - ram->insns);
}

/* The cycle in which an access to other memory that is ready at `cycle` issues. */
static uint64_t far_access(hart_t *hart, uint64_t cycle)
{
    uint64_t *const slot = &hart->core.far[hart->core.far_oldest];
    const uint64_t issues = *slot > cycle ? *slot : cycle;
    *slot = issues + HTVM_CORE_FAR;
    hart->core.far_oldest = (hart->core.far_oldest + 1) % HTVM_CORE_FAR_OUTSTANDING;
    return issues;
}

/* What the loop touches with every instruction is in local variables. */
#define SAVE() (hart->cycle = cycle, hart->retired = retired, hart->next = d, hart->ram = ram, \
                hart->core.pending = pending)
#define FETCH() (x = hart->x, ready = hart->core.ready, cycle = hart->cycle, retired = hart->retired, \
                 d = hart->next, ram = hart->ram, pending = hart->core.pending)

/* Nobody waits for what is thrown away. */
#define RESULT_AT(when)         \
    do {                        \
        ready[d->rd] = (when);  \
        ready[REG_SINK] = 0;    \
        if (pending < (when)) { \
            pending = (when);   \
        }                       \
    } while (0)

#define AWAIT(reg)                 \
    if (ready[reg] > cycle) {      \
        cycle = ready[reg];        \
    }

/* What other harts may notice is done in turns. */
#define TURN()                                        \
    if (turn_of(cycle, hart->number) > other) {       \
        goto not_yet;                                 \
    }

#define ALU(operation, expression) \
    case operation:                \
        x[d->rd] = (expression);   \
        break;

#define BRANCH(operation, condition)         \
    case operation:                          \
        if (condition) {                     \
            target = address_of(ram, d) + IMM; \
            cycle += 1 + HTVM_CORE_REDIRECT; \
            retired += 1;                    \
            goto redirected;                 \
        }                                    \
        break;

#define ALIGNED(addr, width)                        \
    if ((addr) % (width) != 0) {                    \
        htvm_harts_misaligned(all->iss, (addr), (width)); \
        goto trapped;                               \
    }

#define LOAD(operation, width, read, extend)                                      \
    case operation: {                                                             \
        const uint32_t addr = RS1 + IMM;                                          \
        const uint8_t *p;                                                         \
        uint32_t value;                                                           \
        TURN();                                                                   \
        ALIGNED(addr, width);                                                     \
        if (addr - near_base < near_size) {                                       \
            hart->last_effect = retired;                                          \
            p = near + (addr - near_base);                                        \
            cycle = htvm_harts_bank(all, addr, cycle, 1);                             \
            value = (read);                                                       \
            x[d->rd] = (extend);                                                  \
            RESULT_AT(cycle + HTVM_CORE_LOAD);                                    \
            break;                                                                \
        }                                                                         \
        p = htvm_iss_bus_map(&all->iss->bus, addr, (width));                      \
        if (p == NULL) {                                                          \
            size = (width);                                                       \
            goto read_register;                                                   \
        }                                                                         \
        hart->last_effect = retired;                                              \
        cycle = far_access(hart, cycle);                                          \
        value = (read);                                                           \
        x[d->rd] = (extend);                                                      \
        RESULT_AT(cycle + HTVM_CORE_FAR);                                         \
        break;                                                                    \
    }

#define STORE(operation, width, write)                       \
    case operation: {                                        \
        const uint32_t addr = RS1 + IMM;                     \
        const uint32_t value = RS2;                          \
        uint8_t *p;                                          \
        TURN();                                              \
        ALIGNED(addr, width);                                \
        hart->last_effect = retired;                         \
        if (all->reservations != 0) {                        \
            htvm_harts_stored(all, hart, addr);              \
        }                                                    \
        if (addr - near_base < near_size) {                  \
            p = near + (addr - near_base);                   \
            cycle = htvm_harts_bank(all, addr, cycle, 1);    \
            ON_STORE(addr, (width), cycle);                  \
            write;                                           \
            break;                                           \
        }                                                    \
        p = htvm_iss_bus_map(&all->iss->bus, addr, (width)); \
        if (p == NULL) {                                     \
            size = (width);                                  \
            goto write_register;                             \
        }                                                    \
        cycle = far_access(hart, cycle);                     \
        ON_STORE(addr, (width), cycle);                      \
        write;                                               \
        break;                                               \
    }

bool RUN(harts_t *all)
{
    /* In variables, as a machine without such memory has size 0. */
    const uint32_t near_base = NEAR_BASE, near_size = NEAR_SIZE;
    uint8_t *const near = all->near;
    uint64_t other, cycle, retired, pending;
    uint64_t *ready;
    uint32_t *x;
    uint32_t target, size;
    hart_t *hart;
    ram_t *ram;
    insn_t *d;

next_turn:
    hart = htvm_harts_next(all, &other);
    if (hart == NULL) {
        all->iss->cycles = all->hart[0].cycle;
        return false;
    }
    FETCH();
    if (d != NULL) {
        goto execute;
    }
    target = hart->pc;

redirected:
    if (ram == NULL || target - ram->base >= ram->size || target % 4 != 0) {
        ram = target % 4 == 0 ? htvm_iss_bus_code(&all->iss->bus, target) : NULL;
        if (ram == NULL) {
            snprintf(all->iss->trap, sizeof all->iss->trap,
                     "instruction fetch from 0x%08" PRIx32 ", %s", target,
                     target % 4 == 0 ? "where there is no RAM" : "a misaligned address");
            goto stopped;
        }
    }
    d = ram->insns + (target - ram->base) / 2;
    if (cycle > all->iss->max_cycles) {
        snprintf(all->iss->trap, sizeof all->iss->trap, "not finished after %" PRIu64 " cycles",
                 all->iss->max_cycles);
        goto stopped;
    }
    if (turn_of(cycle, 0) > other && cycle - (other >> 8) > MOST_AHEAD) {
        goto not_yet;
    }

execute:
    for (;;) {
        if (pending > cycle) {
            AWAIT(d->rs1);
            AWAIT(d->rs2);
            AWAIT(d->rd);
        }
        switch ((op_t)d->op) {
        case OP_UNDECODED:
            htvm_harts_decode(ram, d);
            continue;
            BRANCH_OPERATIONS(BRANCH)
            LOAD_OPERATIONS(LOAD)
            STORE_OPERATIONS(STORE)
            ALU_OPERATIONS(ALU)
            BIT_OPERATIONS(ALU)
        case OP_JAL:
        case OP_JALR: {
            const uint32_t pc = address_of(ram, d);
            target = d->op == OP_JAL ? pc + IMM : (RS1 + IMM) & ~1u;
            ON_JUMP(pc);
            x[d->rd] = pc + 4;
            cycle += 1 + HTVM_CORE_REDIRECT;
            retired += 1;
            goto redirected;
        }
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
        case OP_MUL:
            x[d->rd] = RS1 * RS2;
            RESULT_AT(cycle + HTVM_CORE_MULTIPLY);
            break;
        case OP_MULH:
        case OP_MULHSU:
        case OP_MULHU:
            x[d->rd] = high_product((op_t)d->op, RS1, RS2);
            RESULT_AT(cycle + HTVM_CORE_MULTIPLY);
            break;
        case OP_DIV:
        case OP_DIVU:
        case OP_REM:
        case OP_REMU:
            if (hart->core.divider_free > cycle) {
                cycle = hart->core.divider_free;
            }
            hart->core.divider_free = cycle + HTVM_CORE_DIVIDE;
            x[d->rd] = divide((op_t)d->op, RS1, RS2);
            RESULT_AT(hart->core.divider_free);
            break;
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
        case OP_AMOMAXU: {
            const uint32_t addr = RS1;
            const bool is_near = addr - near_base < near_size;
            TURN();
            ALIGNED(addr, 4u);
            uint8_t *const p = htvm_iss_bus_map(&all->iss->bus, addr, 4);
            if (p == NULL) {
                snprintf(all->iss->trap, sizeof all->iss->trap,
                         "atomic access to 0x%08" PRIx32 ", where there is no RAM", addr);
                goto trapped;
            }
            hart->last_effect = retired;
            cycle = is_near ? htvm_harts_bank(all, addr, cycle, 2) : far_access(hart, cycle);
            const uint32_t result = htvm_harts_atomic(all, hart, d, addr, p);
            if (d->op != OP_LR && (d->op != OP_SC || result == 0)) {
                ON_STORE(addr, 4u, cycle);
            }
            x[d->rd] = result;
            RESULT_AT(cycle + (is_near ? HTVM_CORE_ATOMIC : HTVM_CORE_FAR));
            break;
        }
        case OP_FENCE:
        case OP_FENCE_I: {
            const uint64_t *const ends = hart->core.far;
            for (uint32_t i = 0; i < HTVM_CORE_FAR_OUTSTANDING; ++i) {
                cycle = ends[i] > cycle ? ends[i] : cycle;
            }
            if (d->op == OP_FENCE_I) {
                htvm_iss_bus_forget_insns(&all->iss->bus); /* *d too */
            }
            cycle += 1;
            retired += 1;
            d += 2;
            continue;
        }
        case OP_WFI:
            TURN();
            cycle += 1;
            retired += 1;
            d += 2;
            SAVE();
            htvm_harts_sleep(all, hart, cycle - 1);
            goto next_turn;
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
        COREV_CASES
        case OP_ILLEGAL:
        case OP_END_OF_RAM:
        case OP_ECALL:
        case OP_EBREAK:
            htvm_iss_explain(all->iss, d);
            goto trapped;
        }
        cycle += 1;
        retired += 1;
        d += 2;
    }

read_register: {
    insn_t *const insn = d;
    const uint64_t now = cycle;
    const uint32_t addr = RS1 + IMM;
    uint32_t value;
    RESULT_AT(cycle + HTVM_CORE_REGISTER);
    cycle += 1;
    retired += 1;
    d += 2;
    SAVE();
    if (!htvm_harts_read(all, hart, insn, addr, size, now, &value)) {
        d = insn;
        goto trapped;
    }
    x[insn->rd] = value; /* of a word, as registers are */
    goto next_turn;
}

write_register: {
    insn_t *const insn = d;
    const uint64_t now = cycle;
    const uint32_t addr = RS1 + IMM, value = RS2;
    ON_STORE(addr, size, now);
    cycle += 1;
    retired += 1;
    d += 2;
    SAVE();
    if (!htvm_harts_write(all, hart, addr, size, value, now)) {
        d = insn;
        goto trapped;
    }
    if (all->iss->bus.ended) {
        all->iss->cycles = now;
        all->iss->retired = all->hart[0].retired - (hart->number == 0 ? 1 : 0);
        all->iss->pc = address_of(ram, insn);
        return true;
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
