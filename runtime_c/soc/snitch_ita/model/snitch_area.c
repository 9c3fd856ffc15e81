/* Areas of memory: where they are, whether they overlap, and whether they are unchanged. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "snitch_model.h"

bool snitch_begins_in_l1(const snitch_area_t *area)
{
    return area->first - HTVM_L1_BASE < HTVM_L1_SIZE;
}

bool snitch_find_area(htvm_soc_t *soc, snitch_device_t *device, snitch_area_t *area)
{
    const uint64_t span = snitch_span(area);
    if (snitch_begins_in_l1(area) && span > HTVM_L1_SIZE - (area->first - HTVM_L1_BASE)) {
        return snitch_complain(soc, device, SNITCH_ERROR_RANGE,
                               "%s at L1 0x%08" PRIX32 " (%" PRIu64
                               " B) leaves L1, which ends at 0x%08" PRIX32,
                               area->role, area->first, span, HTVM_L1_BASE + HTVM_L1_SIZE);
    }
    area->memory =
        span > UINT32_MAX ? NULL : soc->bus.map(soc->bus.ctx, area->first, (uint32_t)span);
    if (area->memory == NULL) {
        return snitch_complain(soc, device, SNITCH_ERROR_RANGE,
                               "%s at 0x%08" PRIX32 " (%" PRIu64 " B) is not in memory", area->role,
                               area->first, span);
    }
    return true;
}

/* Whether bytes [from, to) overlap a row of the area. */
static bool meets_range(const snitch_area_t *area, uint64_t from, uint64_t to)
{
    const uint64_t first = area->first;
    uint64_t row = 0; /* the first that ends behind `from` */
    if (first + area->bytes <= from && area->stride != 0) {
        row = (from - first - area->bytes) / area->stride + 1u;
    }
    const uint64_t begin = first + row * area->stride;
    return row < area->rows && begin < to && from < begin + area->bytes;
}

bool snitch_meet(const snitch_area_t *a, const snitch_area_t *b)
{
    for (uint32_t row = 0; row < a->rows; row++) {
        const uint64_t from = a->first + (uint64_t)row * a->stride;
        if (meets_range(b, from, from + a->bytes)) {
            return true;
        }
    }
    return false;
}

static const char *verb(const snitch_area_t *area) { return area->write ? "writes" : "reads"; }

bool snitch_check_races(htvm_soc_t *soc, snitch_device_t *device, const snitch_order_t *order,
                        const snitch_device_t *other)
{
    for (size_t n = 0; n < other->queued; n++) {
        for (size_t i = 0; i < order->area_count; i++) {
            for (size_t j = 0; j < other->queue[n].area_count; j++) {
                const snitch_area_t *mine = &order->areas[i];
                const snitch_area_t *theirs = &other->queue[n].areas[j];
                if ((mine->write || theirs->write) && snitch_meet(mine, theirs)) {
                    return snitch_complain(
                        soc, device, SNITCH_ERROR_RACE,
                        "%s %s 0x%08" PRIX32 " (%" PRIu32 " x %" PRIu32
                        " B) while the %s still %s 0x%08" PRIX32 " (%" PRIu32 " x %" PRIu32 " B)",
                        mine->role, verb(mine), mine->first, mine->rows, mine->bytes, other->name,
                        verb(theirs), theirs->first, theirs->rows, theirs->bytes);
                }
            }
        }
    }
    return true;
}

static void remember(snitch_area_t *area)
{
    for (uint32_t row = 0; row < area->rows; row++) {
        memcpy(area->before + (size_t)row * area->bytes,
               area->memory + (size_t)row * area->stride, area->bytes);
    }
}

static void release(snitch_order_t *order)
{
    for (size_t i = 0; i < order->area_count; i++) {
        free(order->areas[i].before);
    }
}

bool snitch_queue(htvm_soc_t *soc, snitch_device_t *device, const snitch_order_t *order)
{
    snitch_order_t *kept = &device->queue[device->queued];
    *kept = *order;
    for (size_t i = 0; i < kept->area_count; i++) {
        snitch_area_t *area = &kept->areas[i];
        area->before = malloc((size_t)area->rows * area->bytes);
        if (area->before == NULL) {
            kept->area_count = i;
            release(kept);
            return snitch_complain(soc, device, SNITCH_ERROR_OPERATION,
                                   "no memory on the simulating machine for %" PRIu32 " x %" PRIu32
                                   " B",
                                   area->rows, area->bytes);
        }
        remember(area);
    }
    device->queued++;
    device->started++;
    return true;
}

bool snitch_check_unchanged(htvm_soc_t *soc, snitch_device_t *device, const snitch_order_t *order)
{
    for (size_t i = 0; i < order->area_count; i++) {
        const snitch_area_t *area = &order->areas[i];
        for (uint32_t row = 0; row < area->rows; row++) {
            if (memcmp(area->before + (size_t)row * area->bytes,
                       area->memory + (size_t)row * area->stride, area->bytes) != 0) {
                return snitch_complain(soc, device, SNITCH_ERROR_RACE,
                                       "%s at 0x%08" PRIX32 " (row %" PRIu32 " of %" PRIu32
                                       ", %" PRIu32 " B) was written by somebody else while in use",
                                       area->role, area->first + row * area->stride, row,
                                       area->rows, area->bytes);
            }
        }
    }
    return true;
}

/* Lets all orders expect what the oldest one has written. */
static void expect_written(snitch_device_t *device)
{
    const snitch_order_t *oldest = &device->queue[0];
    for (size_t n = 0; n < device->queued; n++) {
        for (size_t i = 0; i < device->queue[n].area_count; i++) {
            for (size_t j = 0; j < oldest->area_count; j++) {
                const snitch_area_t *written = &oldest->areas[j];
                if (written->write && snitch_meet(written, &device->queue[n].areas[i])) {
                    remember(&device->queue[n].areas[i]);
                }
            }
        }
    }
}

void snitch_retire(snitch_device_t *device)
{
    expect_written(device);
    release(&device->queue[0]);
    device->queued--;
    device->completed++;
    memmove(device->queue, device->queue + 1, device->queued * sizeof device->queue[0]);
}

void snitch_spoil(snitch_device_t *device)
{
    const snitch_order_t *order = &device->queue[0];
    for (size_t j = 0; j < order->area_count && device->queued > 0; j++) {
        const snitch_area_t *to = &order->areas[j];
        for (uint32_t row = 0; row < to->rows && to->write; row++) {
            memset(to->memory + (size_t)row * to->stride, 0xA5, to->bytes);
        }
    }
    expect_written(device);
}

void snitch_drop(snitch_device_t *device)
{
    for (size_t i = 0; i < device->queued; i++) {
        release(&device->queue[i]);
    }
    device->completed += (uint32_t)device->queued;
    device->queued = 0;
}
