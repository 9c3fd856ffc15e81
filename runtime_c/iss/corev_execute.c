/* Executing a CORE-V instruction, for the loop of execute.c.
 *
 * They are not cases of that loop, for which compilers would have fewer registers: programs without
 * CORE-V instructions would run slower. */
#include "corev.h"
#include "fetch.h"
#include "iss.h"
#include "operations.h"
#include "timing.h"
#include "watch.h"

#include <inttypes.h>
#include <stdio.h>

static bool crosses_word(uint32_t addr, uint32_t size) { return (addr & 3u) + size > 4; }

static corev_step_t accessed(iss_t *iss, uint32_t addr, uint32_t size)
{
    if (crosses_word(addr, size)) {
        iss->cycles += CROSSING_EXTRA;
        return COREV_CROSSED;
    }
    return COREV_NEXT;
}

/* Where the address register is x0, nothing is written. */
static bool increment(iss_t *iss, const insn_t *d, uint32_t addr)
{
    if (d->rs1 == 0) {
        return true;
    }
    iss->x[d->rs1] = addr;
    return d->rs1 != REG_SP || htvm_iss_stack_write(iss, addr);
}

/* A load from `address`; `then` is done before the register is written: the value loaded wins. */
#define LOAD_FROM(operation, width, read, extend, address, then)           \
    case operation: {                                                      \
        const uint32_t addr = (address);                                   \
        uint32_t value;                                                    \
        if (addr - ram->base <= ram->size - (width)) {                     \
            const uint8_t *p = ram->bytes + (addr - ram->base);            \
            value = (read);                                                \
        } else if (!htvm_iss_load_elsewhere(iss, d, addr, (width), &value)) { \
            return COREV_TRAPPED;                                          \
        }                                                                  \
        if (!(then)) {                                                     \
            return COREV_TRAPPED;                                          \
        }                                                                  \
        x[d->rd] = (extend);                                               \
        return accessed(iss, addr, (width));                               \
    }

#define STORE_TO(operation, width, write, address, then)                   \
    case operation: {                                                      \
        const uint32_t addr = (address);                                   \
        const uint32_t value = RS2;                                        \
        iss->last_effect = iss->retired;                                   \
        if (iss->watch != NULL) {                                          \
            htvm_iss_watch_store(iss->watch, 0, address_of(ram, d), addr, (width), \
                                 iss->cycles);                             \
        }                                                                  \
        if (addr - ram->base <= ram->size - (width)) {                     \
            uint8_t *p = ram->bytes + (addr - ram->base);                  \
            write;                                                         \
        } else if (!htvm_iss_store_elsewhere(iss, addr, (width), value)) { \
            return COREV_TRAPPED;                                          \
        } else if (iss->bus.ended) {                                       \
            return COREV_ENDED;                                            \
        }                                                                  \
        if (!(then)) {                                                     \
            return COREV_TRAPPED;                                          \
        }                                                                  \
        return accessed(iss, addr, (width));                               \
    }

#define LOAD_POST(op, width, read, extend) \
    LOAD_FROM(op##_POST, width, read, extend, RS1, increment(iss, d, addr + IMM + RS2))
#define LOAD_INDEXED(op, width, read, extend) \
    LOAD_FROM(op##_INDEXED, width, read, extend, RS1 + RS2, true)
#define STORE_POST(op, width, write) \
    STORE_TO(op##_POST, width, write, RS1, increment(iss, d, addr + IMM + x[d->rd]))
#define STORE_INDEXED(op, width, write) STORE_TO(op##_INDEXED, width, write, RS1 + x[d->rd], true)

#define BRANCH(operation, condition)                    \
    case operation:                                     \
        if (!(condition)) {                             \
            return COREV_NEXT;                          \
        }                                               \
        iss->cycles += (uint64_t)d->cycles + d->redirect; \
        iss->retired += 1;                              \
        iss->pc = address_of(ram, d) + IMM;             \
        return COREV_BRANCHED;

#define RESULT(operation, expression) \
    case operation:                   \
        x[d->rd] = (expression);      \
        return COREV_NEXT;

static corev_step_t end_of_loop(iss_t *iss, insn_t *d, const insn_t *last)
{
    const loop_t *const loop = htvm_iss_loop_end(iss, d, last);
    if (loop != NULL) {
        iss->cycles += (uint64_t)(int64_t)loop->back_cycles;
        iss->last_effect = iss->retired; /* it counted */
        iss->pc = loop->start;
        return COREV_LOOPED;
    }
    return iss->trap[0] == '\0' ? COREV_AGAIN : COREV_TRAPPED;
}

corev_step_t htvm_iss_corev_step(iss_t *iss, ram_t *ram, insn_t *d, const insn_t *last)
{
    uint32_t *const x = iss->x;
    switch (d->op) {
        LOAD_OPERATIONS(LOAD_POST)
        LOAD_OPERATIONS(LOAD_INDEXED)
        STORE_OPERATIONS(STORE_POST)
        STORE_OPERATIONS(STORE_INDEXED)
        BRANCH_IMMEDIATE_OPERATIONS(BRANCH)
        RESULT(OP_COREV_ALU, htvm_iss_corev_alu(d, x))
        RESULT(OP_COREV_MUL16, htvm_iss_corev_mul16(d, x))
        RESULT(OP_COREV_SIMD, htvm_iss_corev_simd(d, x, RS2))
        RESULT(OP_COREV_SIMD_SCALAR, htvm_iss_corev_simd(d, x, htvm_iss_corev_replicate(d, RS2)))
        RESULT(OP_COREV_SIMD_CONSTANT, htvm_iss_corev_simd(d, x, IMM))
    case OP_COREV_LOOP:
        return htvm_iss_loop_set_marked(iss, ram, d) ? COREV_NEXT : COREV_TRAPPED;
    case OP_COREV_LOOP_END:
        return end_of_loop(iss, d, last);
    default:
        snprintf(iss->trap, sizeof iss->trap, "the simulator cannot execute what it decoded");
        return COREV_TRAPPED;
    }
}
