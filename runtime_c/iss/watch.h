/* Who stores: the calls under way at a store.
 *
 * A watched run keeps the stack of calls.  It remembers the last store into a range of addresses
 * before a mark, and the stores at given cycles: runs repeat exactly, so a cycle of one run names
 * the same store in the next.
 */
#ifndef HTVM_ISS_WATCH_H
#define HTVM_ISS_WATCH_H

#include <stdio.h>

#include "bus.h"

enum { WATCH_DEPTH = 64, WATCH_CYCLES = 8 };

/* Instructions that are being executed: a store, and below it the calls that led there. */
typedef struct {
    uint64_t cycle;
    uint32_t addr;
    uint32_t depth;
    uint32_t pc[WATCH_DEPTH]; /* innermost first */
} stores_t;

typedef struct {
    uint32_t pc;
    bool tail; /* a jump to another function, which returns to this one's caller */
} frame_t;

typedef struct watch {
    bool has_range;
    uint32_t addr, size; /* the range */
    uint32_t until;      /* mark after which stores into it do not count */
    bool over;
    uint32_t trace_addr;
    uint64_t cycles[WATCH_CYCLES];
    size_t cycle_count;
    const uint8_t *functions; /* their addresses, ascending, little-endian words */
    size_t function_count;
    frame_t frames[WATCH_DEPTH];
    uint32_t depth; /* may exceed WATCH_DEPTH, whose frames are the outermost */
    bool stored;
    stores_t last;               /* into the range */
    stores_t at[WATCH_CYCLES];   /* of each cycle */
    bool found[WATCH_CYCLES];
} watch_t;

/* Before a jump is made. */
void htvm_iss_watch_jump(watch_t *watch, const insn_t *insn, uint32_t pc, uint32_t target);

/* Before a store is made. */
void htvm_iss_watch_store(watch_t *watch, uint32_t pc, uint32_t addr, uint32_t width,
                          uint32_t value, uint64_t now);

/* What was seen, as members of a JSON object. */
void htvm_iss_watch_report(const watch_t *watch, FILE *out);

#endif
