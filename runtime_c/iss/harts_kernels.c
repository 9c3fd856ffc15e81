/* When kernels run, for what is told of a run.
 *
 * Where hart 0 is one of the cores, it wakes those that it meets at the barrier, computes with them,
 * and the kernel ends when the barrier opens.
 *
 * Where hart 0 is a controller (FIRST_CORE > 0) it goes on with something else.  A kernel then lasts
 * from the wake-up until the last of these cores has arrived: at a barrier that hart 0 takes part in,
 * or, if it does not, where it sleeps.  Cores may meet at barriers of their own in between.  The same
 * holds where hart 0 is one of the cores, but does not meet those that it wakes at their barrier.
 */
#include "harts.h"

#ifdef HTVM_ISS_HARTS

#define COMPUTING (((1u << CORES) - 1u) << FIRST_CORE) /* harts, a bit each */

void htvm_harts_kernel_begins(harts_t *all, uint32_t mask, uint64_t now)
{
    const uint32_t together = all->barrier_mask;
    if (htvm_harts_controlled() || (together & 1u << HOST) == 0) {
        if (all->working == 0 && (mask & COMPUTING) != 0) {
            all->kernel_since = now;
        }
        all->working |= mask & COMPUTING;
    } else if ((together & 1u << HOST) != 0 && (together & mask & ~(1u << HOST)) != 0 &&
               all->kernel_since == UINT64_MAX) {
        all->kernel_since = now;
        all->hart[HOST].busy_since = now;
    }
}

void htvm_harts_kernel_left(harts_t *all, const hart_t *hart, uint64_t now)
{
    const uint32_t bit = 1u << hart->number;
    if ((all->working & bit) == 0 || (hart->at_barrier && (all->barrier_mask & 1u << HOST) == 0)) {
        return;
    }
    all->working &= ~bit;
    if (all->working == 0) {
        htvm_harts_note(all, LANE_KERNELS, all->kernel_since, now);
        all->kernel_since = UINT64_MAX;
    }
}

void htvm_harts_kernel_joined(harts_t *all, uint64_t released)
{
    if (!htvm_harts_controlled() && all->kernel_since != UINT64_MAX && all->hart[HOST].at_barrier) {
        htvm_harts_note(all, LANE_KERNELS, all->kernel_since, released);
        all->kernel_since = UINT64_MAX;
        all->hart[HOST].idle_since = released; /* it has not waited: that is the kernel's */
    }
}

#endif
