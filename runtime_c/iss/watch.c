#include "watch.h"

#include <inttypes.h>

enum { RA = 1, T0 = 5 }; /* link registers of the calling convention */

static bool is_function(const watch_t *watch, uint32_t addr)
{
    size_t low = 0, high = watch->function_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const uint32_t there = get32(watch->functions + 4 * middle);
        if (there == addr) {
            return true;
        }
        if (there < addr) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return false;
}

static void push(watch_t *watch, uint32_t pc, bool tail)
{
    if (watch->depth < WATCH_DEPTH) {
        watch->frames[watch->depth] = (frame_t){pc, tail};
    }
    watch->depth += 1;
}

/* Leaves a function, and those that jumped to it instead of calling it. */
static void pop(watch_t *watch)
{
    while (watch->depth > 0) {
        watch->depth -= 1;
        if (watch->depth >= WATCH_DEPTH || !watch->frames[watch->depth].tail) {
            return;
        }
    }
}

void htvm_iss_watch_jump(watch_t *watch, const insn_t *insn, uint32_t pc, uint32_t target)
{
    if (insn->rd == RA || insn->rd == T0) {
        push(watch, pc, false);
    } else if (insn->op == OP_JALR && (insn->rs1 == RA || insn->rs1 == T0)) {
        pop(watch);
    } else if (is_function(watch, target)) {
        push(watch, pc, true);
    }
}

static void remember(const watch_t *watch, stores_t *store, uint32_t pc, uint32_t addr,
                     uint64_t now)
{
    uint32_t left = watch->depth < WATCH_DEPTH ? watch->depth : WATCH_DEPTH - 1;
    store->cycle = now;
    store->addr = addr;
    store->depth = 0;
    store->pc[store->depth++] = pc;
    while (left > 0 && store->depth < WATCH_DEPTH) {
        store->pc[store->depth++] = watch->frames[--left].pc;
    }
}

void htvm_iss_watch_store(watch_t *watch, uint32_t pc, uint32_t addr, uint32_t width,
                          uint32_t value, uint64_t now)
{
    if (addr == watch->trace_addr && value == watch->until) {
        watch->over = true;
    }
    if (watch->has_range && !watch->over &&
        (addr - watch->addr < watch->size || watch->addr - addr < width)) {
        watch->stored = true;
        remember(watch, &watch->last, pc, addr, now);
    }
    for (size_t i = 0; i < watch->cycle_count; ++i) {
        if (watch->cycles[i] == now) {
            watch->found[i] = true;
            remember(watch, &watch->at[i], pc, addr, now);
        }
    }
}

static void write_store(FILE *out, const stores_t *store)
{
    fprintf(out, "{\"cycle\": %" PRIu64 ", \"address\": %" PRIu32 ", \"pcs\": [", store->cycle,
            store->addr);
    for (uint32_t i = 0; i < store->depth; ++i) {
        fprintf(out, "%s%" PRIu32, i == 0 ? "" : ", ", store->pc[i]);
    }
    fprintf(out, "]}");
}

void htvm_iss_watch_report(const watch_t *watch, FILE *out)
{
    fprintf(out, ",\n \"last_store\": ");
    if (watch->stored) {
        write_store(out, &watch->last);
    } else {
        fprintf(out, "null");
    }
    fprintf(out, ",\n \"stores\": [");
    bool any = false;
    for (size_t i = 0; i < watch->cycle_count; ++i) {
        if (watch->found[i]) {
            fprintf(out, "%s", any ? ", " : "");
            write_store(out, &watch->at[i]);
            any = true;
        }
    }
    fprintf(out, "]");
}
