/* The core: fetches decoded instructions and executes them one by one.
 *
 * Compiled twice: execute_watched.c includes this file for runs in which stores and calls are
 * watched, so that all others pay nothing for it. */
#include "arithmetic.h"
#include "bits.h"
#include "corev.h"
#include "fetch.h"
#include "iss.h"
#include "operations.h"
#include "timing.h"
#include "watch.h"

#include <inttypes.h>
#include <stdio.h>

/* Compilers then keep registers for all other instructions: without this, programs of those run up to
 * a third slower. */
#ifdef __GNUC__
__attribute__((cold)) corev_step_t htvm_iss_corev_step(iss_t *iss, ram_t *ram, insn_t *insn,
                                                       const insn_t *last);
__attribute__((cold)) void htvm_iss_decode_in_place(ram_t *ram, insn_t *insn);
#endif

/* ---- running ------------------------------------------------------------------------------ */

#ifdef HTVM_ISS_WATCHED
#define RUN htvm_iss_run_watched
#define ON_JUMP(pc) htvm_iss_watch_jump(iss->watch, 0, d, (pc), target, cycles)
#define ON_STORE(addr, width) \
    htvm_iss_watch_store(iss->watch, 0, address_of(ram, d), (addr), (width), cycles)
#else
#define RUN htvm_iss_run
#define ON_JUMP(pc) ((void)0)
#define ON_STORE(addr, width) ((void)0)
#endif

/* The loop keeps what it touches with every instruction in local variables; helpers that need
 * them see the copies in *iss. */
#define SYNC_OUT() (iss->cycles = cycles, iss->retired = retired, iss->last_effect = last_effect)
#define SYNC_IN() (cycles = iss->cycles, retired = iss->retired)

#define ALU(operation, expression) \
    case operation:                \
        x[d->rd] = (expression);   \
        break;

#define BRANCH(operation, condition)                     \
    case operation:                                      \
        if (condition) {                                 \
            cycles += (uint64_t)d->cycles + d->redirect; \
            retired += 1;                                \
            target = address_of(ram, d) + IMM;           \
            last = second = NULL;                        \
            goto redirected;                             \
        }                                                \
        break;

static bool crosses_word(uint32_t addr, uint32_t size) { return (addr & 3u) + size > 4; }

/* `busy_at` is the number of the instruction behind a multi-cycle one. */
#define BUSY(extra) (cycles += (extra), busy = (extra) + 1u, busy_at = retired + 1)

#define LOAD(operation, width, read, extend)                               \
    case operation: {                                                      \
        const uint32_t addr = RS1 + IMM;                                   \
        uint32_t value;                                                    \
        if (addr - ram->base <= ram->size - (width)) {                     \
            const uint8_t *p = ram->bytes + (addr - ram->base);            \
            value = (read);                                                \
        } else {                                                           \
            SYNC_OUT();                                                    \
            if (!htvm_iss_load_elsewhere(iss, d, addr, (width), &value)) { \
                goto trapped;                                              \
            }                                                              \
            SYNC_IN();                                                     \
        }                                                                  \
        if ((width) > 1 && crosses_word(addr, (width))) {                  \
            BUSY(CROSSING_EXTRA);                                          \
        }                                                                  \
        x[d->rd] = (extend);                                               \
        break;                                                             \
    }

#define STORE(operation, width, write)                                  \
    case operation: {                                                   \
        const uint32_t addr = RS1 + IMM;                                \
        const uint32_t value = RS2;                                     \
        last_effect = retired;                                          \
        ON_STORE(addr, (width));                                        \
        if (addr - ram->base <= ram->size - (width)) {                  \
            uint8_t *p = ram->bytes + (addr - ram->base);               \
            write;                                                      \
        } else {                                                        \
            SYNC_OUT();                                                 \
            if (!htvm_iss_store_elsewhere(iss, addr, (width), value)) { \
                goto trapped;                                           \
            }                                                           \
            if (iss->bus.ended) {                                       \
                goto ended;                                             \
            }                                                           \
        }                                                               \
        if ((width) > 1 && crosses_word(addr, (width))) {               \
            BUSY(CROSSING_EXTRA);                                       \
        }                                                               \
        break;                                                          \
    }

bool RUN(iss_t *iss)
{
    uint32_t *const x = iss->x;
    uint64_t cycles = iss->cycles;
    uint64_t retired = iss->retired;
    uint64_t last_effect = iss->last_effect;
    uint32_t target = iss->pc;
    uint64_t busy_at = 0;
    uint32_t busy = 1;
    const insn_t *last = NULL;
    const insn_t *second = NULL;
    ram_t *ram = NULL;
    insn_t *d = NULL;

redirected:
    if (ram == NULL || target - ram->base >= ram->size || target % 2 != 0) {
        ram = target % 2 == 0 ? htvm_iss_bus_code(&iss->bus, target) : NULL;
        if (ram == NULL) {
            SYNC_OUT();
            snprintf(iss->trap, sizeof iss->trap, "instruction fetch from 0x%08" PRIx32 ", %s",
                     target, target % 2 == 0 ? "where there is no RAM" : "an odd address");
            iss->pc = target;
            return false;
        }
    }
    if (cycles > iss->max_cycles) {
        SYNC_OUT();
        iss->pc = target;
        snprintf(iss->trap, sizeof iss->trap, "not finished after %" PRIu64 " cycles",
                 iss->max_cycles);
        htvm_iss_locate(iss, target);
        return false;
    }
    d = ram->insns + (target - ram->base) / 2;

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
            ON_JUMP(pc);
            const jump_time_t time = htvm_iss_jump_cycles(d, &pipe, straddles(ram, target));
            x[d->rd] = pc + 2u * d->halfwords;
            cycles += time.cycles;
            retired += 1;
            second = time.hidden ? last : NULL;
            last = time.hidden ? d : NULL;
            goto redirected;
        }
            BRANCH_OPERATIONS(BRANCH)
            LOAD_OPERATIONS(LOAD)
            STORE_OPERATIONS(STORE)
            ALU_OPERATIONS(ALU)
            BIT_OPERATIONS(ALU)
        case OP_ADDI_SP:
        case OP_ADD_SP:
        case OP_SUB_SP:
            x[REG_SP] = d->op == OP_ADDI_SP ? RS1 + IMM
                        : d->op == OP_ADD_SP ? RS1 + RS2
                                             : RS1 - RS2;
            if (!htvm_iss_stack_write(iss, x[REG_SP])) {
                goto trapped;
            }
            break;
        case OP_MUL:
            x[d->rd] = RS1 * RS2;
            break;
        case OP_MULH:
        case OP_MULHSU:
        case OP_MULHU:
            busy = MULH_EXTRA + 1; /* in d->cycles already */
            busy_at = retired + 1;
            x[d->rd] = high_product((op_t)d->op, RS1, RS2);
            break;
        case OP_DIV:
        case OP_DIVU:
        case OP_REM:
        case OP_REMU: {
            const bool is_signed = d->op == OP_DIV || d->op == OP_REM;
            BUSY(htvm_iss_division_extra(RS2, is_signed));
            x[d->rd] = divide((op_t)d->op, RS1, RS2);
            break;
        }
        case OP_FENCE:
        case OP_FENCE_I:
            cycles += d->cycles;
            retired += 1;
            target = address_of(ram, d) + 2u * d->halfwords;
            cycles += straddles(ram, target) ? 1 : 0;
            if (d->op == OP_FENCE_I) {
                htvm_iss_loops_forget_insns(iss); /* *d too */
            }
            last = second = NULL;
            goto redirected;
        case OP_CSRRW:
        case OP_CSRRS:
        case OP_CSRRC:
        case OP_CSRRWI:
        case OP_CSRRSI:
        case OP_CSRRCI: {
            uint32_t result;
            last_effect = retired;
            SYNC_OUT();
            if (!htvm_iss_csr(iss, d, &result)) {
                htvm_iss_explain(iss, d);
                goto trapped;
            }
            x[d->rd] = result;
            break;
        }
            COREV_CASES
            {
                SYNC_OUT();
                const corev_step_t step = htvm_iss_corev_step(iss, ram, d, last);
                SYNC_IN();
                last_effect = iss->last_effect;
                switch (step) {
                case COREV_NEXT:
                    break;
                case COREV_CROSSED:
                    BUSY(0);
                    busy = CROSSING_EXTRA + 1u;
                    break;
                case COREV_BRANCHED:
                    target = iss->pc;
                    last = second = NULL;
                    goto redirected;
                case COREV_LOOPED:
                    target = iss->pc;
                    goto redirected;
                case COREV_AGAIN:
                    continue;
                case COREV_ENDED:
                    goto ended;
                case COREV_TRAPPED:
                    goto trapped;
                }
                break;
            }
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
        case OP_WFI:
            htvm_iss_explain(iss, d);
            goto trapped;
        }
        cycles += d->cycles;
        retired += 1;
        second = last;
        last = d;
        d += d->halfwords;
    }

trapped:
    SYNC_OUT();
    iss->pc = address_of(ram, d);
    htvm_iss_locate(iss, iss->pc);
    return false;

ended:
    SYNC_OUT();
    iss->pc = address_of(ram, d);
    return true;
}
