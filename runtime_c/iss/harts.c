/* The harts together: their start, their turns, what is reported of them. */
#include "harts.h"

#ifdef HTVM_ISS_HARTS
#include "corev.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>


/* misa of the harts: RV32IMA with a scoreboard, otherwise RV32IMC, with X for CORE-V. */
static uint32_t misa(void)
{
#ifdef HTVM_CORE_SCOREBOARD
    return 0x40001101u;
#else
    return HAS_COREV ? 0x40801104u : 0x40001104u;
#endif
}

static uint32_t worker_stack_low(const iss_t *iss, uint32_t number)
{
    if (!iss->has_stack || number == 0) {
        return iss->has_stack ? iss->stack_low : 0;
    }
    /* Below the stack of hart 0, that of the last hart first (crt0.S). */
    const uint32_t above = (uint32_t)MAX_HARTS - number;
    const uint32_t low = iss->stack_low - above * (uint32_t)WORKER_STACK;
    return low - NEAR_BASE < NEAR_SIZE ? low : 0;
}

static bool find_near(harts_t *all)
{
    const uint32_t size = NEAR_SIZE;
    all->near = size > 0 ? htvm_iss_bus_map(&all->iss->bus, NEAR_BASE, size) : NULL;
    return all->near != NULL || size == 0;
}

harts_t *htvm_harts_new(iss_t *iss, uint32_t count)
{
    harts_t *all = calloc(1, sizeof *all);
    if (all == NULL) {
        snprintf(iss->trap, sizeof iss->trap, "out of memory");
        return NULL;
    }
    all->iss = iss;
    all->count = count;
    all->kernel_since = UINT64_MAX;
    if (count == 0 || count > MAX_HARTS || !find_near(all)) {
        snprintf(iss->trap, sizeof iss->trap, "%" PRIu32 " harts with %" PRIu32
                 " bytes of RAM at 0x%08" PRIx32 ": not this machine",
                 count, (uint32_t)NEAR_SIZE, (uint32_t)NEAR_BASE);
        free(all);
        return NULL;
    }
    for (uint32_t i = 0; i < count; ++i) {
        hart_t *hart = &all->hart[i];
        hart->number = i;
        hart->pc = iss->pc;
        hart->csrs = htvm_iss_csrs(i, misa());
        hart->busy_since = UINT64_MAX;
#ifndef HTVM_CORE_SCOREBOARD
        hart->core.busy = 1;
#endif
        hart->stack_low = worker_stack_low(iss, i);
        all->due[i] = turn_of(0, i);
    }
    return all;
}

void htvm_harts_free(harts_t *all)
{
    if (all != NULL) {
        free(all->intervals);
        free(all);
    }
}

/* ---- turns ---------------------------------------------------------------------------------- */

static void explain_standstill(harts_t *all)
{
    char *text = all->iss->trap;
    const size_t room = sizeof all->iss->trap;
    int used = snprintf(text, room, "endless wait:");
    for (uint32_t i = 0; i < all->count && used > 0 && (size_t)used < room; ++i) {
        const hart_t *hart = &all->hart[i];
        if (hart->polling) {
            used += snprintf(text + used, room - (size_t)used,
                             " hart %" PRIu32 " polls device register 0x%08" PRIx32
                             ", which stays 0x%" PRIx32 ";",
                             i, hart->poll.addr, hart->poll.value);
        } else {
            used += snprintf(text + used, room - (size_t)used, " hart %" PRIu32 " %s;", i,
                             hart->asleep ? "sleeps" : "is at the barrier");
        }
    }
}

hart_t *htvm_harts_next(harts_t *all, uint64_t *other)
{
    for (;;) {
        uint64_t first = UINT64_MAX, second = UINT64_MAX;
        uint32_t number = 0;
        for (uint32_t i = 0; i < all->count; ++i) {
            const uint64_t due = all->due[i];
            if (due < first) {
                second = first;
                first = due;
                number = i;
            } else if (due < second) {
                second = due;
            }
        }
        if (first == UINT64_MAX) {
            explain_standstill(all);
            return NULL;
        }
        hart_t *hart = &all->hart[number];
        if (!hart->polling) {
            *other = second;
            return hart;
        }
        htvm_harts_resume(all, hart, hart->event);
    }
}

/* ---- what happened -------------------------------------------------------------------------- */

void htvm_harts_note(harts_t *all, uint32_t lane, uint64_t start, uint64_t end)
{
    const size_t last = all->last_interval[lane];
    if (start >= end) {
        return;
    }
    if (last < all->interval_count && all->intervals[last].lane == lane &&
        all->intervals[last].end == start) {
        all->intervals[last].end = end;
        return;
    }
    if (all->interval_count == all->interval_room) {
        const size_t room = all->interval_room == 0 ? 256 : 2 * all->interval_room;
        interval_t *grown = realloc(all->intervals, room * sizeof *grown);
        if (grown == NULL) {
            fputs("iss: out of memory\n", stderr);
            exit(2);
        }
        all->intervals = grown;
        all->interval_room = room;
    }
    all->last_interval[lane] = all->interval_count;
    all->intervals[all->interval_count++] = (interval_t){lane, start, end};
}

static int earlier(const void *a, const void *b)
{
    const interval_t *const first = a, *const second = b;
    if (first->start != second->start) {
        return first->start < second->start ? -1 : 1;
    }
    return (first->lane > second->lane) - (first->lane < second->lane);
}

void htvm_harts_events(harts_t *all, FILE *out)
{
    /* They were noted as they ended, which may be when a poll is taken up again. */
    if (all->interval_count > 0) {
        qsort(all->intervals, all->interval_count, sizeof *all->intervals, earlier);
    }
    for (size_t i = 0; i < all->interval_count; ++i) {
        const interval_t *one = &all->intervals[i];
        if (one->lane == LANE_WAITS) {
            fprintf(out, "{\"unit\":\"host\",\"start\":%" PRIu64 ",\"end\":%" PRIu64
                         ",\"what\":\"wait\"}\n",
                    one->start, one->end);
        } else if (one->lane == LANE_KERNELS) {
            fprintf(out, "{\"unit\":\"cluster\",\"start\":%" PRIu64 ",\"end\":%" PRIu64
                         ",\"what\":\"kernel\",\"array\":%" PRIu64 ",\"weights\":0}\n",
                    one->start, one->end, one->end - one->start);
        } else {
            fprintf(out, "{\"unit\":\"core%" PRIu32 "\",\"start\":%" PRIu64 ",\"end\":%" PRIu64
                         ",\"what\":\"work\"}\n",
                    one->lane, one->start, one->end);
        }
    }
}

void htvm_harts_report(const harts_t *all, FILE *out)
{
    fprintf(out, ",\n \"harts\": [");
    for (uint32_t i = 0; i < all->count; ++i) {
        fprintf(out, "%s%" PRIu64, i == 0 ? "" : ", ", all->hart[i].retired);
    }
    fprintf(out, "]");
}

#endif
