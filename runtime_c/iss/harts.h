/* Harts that share memory and devices: all of them with a scoreboard (harts_scoreboard.c), or all of
 * them with the pipeline of the CV32E40P (harts_pipeline.c).
 *
 * Each hart has a clock of its own.  What only concerns a hart it does ahead of the others; every
 * access to memory, a device or a control register waits for its turn: it is made when no other
 * hart has an earlier cycle, or the same with a lower number.  So a run is the same as if the harts
 * took turns cycle by cycle, and two runs are the same to the byte.
 *
 * A hart that sleeps, waits at the barrier or polls a device costs nothing: it has no turn until
 * another hart, or the device, changes that.
 *
 * A bank of the memory nearby serves one access per cycle, in the order of turns: one that comes
 * second is served a cycle later, and before all that come after it.  So no hart waits longer than
 * it takes to serve one access of each other hart.
 */
#ifndef HTVM_ISS_HARTS_H
#define HTVM_ISS_HARTS_H

#include "core.h"
#include "iss.h"

#ifdef HTVM_ISS_HARTS

#ifdef HTVM_CORE_SCOREBOARD
/* What the scoreboard knows. */
typedef struct {
    uint64_t ready[REG_COUNT]; /* cycle from which a register's value can be used */
    uint64_t pending;          /* the latest of them */
    uint64_t divider_free;
    uint64_t far[HTVM_CORE_FAR_OUTSTANDING]; /* ends of the accesses to other memory, a ring */
    uint32_t far_oldest;
    bool reserved; /* by lr.w */
    uint32_t reservation;
} core_t;
#else
/* What is in the pipeline, as in pipeline_t, before the next instruction. */
typedef struct {
    const insn_t *last, *second;
    uint32_t busy;   /* cycles that the last one spent in the execute stage */
    uint32_t waited; /* not 0: the next one has made the first of its two accesses, in these cycles */
} core_t;
#endif

typedef struct {
    uint32_t number;
    uint64_t cycle;  /* of the next instruction, unless it must wait */
    uint32_t pc;     /* where to fetch from while `next` is NULL */
    insn_t *next;
    ram_t *ram;      /* that holds it */
    uint32_t x[REG_COUNT];
    core_t core;
    uint64_t retired;
    uint64_t last_effect; /* as in iss_t, but loads count, too: others may store there */
    csrs_t csrs;
    bool woken;           /* by somebody, before it slept */
    bool asleep, at_barrier, polling;
    uint64_t idle_since;
    uint64_t busy_since; /* of harts that work for another, or with others; UINT64_MAX: does not */
    poll_t poll;
    uint64_t event; /* while polling: when the devices change next, UINT64_MAX if they do not */
    uint32_t stack_low; /* 0: not known */
} hart_t;

/* Lanes of what is told of a run: by its number, when a hart worked for another, or the first one
 * with others; then when the first one waited; then kernels, for which the first one wakes others
 * (harts_kernels.c). */
enum { LANE_WAITS = MAX_HARTS, LANE_KERNELS, LANES };

typedef struct {
    uint32_t lane;
    uint64_t start, end;
} interval_t;

typedef struct harts {
    iss_t *iss;
    uint32_t count;
    hart_t hart[MAX_HARTS];
    uint64_t due[MAX_HARTS]; /* key of each hart's turn; UINT64_MAX: has none */
    uint8_t *near;           /* bytes of the memory nearby */
    uint64_t bank_free[BANKS];
    uint64_t quiet_from, quiet; /* from this cycle on, for so many, no device takes banks */
    htvm_soc_banks_t taken;     /* what devices take otherwise; asked anew outside of its cycles */
    uint32_t reservations; /* harts that hold one */
    uint32_t barrier_mask, arrived;
    uint64_t kernel_since; /* UINT64_MAX: there is none */
    uint32_t working;      /* cores that a controller has woken and that are not done, a bit each */
    interval_t *intervals;
    size_t interval_count, interval_room;
    size_t last_interval[LANES]; /* each lane's */
} harts_t;

/* Turns in their order: by cycle, then by number. */
static inline uint64_t turn_of(uint64_t cycle, uint32_t number) { return cycle << 8 | number; }

/* harts.c: sets up `count` harts, which all start at iss->pc; NULL, with iss->trap set, if the
 * machine does not fit or memory is short. */
harts_t *htvm_harts_new(iss_t *iss, uint32_t count);
void htvm_harts_free(harts_t *all);

/* harts_scoreboard.c, harts_pipeline.c: as htvm_iss_run.  Leaves cycles and instructions of hart 0 in *iss. */
bool htvm_harts_run(harts_t *all);

/* harts_watched.c: the same, told to iss->watch. */
bool htvm_harts_run_watched(harts_t *all);

/* harts.c: the hart whose turn it is, and the turn of the one after it; NULL, with iss->trap set,
 * if all wait for ever. */
hart_t *htvm_harts_next(harts_t *all, uint64_t *other);

/* harts.c: remembers an interval, joined with the last one of this lane if they touch. */
void htvm_harts_note(harts_t *all, uint32_t lane, uint64_t start, uint64_t end);

/* harts.c: the intervals as JSON lines, as htvm_soc_events, after the run; and instructions of each hart, as a
 * member of a JSON object. */
void htvm_harts_events(harts_t *all, FILE *out);
void htvm_harts_report(const harts_t *all, FILE *out);

/* harts_registers.c: a hart, which has executed its instruction but for this, loads from or stores
 * to what is no RAM, at cycle `now`.  Gives it its next turn.  False after setting iss->trap. */
bool htvm_harts_read(harts_t *all, hart_t *hart, const insn_t *insn, uint32_t addr, uint32_t size,
                     uint64_t now, uint32_t *value);
bool htvm_harts_write(harts_t *all, hart_t *hart, uint32_t addr, uint32_t size, uint32_t value,
                      uint64_t now);

/* harts_registers.c: wfi, and going on with what a hart polls, for as many rounds as begin before
 * `until`. */
void htvm_harts_sleep(harts_t *all, hart_t *hart, uint64_t now);
void htvm_harts_resume(harts_t *all, hart_t *hart, uint64_t until);

/* harts_kernels.c: hart 0 wakes these harts at cycle `now`; a hart arrives at the barrier, or goes to
 * sleep; the barrier opens, and its harts go on at `released`. */
void htvm_harts_kernel_begins(harts_t *all, uint32_t mask, uint64_t now);
void htvm_harts_kernel_left(harts_t *all, const hart_t *hart, uint64_t now);
void htvm_harts_kernel_joined(harts_t *all, uint64_t released);

/* harts_steps.c: notes the stack pointer; false after setting iss->trap where it leaves the hart's stack. */
bool htvm_harts_stack(iss_t *iss, const hart_t *hart, uint32_t sp);
void htvm_harts_misaligned(iss_t *iss, uint32_t addr, uint32_t size);
/* Appends to iss->trap where it happened, and on which hart. */
void htvm_harts_locate(harts_t *all, const hart_t *hart, uint32_t pc);

#ifdef HTVM_CORE_SCOREBOARD
/* harts_steps.c: decodes an instruction of a RAM, for harts with a scoreboard. */
void htvm_harts_decode(ram_t *ram, insn_t *insn);

/* harts_atomic.c: lr, sc and amo* on a word of RAM; returns the result. */
uint32_t htvm_harts_atomic(harts_t *all, hart_t *hart, const insn_t *insn, uint32_t addr,
                           uint8_t *p);
/* Somebody stores to these bytes: reservations of others are lost. */
void htvm_harts_stored(harts_t *all, const hart_t *hart, uint32_t addr);
#endif

/* harts_banks.c: the first cycle from this one on in which no device takes the bank; and after an
 * access to a device's register. */
uint64_t htvm_harts_behind_devices(harts_t *all, uint32_t bank, uint64_t cycle);
void htvm_harts_devices_changed(harts_t *all);

/* The cycle in which a bank of the memory nearby serves an access that asks for it in `cycle`, and
 * which then takes it for some cycles.  Devices have priority. */
static inline uint64_t htvm_harts_bank(harts_t *all, uint32_t addr, uint64_t cycle, uint32_t taken)
{
    const uint32_t bank = addr / (uint32_t)BANK_BYTES % (uint32_t)BANKS;
    uint64_t *const free_at = &all->bank_free[bank];
    uint64_t served = *free_at > cycle ? *free_at : cycle;
    if (served - all->quiet_from >= all->quiet) {
        served = htvm_harts_behind_devices(all, bank, served);
    }
    *free_at = served + taken;
    return served;
}

enum { HOST = 0 }; /* the hart that runs main; its waiting is told apart from its work */

/* Whether hart 0 is none of the cores that run kernels. */
static inline bool htvm_harts_controlled(void) { return (uint32_t)FIRST_CORE > 0; }

/* A hart goes on some cycles later, with what it read last, into this register. */
static inline void htvm_harts_later(hart_t *hart, uint8_t rd, uint64_t cycles)
{
#ifdef HTVM_CORE_SCOREBOARD
    hart->core.ready[rd] += cycles;
    hart->core.ready[REG_SINK] = 0;
    hart->core.pending += cycles;
#else
    (void)hart, (void)rd, (void)cycles; /* its pipeline counts from its own cycle */
#endif
}

#endif
#endif
