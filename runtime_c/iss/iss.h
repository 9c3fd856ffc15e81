/* The simulated core and its run. */
#ifndef HTVM_ISS_H
#define HTVM_ISS_H

#include "bus.h"

struct harts; /* harts.h */
struct watch; /* watch.h */

/* The last read of a device register, to recognise a program that polls it. */
typedef struct {
    const insn_t *insn; /* NULL: none */
    uint32_t addr, value;
    uint64_t cycle, retired;    /* when it happened */
    uint64_t period, steps;     /* since the same read before that; 0 if it was another */
    uint32_t x[REG_COUNT];
} poll_t;

/* A hardware loop of a core with CORE-V extensions (corev_loops.c); it is active while its count is
 * not 0. */
typedef struct {
    uint32_t start, end, count; /* end: the address behind its last instruction */
    insn_t *behind;     /* the entry behind its last instruction; NULL while it is not active */
    uint8_t marked_op;  /* what that entry was before it became a mark (corev_marks.c) */
    int8_t back_cycles; /* further cost of the last instruction when the first follows it */
} loop_t;

enum { LOOPS = 2 };

/* Control and status registers of a hart. */
typedef struct {
    uint32_t mhartid, misa;
    /* The program's own counters: value = offset + ours, or frozen while inhibited. */
    uint32_t mcountinhibit;
    uint64_t mcycle_offset, minstret_offset;
    uint64_t mcycle_frozen, minstret_frozen;
    uint32_t mstatus, mtvec, mepc, mcause, mscratch, mie;
    loop_t loops[LOOPS];
} csrs_t;

/* What a hart has counted since the start. */
typedef struct {
    uint64_t cycles, retired;
} counts_t;

typedef struct {
    bus_t bus;
    uint32_t x[REG_COUNT]; /* x[0] is always 0, x[REG_SINK] takes results for x0 */
    uint32_t pc;
    uint64_t cycles;  /* since the start, whatever the program does to its counters */
    uint64_t retired; /* instructions */

    csrs_t csrs;

    bool has_stack;
    uint32_t stack_low, stack_high; /* the region that the stack may use */
    uint32_t lowest_sp;

    uint64_t max_cycles; /* UINT64_MAX: no limit */
    bool step_polls;     /* execute every poll instead of skipping to the next event */
    poll_t poll;
    uint64_t last_effect; /* `retired` at the last store or CSR access: more than a pure step */

    struct harts *harts; /* of a machine whose cores harts.h runs; NULL in all others */
    struct watch *watch; /* of a watched run; NULL in all others */

    char trap[256]; /* why the run stopped before its end; empty if it did not */
} iss_t;

/* Sets up a core without memory.  Its counters run from the start, as if the program had cleared
 * mcountinhibit: the real core leaves reset with them stopped, and every program starts them. */
void htvm_iss_init(iss_t *iss);

/* Runs from iss->pc until the program stores to the exit register (returns true) or traps. */
bool htvm_iss_run(iss_t *iss);

/* execute_watched.c: the same, told to iss->watch. */
bool htvm_iss_run_watched(iss_t *iss);

/* csr.c: registers after reset. */
csrs_t htvm_iss_csrs(uint32_t hart, uint32_t misa);

/* csr.c: executes a CSR instruction of a hart with registers x; false if the CSR does not exist or
 * must not be written. */
bool htvm_iss_csr_access(csrs_t *csrs, counts_t now, const insn_t *insn, const uint32_t *x,
                         uint32_t *result);

/* csr.c: the same of the core that is alone. */
bool htvm_iss_csr(iss_t *iss, const insn_t *insn, uint32_t *result);

/* access.c: loads and stores anywhere, for those that leave the RAM the program runs from.  The
 * value of a load is not sign-extended.  False after setting iss->trap. */
bool htvm_iss_load_elsewhere(iss_t *iss, const insn_t *insn, uint32_t addr, uint32_t size,
                             uint32_t *value);
bool htvm_iss_store_elsewhere(iss_t *iss, uint32_t addr, uint32_t size, uint32_t value);

/* device.c: word access to a device register; false after setting iss->trap. */
bool htvm_iss_device_read(iss_t *iss, const insn_t *insn, uint32_t addr, uint32_t *value);
bool htvm_iss_device_write(iss_t *iss, uint32_t addr, uint32_t value);

/* corev_loops.c: executes an OP_COREV_LOOP of a core with these loops and registers x; false after
 * setting iss->trap, if this breaks a rule for hardware loops. */
bool htvm_iss_loop_set(iss_t *iss, loop_t *loops, const uint32_t *x, ram_t *ram,
                       const insn_t *insn);

/* corev_loops.c: says in iss->trap that this loop breaks a rule; returns false. */
bool htvm_iss_loop_complain(iss_t *iss, const loop_t *loops, const loop_t *loop, const char *rule);

/* corev_marks.c: the same of the core that is alone, where active loops have marks. */
bool htvm_iss_loop_set_marked(iss_t *iss, ram_t *ram, const insn_t *insn);

/* corev_marks.c: the OP_COREV_LOOP_END at `insn` was reached behind `last`.  Counts, and returns the
 * loop if it goes on; ends it otherwise, which makes *insn what it was, and returns NULL.  Sets
 * iss->trap if it was not reached through the loop's body. */
const loop_t *htvm_iss_loop_end(iss_t *iss, insn_t *insn, const insn_t *last);

/* corev_marks.c: forgets all decoded instructions, but not where active loops end. */
void htvm_iss_loops_forget_insns(iss_t *iss);

/* What a CORE-V instruction leaves to do. */
typedef enum {
    COREV_NEXT,
    COREV_CROSSED,  /* the same, behind an access across a word boundary, whose cycles are counted */
    COREV_AGAIN,    /* another instruction is there now */
    COREV_BRANCHED, /* to iss->pc; cycles and instruction are counted */
    COREV_LOOPED,   /* back to iss->pc; the same */
    COREV_ENDED,    /* the run */
    COREV_TRAPPED
} corev_step_t;

/* corev_execute.c: executes an OP_COREV_* or one of the other operations of COREV_CASES, behind the
 * instruction `last` (NULL: another). */
corev_step_t htvm_iss_corev_step(iss_t *iss, ram_t *ram, insn_t *insn, const insn_t *last);

/* trap.c: notes a new value of the stack pointer; false after setting iss->trap if it is too low. */
bool htvm_iss_stack_write(iss_t *iss, uint32_t sp);

/* trap.c: says in iss->trap why this instruction ends the run; appends where it is. */
void htvm_iss_explain(iss_t *iss, const insn_t *insn);
void htvm_iss_locate(iss_t *iss, uint32_t pc);

/* elf.c: loads an executable and sets iss->pc; returns NULL or what is wrong with the file. */
const char *htvm_iss_load_elf(iss_t *iss, const uint8_t *file, size_t size);

/* report.c */
bool htvm_iss_write_report(const iss_t *iss, const char *path);

#endif
