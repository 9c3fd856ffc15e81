/* Hardware loops of the CORE-V extensions.
 *
 * The core goes back to a loop's start behind the instruction in front of its end, in no time.  Here
 * nothing is compared while a body runs: as long as a loop is active, the decoded instruction behind
 * its body is an OP_COREV_LOOP_END.
 *
 * The architecture leaves programs undefined that break its rules for loops; the core does not
 * notice.  Here they end with the rule they break.
 */
#include "corev.h"
#include "fetch.h"
#include "iss.h"
#include "timing.h"

#include <inttypes.h>
#include <stdio.h>

enum { SHORTEST_BODY = 3, NESTED_ENDS_APART = 8, NO_FLUSH = 3 };

static uint32_t number_of(const iss_t *iss, const loop_t *loop)
{
    return (uint32_t)(loop - iss->csrs.loops);
}

static bool complain(iss_t *iss, const loop_t *loop, const char *rule)
{
    snprintf(iss->trap, sizeof iss->trap,
             "hardware loop %" PRIu32 " from 0x%08" PRIx32 " to 0x%08" PRIx32 ": %s",
             number_of(iss, loop), loop->start, loop->end, rule);
    return false;
}

/* ---- the mark behind a body --------------------------------------------------------------- */

static void mark(loop_t *loop, ram_t *ram)
{
    insn_t *const entry = ram->insns + (loop->end - ram->base) / 2;
    if (entry->op == OP_UNDECODED) {
        htvm_iss_decode_in_place(ram, entry);
    }
    const insn_t last = htvm_iss_decode_at(ram, loop->end - 4u - ram->base);
    const insn_t first = htvm_iss_decode_at(ram, loop->start - ram->base);
    const insn_t behind = htvm_iss_decode_at(ram, loop->end - ram->base);
    loop->back_cycles = (int8_t)(htvm_iss_static_cycles(&last, &first) -
                                 htvm_iss_static_cycles(&last, &behind));
    loop->marked_op = entry->op;
    loop->mark = entry;
    entry->op = OP_COREV_LOOP_END;
}

static void unmark(loop_t *loop)
{
    if (loop->mark != NULL) {
        loop->mark->op = loop->marked_op;
        loop->mark = NULL;
    }
}

/* ---- the rules ---------------------------------------------------------------------------- */

static bool check_body(iss_t *iss, const loop_t *loop, const ram_t *ram)
{
    for (uint32_t addr = loop->start; addr != loop->end; addr += 4) {
        const insn_t insn = htvm_iss_decode_at(ram, addr - ram->base);
        if (insn.halfwords != 2) {
            return complain(iss, loop, "its body has a 16-bit instruction");
        }
        if (insn_is_branch(&insn) || insn_is_jump(&insn)) {
            return complain(iss, loop, "its body has a branch or jump");
        }
        if (insn.op == OP_FENCE || insn.op == OP_FENCE_I || insn.op == OP_WFI) {
            return complain(iss, loop, "its body has a fence or wfi");
        }
        /* No rule forbids this, but the core then goes back in another way, which takes time, and as
         * the last instruction it counts below 0. */
        if (insn_is_csr(&insn) && htvm_iss_csr_flushes((uint32_t)insn.imm) &&
            loop->end - addr <= 4u * NO_FLUSH) {
            return complain(iss, loop, "its last 3 instructions access a counter or trap register, "
                                       "whose timing there is not simulated");
        }
    }
    return true;
}

static bool check_nesting(iss_t *iss, const loop_t *loop)
{
    const loop_t *const inner = &iss->csrs.loops[0];
    const loop_t *const outer = &iss->csrs.loops[1];
    /* One that runs once never goes back: it may end anywhere. */
    if (inner->count <= 1 || outer->count <= 1 || inner->end <= outer->start ||
        outer->end <= inner->start) {
        return true;
    }
    if (inner->start < outer->start || inner->end > outer->end) {
        return complain(iss, loop, "loop 0 must be the inner one, within loop 1");
    }
    return outer->end - inner->end >= NESTED_ENDS_APART ||
           complain(iss, loop, "the inner loop must end at least 8 bytes before the outer one");
}

static bool is_within(const loop_t *loop, const ram_t *ram)
{
    return loop->start >= ram->base && loop->end - ram->base <= ram->size;
}

static bool check(iss_t *iss, const loop_t *loop, ram_t *ram)
{
    if (loop->end <= loop->start) {
        return complain(iss, loop, "its end must be behind its start");
    }
    if (loop->end - loop->start < 4u * SHORTEST_BODY) {
        return complain(iss, loop, "its body must have at least 3 instructions");
    }
    if (!is_within(loop, ram)) {
        return complain(iss, loop, "it is not in the RAM of the instruction that starts it");
    }
    return check_body(iss, loop, ram) && check_nesting(iss, loop);
}

/* ---- execution ---------------------------------------------------------------------------- */

static bool set_address(iss_t *iss, loop_t *loop, uint32_t *which, uint32_t addr)
{
    *which = addr & ~3u;
    if (loop->count != 0) {
        return complain(iss, loop, "its start and end must not change before its count is 0");
    }
    return addr % 4 == 0 || complain(iss, loop, "its start and end must be on word boundaries");
}

static bool set_count(iss_t *iss, loop_t *loop, ram_t *ram, uint32_t count, uint32_t pc)
{
    if (loop->count != 0 && pc - loop->start < loop->end - loop->start) {
        return complain(iss, loop, "its count must not change in its body");
    }
    unmark(loop);
    loop->count = count;
    if (count == 0 && (loop->end <= loop->start || !is_within(loop, ram))) {
        return true; /* clears a loop that is not set up */
    }
    if (!check(iss, loop, ram)) {
        return false;
    }
    if (count != 0) {
        mark(loop, ram);
    }
    return true;
}

bool htvm_iss_loop_set(iss_t *iss, ram_t *ram, const insn_t *insn)
{
    loop_t *const loop = &iss->csrs.loops[insn->rd & 1u];
    const uint32_t pc = address_of(ram, insn);
    const uint32_t value = iss->x[insn->rs1], constant = (uint32_t)insn->imm;

    if (pc % 4 != 0 && insn->function != LOOP_START && insn->function != LOOP_END &&
        insn->function != LOOP_COUNT && insn->function != LOOP_COUNTI) {
        return complain(iss, loop, "an instruction that sets it up must be on a word boundary");
    }
    switch (insn->function) {
    case LOOP_STARTI:
        return set_address(iss, loop, &loop->start, pc + 4u * constant);
    case LOOP_START:
        return set_address(iss, loop, &loop->start, value);
    case LOOP_ENDI:
        return set_address(iss, loop, &loop->end, pc + 4u * constant);
    case LOOP_END:
        return set_address(iss, loop, &loop->end, value);
    case LOOP_COUNTI:
        return set_count(iss, loop, ram, constant, pc);
    case LOOP_COUNT:
        return set_count(iss, loop, ram, value, pc);
    default: {
        const bool counts = insn->function == LOOP_SETUPI;
        const uint32_t words = counts ? insn->rs2 : constant;
        return set_address(iss, loop, &loop->start, pc + 4u) &&
               set_address(iss, loop, &loop->end, pc + 4u * words) &&
               set_count(iss, loop, ram, counts ? constant : value, pc);
    }
    }
}

const loop_t *htvm_iss_loop_end(iss_t *iss, insn_t *insn, const insn_t *last)
{
    loop_t *const loops = iss->csrs.loops;
    loop_t *const loop = loops[0].mark == insn ? &loops[0] : &loops[1];
    if (last != insn - 2) {
        complain(iss, loop, "a branch or jump leads to its end while it is active");
        return NULL;
    }
    loop->count -= 1;
    if (loop->count != 0) {
        return loop;
    }
    unmark(loop);
    return NULL;
}

void htvm_iss_loops_forget_insns(iss_t *iss)
{
    loop_t *const loops = iss->csrs.loops;
    for (size_t i = 0; i < LOOPS; ++i) {
        if (loops[i].mark != NULL) {
            loops[i].mark->op = loops[i].marked_op;
        }
    }
    htvm_iss_bus_forget_insns(&iss->bus);
    for (size_t i = 0; i < LOOPS; ++i) {
        if (loops[i].mark != NULL) {
            ram_t *const ram = htvm_iss_bus_code(&iss->bus, loops[i].start);
            mark(&loops[i], ram);
        }
    }
}
