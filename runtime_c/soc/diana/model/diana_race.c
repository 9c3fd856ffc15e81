/* Races: two devices use the same bytes of L1 at the same time, and one of them writes.
 *
 * A claim is checked against everything that is under way when it is made, so a program that relies
 * on how long something takes is wrong even where it would come out right. */
#include <inttypes.h>

#include "diana_model.h"

static bool conflict(const diana_claim_t *a, const diana_claim_t *b)
{
    return (a->write || b->write) && a->offset < b->offset + b->bytes &&
           b->offset < a->offset + a->bytes;
}

static const char *verb(const diana_claim_t *claim) { return claim->write ? "writes" : "reads"; }

static bool complain(htvm_soc_t *soc, diana_device_t *device, const char *what,
                     const diana_claim_t *mine, const char *other, const diana_claim_t *theirs)
{
    return diana_complain(soc, device, DIANA_ERROR_RACE,
                          "%s %s L1 0x%08" PRIX32 " (%" PRIu64 " B) while the %s still %s 0x%08" PRIX32
                          " (%" PRIu64 " B)",
                          what, verb(mine), HTVM_L1_BASE + mine->offset, mine->bytes, other,
                          verb(theirs), HTVM_L1_BASE + theirs->offset, theirs->bytes);
}

/* Checks against the running cores, other than `device` itself. */
static bool check_cores(htvm_soc_t *soc, diana_device_t *device, const char *what,
                        const diana_claim_t *claim, uint64_t now)
{
    diana_device_t *const cores[] = {&soc->digital, &soc->analog};
    for (size_t i = 0; i < sizeof cores / sizeof cores[0]; i++) {
        const diana_device_t *core = cores[i];
        if (core == device || core->busy_until <= now) {
            continue;
        }
        for (size_t j = 0; j < core->claim_count; j++) {
            if (conflict(claim, &core->claims[j])) {
                return complain(soc, device, what, claim, core->name, &core->claims[j]);
            }
        }
    }
    return true;
}

/* Checks against the transfers that are not done. */
static bool check_transfers(htvm_soc_t *soc, diana_device_t *device, const char *what,
                            const diana_claim_t *claim)
{
    for (size_t i = 0; i < soc->queued; i++) {
        const diana_transfer_t *t = &soc->queue[i];
        const diana_claim_t theirs = {.offset = t->l1, .bytes = t->bytes, .write = !t->to_l2};
        if (conflict(claim, &theirs)) {
            return complain(soc, device, what, claim, soc->dma.name, &theirs);
        }
    }
    return true;
}

bool diana_claim(htvm_soc_t *soc, diana_device_t *core, const char *what,
                 const diana_claim_t *claims, size_t count, uint64_t now)
{
    for (size_t i = 0; i < count; i++) {
        if (!check_cores(soc, core, what, &claims[i], now) ||
            !check_transfers(soc, core, what, &claims[i])) {
            return false;
        }
        core->claims[i] = claims[i];
    }
    core->claim_count = count;
    return true;
}

bool diana_claim_transfer(htvm_soc_t *soc, diana_claim_t claim, uint64_t now)
{
    return check_cores(soc, &soc->dma, claim.write ? "transfer from L2" : "transfer to L2", &claim,
                       now);
}
