/* Device registers, and skipping the time that a program spends polling them.
 *
 * A loop that reads one device register and does nothing else but compute repeats itself exactly
 * as long as the register does.  It is recognised when the same instruction reads the same
 * address three times in a row, with equal values, equal registers, and no store or CSR access in
 * between, and the two rounds took equally many cycles.  Then as many whole rounds are skipped as
 * end before the devices' next event; the round that meets the event is executed.  Cycles and
 * instructions of a run are therefore the same with and without skipping.
 */
#include "iss.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool complained(iss_t *iss)
{
    const char *complaint = htvm_soc_error(iss->bus.soc);
    if (complaint == NULL) {
        return false;
    }
    snprintf(iss->trap, sizeof iss->trap, "%s", complaint);
    return true;
}

/* Whether this read repeats the last one after a round of pure computation. */
static bool repeats(const iss_t *iss, const insn_t *insn, uint32_t addr)
{
    const poll_t *poll = &iss->poll;
    return poll->insn == insn && poll->addr == addr && iss->last_effect <= poll->retired &&
           memcmp(poll->x, iss->x, REG_SINK * sizeof poll->x[0]) == 0;
}

/* Skips whole rounds; false if nothing will ever end the loop. */
static bool skip_rounds(iss_t *iss, const poll_t *poll)
{
    const uint64_t event = htvm_soc_next_event(iss->bus.soc, iss->cycles);
    if (event == UINT64_MAX) {
        snprintf(iss->trap, sizeof iss->trap,
                 "endless wait: device register 0x%08" PRIx32 " stays 0x%" PRIx32
                 " and no device is at work",
                 poll->addr, poll->value);
        return false;
    }
    if (event > iss->cycles) {
        const uint64_t rounds = (event - 1 - iss->cycles) / poll->period;
        iss->cycles += rounds * poll->period;
        iss->retired += rounds * poll->steps;
    }
    return true;
}

bool htvm_iss_device_read(iss_t *iss, const insn_t *insn, uint32_t addr, uint32_t *value)
{
    poll_t *poll = &iss->poll;
    const bool again = repeats(iss, insn, addr);
    const uint64_t period = again ? iss->cycles - poll->cycle : 0;
    const uint64_t steps = again ? iss->retired - poll->retired : 0;

    *value = htvm_soc_read(iss->bus.soc, addr, iss->cycles);
    if (complained(iss)) {
        return false;
    }
    if (again && !iss->step_polls && *value == poll->value && period == poll->period &&
        steps == poll->steps) {
        if (!skip_rounds(iss, poll)) {
            return false;
        }
        *value = htvm_soc_read(iss->bus.soc, addr, iss->cycles);
    }
    /* A value that changed starts the count anew. */
    const bool same_value = again && *value == poll->value;
    poll->insn = insn;
    poll->addr = addr;
    poll->value = *value;
    poll->cycle = iss->cycles;
    poll->retired = iss->retired;
    poll->period = same_value ? period : 0;
    poll->steps = same_value ? steps : 0;
    memcpy(poll->x, iss->x, sizeof poll->x);
    return true;
}

bool htvm_iss_device_write(iss_t *iss, uint32_t addr, uint32_t value)
{
    htvm_soc_write(iss->bus.soc, addr, value, iss->cycles);
    return !complained(iss);
}
