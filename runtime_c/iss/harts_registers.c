/* Control registers of the cluster, device registers, and what harts wait for.
 *
 * Skipping polls works as for a core that is alone (device.c), with two differences: a load between
 * two reads may see what another hart stored, so that it counts as an effect; and another hart may
 * write to a device.  So a hart that polls is put aside until the devices' next event, and goes on
 * earlier if somebody writes to a device register: after as many whole rounds as come before that.
 */
#include "harts.h"

#ifdef HTVM_ISS_HARTS
#include "watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void give_turn(harts_t *all, const hart_t *hart)
{
    all->due[hart->number] = turn_of(hart->cycle, hart->number);
}

static bool complained(harts_t *all)
{
    const char *complaint = htvm_soc_error(all->iss->bus.soc);
    if (complaint == NULL) {
        return false;
    }
    snprintf(all->iss->trap, sizeof all->iss->trap, "%s", complaint);
    return true;
}

static void end_work(harts_t *all, hart_t *hart, uint64_t now)
{
    if (hart->busy_since != UINT64_MAX) {
        htvm_harts_note(all, hart->number, hart->busy_since, now);
        hart->busy_since = UINT64_MAX;
    }
    hart->idle_since = now;
}

static void go_on(harts_t *all, hart_t *hart, uint64_t cycle)
{
    hart->cycle = cycle;
    if (hart->number == HOST) {
        htvm_harts_note(all, LANE_WAITS, hart->idle_since, cycle);
    }
    give_turn(all, hart);
}

/* ---- sleep and wake-up ---------------------------------------------------------------------- */

void htvm_harts_sleep(harts_t *all, hart_t *hart, uint64_t now)
{
    if (hart->woken) {
        hart->woken = false;
        if (all->iss->watch != NULL) {
            htvm_iss_watch_woken(all->iss->watch, hart->number);
        }
        if (htvm_harts_controlled() && hart->number != HOST && hart->busy_since == UINT64_MAX) {
            hart->busy_since = now; /* a controller orders the next kernel early */
        }
        give_turn(all, hart);
        return;
    }
    end_work(all, hart, now);
    hart->asleep = true;
    htvm_harts_kernel_left(all, hart, now);
    all->due[hart->number] = UINT64_MAX;
}

static bool wake(harts_t *all, const hart_t *by, uint32_t mask, uint64_t now)
{
    if (mask >> all->count != 0) {
        snprintf(all->iss->trap, sizeof all->iss->trap,
                 "wake-up of harts 0x%" PRIx32 ", of which there are %" PRIu32, mask, all->count);
        return false;
    }
    if (by->number == HOST) {
        htvm_harts_kernel_begins(all, mask, now);
    }
    for (uint32_t i = 0; i < all->count; ++i) {
        hart_t *hart = &all->hart[i];
        if ((mask >> i & 1u) == 0) {
            continue;
        }
        if (all->iss->watch != NULL) {
            htvm_iss_watch_wake(all->iss->watch, by->number, i, hart->asleep);
        }
        if (!hart->asleep) {
            hart->woken = true;
            continue;
        }
        hart->asleep = false;
        go_on(all, hart, now + WAKE_CYCLES > hart->cycle ? now + WAKE_CYCLES : hart->cycle);
        if (i != HOST) {
            hart->busy_since = hart->cycle;
        }
    }
    return true;
}

/* ---- barrier -------------------------------------------------------------------------------- */

static bool set_mask(harts_t *all, uint32_t mask)
{
    if (all->arrived != 0 || mask >> all->count != 0) {
        snprintf(all->iss->trap, sizeof all->iss->trap,
                 "barrier for harts 0x%" PRIx32 ": %s", mask,
                 all->arrived != 0 ? "harts are waiting there" : "there are not so many");
        return false;
    }
    all->barrier_mask = mask;
    return true;
}

static bool arrive(harts_t *all, hart_t *hart, uint64_t now)
{
    if ((all->barrier_mask >> hart->number & 1u) == 0) {
        snprintf(all->iss->trap, sizeof all->iss->trap,
                 "hart %" PRIu32 " at a barrier for harts 0x%" PRIx32, hart->number,
                 all->barrier_mask);
        return false;
    }
    end_work(all, hart, now);
    hart->at_barrier = true;
    htvm_harts_kernel_left(all, hart, now);
    all->due[hart->number] = UINT64_MAX;
    all->arrived |= 1u << hart->number;
    if (all->arrived != all->barrier_mask) {
        return true;
    }
    all->arrived = 0;
    const uint64_t released = now + RELEASE_CYCLES;
    htvm_harts_kernel_joined(all, released);
    for (uint32_t i = 0; i < all->count; ++i) {
        hart_t *one = &all->hart[i];
        if (one->at_barrier) {
            one->at_barrier = false;
            go_on(all, one, released > one->cycle ? released : one->cycle);
        }
    }
    return true;
}

/* ---- devices -------------------------------------------------------------------------------- */

/* Rounds of a poll that begin before `until`; the first one has begun. */
static uint64_t rounds_before(const hart_t *hart, uint64_t until)
{
    const poll_t *poll = &hart->poll;
    return until > poll->cycle ? (until - 1 - poll->cycle) / poll->period : 0;
}

void htvm_harts_resume(harts_t *all, hart_t *hart, uint64_t until)
{
    poll_t *poll = &hart->poll;
    const uint64_t rounds = rounds_before(hart, until);
    const uint64_t cycles = rounds * poll->period;
    if (hart->number == HOST && rounds > 0) {
        htvm_harts_note(all, LANE_WAITS, poll->cycle, poll->cycle + cycles);
    }
    hart->polling = false;
    hart->cycle += cycles;
    hart->retired += rounds * poll->steps;
    htvm_harts_later(hart, poll->insn->rd, cycles);
    poll->cycle += cycles;
    poll->retired += rounds * poll->steps;
    give_turn(all, hart);
}

static bool read_device(harts_t *all, hart_t *hart, const insn_t *insn, uint32_t addr, uint64_t now,
                        uint32_t *value)
{
    poll_t *poll = &hart->poll;
    htvm_soc_t *soc = all->iss->bus.soc;
    const uint64_t read_at = hart->retired - 1; /* it has retired */
    const bool waits = poll->insn == insn && poll->addr == addr &&
                       hart->last_effect <= poll->retired;
    const bool again = waits && memcmp(poll->x, hart->x, REG_SINK * sizeof poll->x[0]) == 0;
    const uint64_t period = again ? now - poll->cycle : 0;
    const uint64_t steps = again ? read_at - poll->retired : 0;

    *value = htvm_soc_read(soc, addr, now);
    htvm_harts_devices_changed(all);
    if (complained(all)) {
        return false;
    }
    if (waits && hart->number == HOST) {
        htvm_harts_note(all, LANE_WAITS, poll->cycle, now);
    }
    const bool same_value = again && *value == poll->value;
    hart->polling = same_value && !all->iss->step_polls && period == poll->period &&
                    steps == poll->steps;
    poll->insn = insn;
    poll->addr = addr;
    poll->value = *value;
    poll->cycle = now;
    poll->retired = read_at;
    poll->period = same_value ? period : 0;
    poll->steps = same_value ? steps : 0;
    memcpy(poll->x, hart->x, sizeof poll->x);
    hart->last_effect = read_at;
    give_turn(all, hart);
    if (hart->polling) {
        hart->event = htvm_soc_next_event(soc, now);
        const uint64_t last = now + rounds_before(hart, hart->event) * period;
        all->due[hart->number] =
            hart->event == UINT64_MAX ? UINT64_MAX : turn_of(last, hart->number);
    }
    return true;
}

static bool write_device(harts_t *all, const hart_t *hart, uint32_t addr, uint32_t value,
                         uint64_t now)
{
    for (uint32_t i = 0; i < all->count; ++i) {
        if (all->hart[i].polling) { /* what it reads in its turns before this one is as it was */
            htvm_harts_resume(all, &all->hart[i], i < hart->number ? now + 1 : now);
        }
    }
    htvm_soc_write(all->iss->bus.soc, addr, value, now);
    htvm_harts_devices_changed(all);
    return !complained(all);
}

/* ---- registers of all kinds ----------------------------------------------------------------- */

static bool refuse(harts_t *all, const char *what, uint32_t size, uint32_t addr)
{
    snprintf(all->iss->trap, sizeof all->iss->trap,
             "%s %" PRIu32 " bytes at 0x%08" PRIx32 ", where there is no RAM and no %s", what, size,
             addr, size == 4 ? "device register" : "byte-wide device");
    return false;
}

bool htvm_harts_read(harts_t *all, hart_t *hart, const insn_t *insn, uint32_t addr, uint32_t size,
                     uint64_t now, uint32_t *value)
{
    const uint32_t control = addr - CONTROL_BASE;
    *value = 0;
    if (size == 4 && control == CONTROL_BARRIER) {
        hart->last_effect = hart->retired - 1;
        return arrive(all, hart, now);
    }
    give_turn(all, hart);
    if (size == 4 && control == CONTROL_MASK) {
        hart->last_effect = hart->retired - 1;
        *value = all->barrier_mask;
        return true;
    }
    if (size == 4 && addr % 4 == 0 && htvm_soc_owns(addr)) {
        return read_device(all, hart, insn, addr, now, value);
    }
    return refuse(all, "load of", size, addr);
}

bool htvm_harts_write(harts_t *all, hart_t *hart, uint32_t addr, uint32_t size, uint32_t value,
                      uint64_t now)
{
    const uint32_t control = addr - CONTROL_BASE;
    bus_t *bus = &all->iss->bus;
    hart->last_effect = hart->retired - 1;
    give_turn(all, hart);
    if (size == 4 && control == CONTROL_WAKE) {
        return wake(all, hart, value, now);
    }
    if (size == 4 && control == CONTROL_MASK) {
        return set_mask(all, value);
    }
    if (bus->has_trace && addr == bus->trace_addr && hart->number != HOST) {
        snprintf(all->iss->trap, sizeof all->iss->trap,
                 "hart %" PRIu32 " makes a mark; only hart 0 may", hart->number);
        return false;
    }
    if (htvm_iss_bus_control(bus, addr, size, value, now)) {
        return true;
    }
    if (size == 4 && addr % 4 == 0 && htvm_soc_owns(addr)) {
        return write_device(all, hart, addr, value, now);
    }
    return refuse(all, "store of", size, addr);
}

#endif
