/* Hardware loops of the CORE-V extensions: their registers, and the rules for them.
 *
 * The core goes back to a loop's start behind the instruction in front of its end, in no time.  Who
 * executes instructions looks for that place: corev_marks.c, harts_pipeline.c.
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

/* Where an instruction sets one of a core's loops. */
typedef struct {
    iss_t *iss; /* for its trap */
    loop_t *loops, *loop;
    ram_t *ram; /* that holds the instruction, at pc */
    uint32_t pc;
} setting_t;

bool htvm_iss_loop_complain(iss_t *iss, const loop_t *loops, const loop_t *loop, const char *rule)
{
    snprintf(iss->trap, sizeof iss->trap,
             "hardware loop %" PRIu32 " from 0x%08" PRIx32 " to 0x%08" PRIx32 ": %s",
             (uint32_t)(loop - loops), loop->start, loop->end, rule);
    return false;
}

static bool complain(const setting_t *at, const char *rule)
{
    return htvm_iss_loop_complain(at->iss, at->loops, at->loop, rule);
}

/* ---- the rules ---------------------------------------------------------------------------- */

static bool check_body(const setting_t *at)
{
    const loop_t *const loop = at->loop;
    const ram_t *const ram = at->ram;
    for (uint32_t addr = loop->start; addr != loop->end; addr += 4) {
        const insn_t insn = htvm_iss_decode_at(ram, addr - ram->base);
        if (insn.halfwords != 2) {
            return complain(at, "its body has a 16-bit instruction");
        }
        if (insn_is_branch(&insn) || insn_is_jump(&insn)) {
            return complain(at, "its body has a branch or jump");
        }
        if (insn.op == OP_FENCE || insn.op == OP_FENCE_I || insn.op == OP_WFI) {
            return complain(at, "its body has a fence or wfi");
        }
        /* No rule forbids this, but the core then goes back in another way, which takes time, and as
         * the last instruction it counts below 0. */
        if (insn_is_csr(&insn) && htvm_iss_csr_flushes((uint32_t)insn.imm) &&
            loop->end - addr <= 4u * NO_FLUSH) {
            return complain(at, "its last 3 instructions access a counter or trap register, "
                                "whose timing there is not simulated");
        }
    }
    return true;
}

static bool check_nesting(const setting_t *at)
{
    const loop_t *const inner = &at->loops[0];
    const loop_t *const outer = &at->loops[1];
    /* One that runs once never goes back: it may end anywhere. */
    if (inner->count <= 1 || outer->count <= 1 || inner->end <= outer->start ||
        outer->end <= inner->start) {
        return true;
    }
    if (inner->start < outer->start || inner->end > outer->end) {
        return complain(at, "loop 0 must be the inner one, within loop 1");
    }
    return outer->end - inner->end >= NESTED_ENDS_APART ||
           complain(at, "the inner loop must end at least 8 bytes before the outer one");
}

static bool is_within(const loop_t *loop, const ram_t *ram)
{
    return loop->start >= ram->base && loop->end - ram->base <= ram->size;
}

static bool check(const setting_t *at)
{
    const loop_t *const loop = at->loop;
    if (loop->end <= loop->start) {
        return complain(at, "its end must be behind its start");
    }
    if (loop->end - loop->start < 4u * SHORTEST_BODY) {
        return complain(at, "its body must have at least 3 instructions");
    }
    if (!is_within(loop, at->ram)) {
        return complain(at, "it is not in the RAM of the instruction that starts it");
    }
    return check_body(at) && check_nesting(at);
}

/* ---- execution ---------------------------------------------------------------------------- */

static bool set_address(const setting_t *at, uint32_t *which, uint32_t addr)
{
    *which = addr & ~3u;
    if (at->loop->count != 0) {
        return complain(at, "its start and end must not change before its count is 0");
    }
    return addr % 4 == 0 || complain(at, "its start and end must be on word boundaries");
}

/* An active loop: where it ends, and what going back costs. */
static void activate(loop_t *loop, ram_t *ram)
{
    const insn_t last = htvm_iss_decode_at(ram, loop->end - 4u - ram->base);
    const insn_t first = htvm_iss_decode_at(ram, loop->start - ram->base);
    const insn_t behind = htvm_iss_decode_at(ram, loop->end - ram->base);
    loop->back_cycles = (int8_t)(htvm_iss_static_cycles(&last, &first) -
                                 htvm_iss_static_cycles(&last, &behind));
    loop->behind = ram->insns + (loop->end - ram->base) / 2;
}

static bool set_count(const setting_t *at, uint32_t count)
{
    loop_t *const loop = at->loop;
    if (loop->count != 0 && at->pc - loop->start < loop->end - loop->start) {
        return complain(at, "its count must not change in its body");
    }
    loop->behind = NULL;
    loop->count = count;
    if (count == 0 && (loop->end <= loop->start || !is_within(loop, at->ram))) {
        return true; /* clears a loop that is not set up */
    }
    if (!check(at)) {
        return false;
    }
    if (count != 0) {
        activate(loop, at->ram);
    }
    return true;
}

bool htvm_iss_loop_set(iss_t *iss, loop_t *loops, const uint32_t *x, ram_t *ram,
                       const insn_t *insn)
{
    loop_t *const loop = &loops[insn->rd & 1u];
    const uint32_t pc = address_of(ram, insn);
    const uint32_t value = x[insn->rs1], constant = (uint32_t)insn->imm;
    const setting_t at = {iss, loops, loop, ram, pc};

    if (pc % 4 != 0 && insn->function != LOOP_START && insn->function != LOOP_END &&
        insn->function != LOOP_COUNT && insn->function != LOOP_COUNTI) {
        return complain(&at, "an instruction that sets it up must be on a word boundary");
    }
    switch (insn->function) {
    case LOOP_STARTI:
        return set_address(&at, &loop->start, pc + 4u * constant);
    case LOOP_START:
        return set_address(&at, &loop->start, value);
    case LOOP_ENDI:
        return set_address(&at, &loop->end, pc + 4u * constant);
    case LOOP_END:
        return set_address(&at, &loop->end, value);
    case LOOP_COUNTI:
        return set_count(&at, constant);
    case LOOP_COUNT:
        return set_count(&at, value);
    default: {
        const bool counts = insn->function == LOOP_SETUPI;
        const uint32_t words = counts ? insn->rs2 : constant;
        return set_address(&at, &loop->start, pc + 4u) &&
               set_address(&at, &loop->end, pc + 4u * words) &&
               set_count(&at, counts ? constant : value);
    }
    }
}
