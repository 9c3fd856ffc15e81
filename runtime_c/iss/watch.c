#include "watch.h"

#include <inttypes.h>

#include "htvm_soc_model.h"

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

static void push(watched_t *hart, uint32_t pc, bool tail)
{
    if (hart->depth < WATCH_DEPTH) {
        hart->frames[hart->depth] = (frame_t){pc, tail};
    }
    hart->depth += 1;
}

/* Leaves a function, and those that jumped to it instead of calling it. */
static void pop(watched_t *hart)
{
    while (hart->depth > 0) {
        hart->depth -= 1;
        if (hart->depth >= WATCH_DEPTH || !hart->frames[hart->depth].tail) {
            return;
        }
    }
}

static uint32_t word_of_call(const returns_t *returns, size_t word)
{
    return get32(returns->list + 4 * (WORDS_OF_CALL * returns->next + word));
}

/* A jump that is the next call of the list, or its return. */
static void follow(returns_t *returns, uint32_t hart, const insn_t *insn, uint32_t pc,
                   uint32_t target, uint64_t now)
{
    if (returns->next == returns->count) {
        return;
    }
    const bool call = insn->rd == RA || insn->rd == T0;
    if (!returns->under_way) {
        if (call && target == word_of_call(returns, 0)) {
            returns->under_way = true;
            returns->hart = hart;
            returns->back = pc + 2u * insn->halfwords;
        }
    } else if (!call && hart == returns->hart && target == returns->back) {
        const uint32_t size = word_of_call(returns, 2);
        const uint8_t *const memory =
            htvm_iss_memory(returns->bus, word_of_call(returns, 1), size);
        if (size > 0 && (memory == NULL || fwrite(memory, 1, size, returns->file) != size)) {
            returns->failed = true;
        }
        returns->cycles[returns->next] = now;
        returns->next += 1;
        returns->under_way = false;
    }
}

void htvm_iss_watch_jump(watch_t *watch, uint32_t hart, const insn_t *insn, uint32_t pc,
                         uint32_t target, uint64_t now)
{
    watched_t *const who = &watch->harts[hart];
    follow(&watch->returns, hart, insn, pc, target, now);
    if (insn->rd == RA || insn->rd == T0) {
        push(who, pc, false);
    } else if (insn->op == OP_JALR && (insn->rs1 == RA || insn->rs1 == T0)) {
        pop(who);
    } else if (is_function(watch, target)) {
        push(who, pc, true);
    }
}

static void note_calls(const watch_t *watch, uint32_t hart, uint32_t pc, calls_t *calls)
{
    const watched_t *const who = &watch->harts[hart];
    uint32_t left = who->depth < WATCH_DEPTH ? who->depth : WATCH_DEPTH - 1;
    calls->hart = hart;
    calls->depth = 0;
    calls->pc[calls->depth++] = pc;
    while (left > 0 && calls->depth < WATCH_DEPTH) {
        calls->pc[calls->depth++] = who->frames[--left].pc;
    }
}

static void note_store(const watch_t *watch, uint32_t hart, uint32_t pc, uint32_t addr,
                       uint64_t now, stored_t *store)
{
    store->cycle = now;
    store->addr = addr;
    store->order = watch->harts[hart].order;
    note_calls(watch, hart, pc, &store->calls);
}

void htvm_iss_watch_store(watch_t *watch, uint32_t hart, uint32_t pc, uint32_t addr,
                          uint32_t width, uint64_t now)
{
    watch->harts[hart].storing_pc = pc;
    for (size_t i = 0; i < watch->range_count; ++i) {
        range_t *const range = &watch->ranges[i];
        if (now < range->until &&
            (addr - range->addr < range->size || range->addr - addr < width)) {
            range->stored = true;
            note_store(watch, hart, pc, addr, now, &range->last);
        }
    }
    for (size_t i = 0; i < watch->cycle_count; ++i) {
        if (watch->cycles[i] == now && htvm_soc_owns(addr)) {
            note_store(watch, hart, pc, addr, now, &watch->at[i][hart]);
        }
    }
}

void htvm_iss_watch_wake(watch_t *watch, uint32_t by, uint32_t hart, bool asleep)
{
    watched_t *const woken = &watch->harts[hart];
    calls_t *const order = asleep ? &woken->order : &woken->next;
    note_calls(watch, by, watch->harts[by].storing_pc, order);
    woken->woken += 1;
    for (size_t i = 0; i < watch->wake_count; ++i) {
        if (watch->wakes[i] == woken->woken) {
            watch->waking[i][hart] = *order;
        }
    }
}

void htvm_iss_watch_woken(watch_t *watch, uint32_t hart)
{
    watch->harts[hart].order = watch->harts[hart].next;
}

/* ---- the report ----------------------------------------------------------------------------- */

static void write_calls(FILE *out, const calls_t *calls)
{
    fprintf(out, "[");
    for (uint32_t i = 0; i < calls->depth; ++i) {
        fprintf(out, "%s%" PRIu32, i == 0 ? "" : ", ", calls->pc[i]);
    }
    fprintf(out, "]");
}

static void write_store(FILE *out, const stored_t *store)
{
    fprintf(out, "{\"cycle\": %" PRIu64 ", \"address\": %" PRIu32 ", \"hart\": %" PRIu32
                 ", \"pcs\": ",
            store->cycle, store->addr, store->calls.hart);
    write_calls(out, &store->calls);
    fprintf(out, ", \"order\": ");
    write_calls(out, &store->order);
    fprintf(out, "}");
}

static void write_wakes(const watch_t *watch, FILE *out)
{
    const char *between = "";
    fprintf(out, ",\n \"wakes\": [");
    for (size_t i = 0; i < watch->wake_count; ++i) {
        for (uint32_t hart = 0; hart < WATCHED_HARTS; ++hart) {
            if (watch->waking[i][hart].depth != 0) {
                fprintf(out, "%s{\"hart\": %" PRIu32 ", \"number\": %" PRIu64 ", \"pcs\": ",
                        between, hart, watch->wakes[i]);
                write_calls(out, &watch->waking[i][hart]);
                fprintf(out, "}");
                between = ", ";
            }
        }
    }
    fprintf(out, "],\n \"woken\": [");
    for (uint32_t hart = 0; hart < WATCHED_HARTS; ++hart) {
        fprintf(out, "%s%" PRIu64, hart == 0 ? "" : ", ", watch->harts[hart].woken);
    }
    fprintf(out, "]");
}

void htvm_iss_watch_report(const watch_t *watch, FILE *out)
{
    const char *between = "";
    fprintf(out, ",\n \"last_stores\": [");
    for (size_t i = 0; i < watch->range_count; ++i) {
        fprintf(out, "%s", i == 0 ? "" : ", ");
        if (watch->ranges[i].stored) {
            write_store(out, &watch->ranges[i].last);
        } else {
            fprintf(out, "null");
        }
    }
    fprintf(out, "],\n \"stores\": [");
    for (size_t i = 0; i < watch->cycle_count; ++i) {
        for (uint32_t hart = 0; hart < WATCHED_HARTS; ++hart) {
            if (watch->at[i][hart].calls.depth != 0) {
                fprintf(out, "%s", between);
                write_store(out, &watch->at[i][hart]);
                between = ", ";
            }
        }
    }
    fprintf(out, "],\n \"returns\": [");
    for (size_t i = 0; i < watch->returns.next; ++i) {
        fprintf(out, "%s%" PRIu64, i == 0 ? "" : ", ", watch->returns.cycles[i]);
    }
    fprintf(out, "]");
    write_wakes(watch, out);
}
