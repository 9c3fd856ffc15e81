/* Who stores: the calls under way at a store.
 *
 * A watched run keeps the stack of calls of each hart.  It remembers the last store into ranges of
 * addresses before given cycles, and the stores to devices at given cycles: runs repeat exactly, so
 * a cycle of one run means the same in the next.
 *
 * A hart that sleeps until it is woken works for whoever woke it.  So the calls that were under way
 * at its wake-up are remembered with its stores.  A hart that serves a queue may be woken again
 * before it sleeps; for that, the calls at wake-ups can be asked for by number.
 *
 * What functions leave in memory may live shorter than a step.  So memory can be recorded when they
 * return: a list has the calls in the order in which they come, and a range of memory for each.
 */
#ifndef HTVM_ISS_WATCH_H
#define HTVM_ISS_WATCH_H

#include <stdio.h>

#include "bus.h"
#include "core.h"

enum { WATCH_DEPTH = 64, WATCHES = 8, WORDS_OF_CALL = 3 };
#ifdef HTVM_ISS_HARTS
enum { WATCHED_HARTS = MAX_HARTS };
#else
enum { WATCHED_HARTS = 1 };
#endif

/* An instruction that a hart executes, and below it the calls that led there, innermost first. */
typedef struct {
    uint32_t hart;
    uint32_t depth; /* 0: nothing is known */
    uint32_t pc[WATCH_DEPTH];
} calls_t;

typedef struct {
    uint64_t cycle;
    uint32_t addr;
    calls_t calls;
    calls_t order; /* at the wake-up of the hart that stores */
} stored_t;

typedef struct {
    uint32_t pc;
    bool tail; /* a jump to another function, which returns to this one's caller */
} frame_t;

typedef struct {
    frame_t frames[WATCH_DEPTH];
    uint32_t depth;      /* may exceed WATCH_DEPTH, whose frames are the outermost */
    uint32_t storing_pc; /* of its last store */
    calls_t order, next; /* at its last wake-up, and at one that came before it slept */
    uint64_t woken;      /* how often */
} watched_t;

typedef struct {
    uint32_t addr, size;
    uint64_t until; /* cycle from which stores do not count */
    bool stored;
    stored_t last;
} range_t;

typedef struct {
    bus_t *bus;
    uint8_t *list;      /* little-endian words: a function, the address of its range and the bytes */
    size_t count, next; /* calls in the list, and the one that comes next or is under way */
    uint64_t *cycles;   /* at which they returned */
    FILE *file;         /* the ranges, one behind the other */
    bool failed;        /* one is no memory, or the file cannot be written */
    bool under_way;
    uint32_t hart, back; /* of the call under way: who made it, and where it returns to */
} returns_t;

typedef struct watch {
    returns_t returns;
    range_t ranges[WATCHES];
    size_t range_count;
    uint64_t cycles[WATCHES]; /* whose stores to devices are told */
    size_t cycle_count;
    uint64_t wakes[WATCHES]; /* numbers of wake-ups that are told, from 1 */
    size_t wake_count;
    uint8_t *functions; /* their addresses, ascending, little-endian words */
    size_t function_count;
    watched_t harts[WATCHED_HARTS];
    stored_t at[WATCHES][WATCHED_HARTS]; /* of each cycle; depth 0 where there was no store */
    calls_t waking[WATCHES][WATCHED_HARTS];
} watch_t;

/* Before a hart makes a jump. */
void htvm_iss_watch_jump(watch_t *watch, uint32_t hart, const insn_t *insn, uint32_t pc,
                         uint32_t target, uint64_t now);

/* Before a hart makes a store. */
void htvm_iss_watch_store(watch_t *watch, uint32_t hart, uint32_t pc, uint32_t addr,
                          uint32_t width, uint64_t now);

/* A hart's store wakes another, now or at its next sleep; and that one goes on without sleeping. */
void htvm_iss_watch_wake(watch_t *watch, uint32_t by, uint32_t hart, bool asleep);
void htvm_iss_watch_woken(watch_t *watch, uint32_t hart);

/* What was seen, as members of a JSON object. */
void htvm_iss_watch_report(const watch_t *watch, FILE *out);

#endif
