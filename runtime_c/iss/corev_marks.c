/* Where hardware loops end, for the core that is alone.
 *
 * Nothing is compared while a body runs: as long as a loop is active, the decoded instruction behind
 * its body is an OP_COREV_LOOP_END.
 */
#include "corev.h"
#include "fetch.h"
#include "iss.h"

static void mark(loop_t *loop, ram_t *ram)
{
    insn_t *const entry = loop->behind;
    if (entry->op == OP_UNDECODED) {
        htvm_iss_decode_in_place(ram, entry);
    }
    loop->marked_op = entry->op;
    entry->op = OP_COREV_LOOP_END;
}

static void unmark(loop_t *loop)
{
    if (loop->behind != NULL) {
        loop->behind->op = loop->marked_op;
        loop->behind = NULL;
    }
}

bool htvm_iss_loop_set_marked(iss_t *iss, ram_t *ram, const insn_t *insn)
{
    loop_t *const loops = iss->csrs.loops;
    loop_t *const loop = &loops[insn->rd & 1u];
    insn_t *const marked = loop->behind;
    if (!htvm_iss_loop_set(iss, loops, iss->x, ram, insn)) {
        return false;
    }
    if (marked != NULL) { /* only its count may have changed: all else is an error */
        marked->op = loop->marked_op;
    }
    if (loop->behind != NULL) {
        mark(loop, ram);
    }
    return true;
}

const loop_t *htvm_iss_loop_end(iss_t *iss, insn_t *insn, const insn_t *last)
{
    loop_t *const loops = iss->csrs.loops;
    loop_t *const loop = loops[0].behind == insn ? &loops[0] : &loops[1];
    if (last != insn - 2) {
        htvm_iss_loop_complain(iss, loops, loop,
                               "a branch or jump leads to its end while it is active");
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
        if (loops[i].behind != NULL) {
            loops[i].behind->op = loops[i].marked_op;
        }
    }
    htvm_iss_bus_forget_insns(&iss->bus);
    for (size_t i = 0; i < LOOPS; ++i) {
        if (loops[i].behind != NULL) {
            mark(&loops[i], htvm_iss_bus_code(&iss->bus, loops[i].start));
        }
    }
}
