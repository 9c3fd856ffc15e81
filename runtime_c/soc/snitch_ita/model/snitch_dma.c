/* The DMA: transfers in one or two dimensions, whose bytes move when they are done. */
#include <inttypes.h>
#include <string.h>

#include "snitch_model.h"

/* The cost of a transfer may include the driver's cycles, which the simulator runs as well. */
_Static_assert(SNITCH_ITA_DMA_CALL_CYCLES >= SNITCH_ITA_DMA_DRIVER_SINGLE_CYCLES,
               "driver too slow");

enum { SOURCE, DEST, SIDES };

static snitch_area_t read_area(const snitch_device_t *dma, bool dest)
{
    return (snitch_area_t){
        .role = dest ? "destination" : "source",
        .first = snitch_reg(dma, dest ? SNITCH_DMA_DEST : SNITCH_DMA_SOURCE),
        .bytes = snitch_reg(dma, SNITCH_DMA_BYTES),
        .rows = snitch_reg(dma, SNITCH_DMA_ROWS),
        .stride = snitch_reg(dma, dest ? SNITCH_DMA_DEST_STRIDE : SNITCH_DMA_SOURCE_STRIDE),
        .write = dest,
    };
}

static bool check_sizes(htvm_soc_t *soc, const snitch_area_t *sides)
{
    const snitch_area_t *dest = &sides[DEST];
    if (dest->bytes == 0 || dest->rows == 0) {
        return snitch_complain(soc, &soc->dma, SNITCH_ERROR_PARAMETER,
                               "transfer from 0x%08" PRIX32 " to 0x%08" PRIX32 " of %" PRIu32
                               " x %" PRIu32 " B moves nothing",
                               sides[SOURCE].first, dest->first, dest->rows, dest->bytes);
    }
    if (dest->rows > 1 && dest->stride < dest->bytes) {
        return snitch_complain(soc, &soc->dma, SNITCH_ERROR_PARAMETER,
                               "transfer to 0x%08" PRIX32 ": rows of %" PRIu32
                               " B every %" PRIu32 " B overwrite each other",
                               dest->first, dest->bytes, dest->stride);
    }
    return true;
}

static bool check_place(htvm_soc_t *soc, snitch_area_t *side)
{
    const uint32_t align =
        snitch_begins_in_l1(side) ? SNITCH_ITA_DMA_L1_ALIGN : SNITCH_ITA_DMA_L2_ALIGN;
    if (side->first % align != 0 || (side->rows > 1 && side->stride % align != 0)) {
        return snitch_complain(soc, &soc->dma, SNITCH_ERROR_ALIGNMENT,
                               "%s at 0x%08" PRIX32 ", stride %" PRIu32
                               " (%" PRIu32 " x %" PRIu32 " B) is not aligned to %" PRIu32 " B",
                               side->role, side->first, side->stride, side->rows, side->bytes,
                               align);
    }
    return snitch_find_area(soc, &soc->dma, side);
}

static bool check(htvm_soc_t *soc, snitch_order_t *order)
{
    snitch_area_t *sides = order->areas;
    if (!check_sizes(soc, sides) || !check_place(soc, &sides[SOURCE]) ||
        !check_place(soc, &sides[DEST])) {
        return false;
    }
    if (snitch_meet(&sides[SOURCE], &sides[DEST])) {
        return snitch_complain(soc, &soc->dma, SNITCH_ERROR_OVERLAP,
                               "destination at 0x%08" PRIX32 " (%" PRIu32 " x %" PRIu32
                               " B) overlaps source at 0x%08" PRIX32,
                               sides[DEST].first, sides[DEST].rows, sides[DEST].bytes,
                               sides[SOURCE].first);
    }
    if (soc->dma.queued == soc->dma.depth) {
        return snitch_complain(soc, &soc->dma, SNITCH_ERROR_BUSY,
                               "transfer to 0x%08" PRIX32 " (%" PRIu32 " x %" PRIu32
                               " B): the queue of %zu is full for another %" PRIu64 " cycles",
                               sides[DEST].first, sides[DEST].rows, sides[DEST].bytes,
                               soc->dma.depth, soc->dma.queue[0].end - soc->now);
    }
    return snitch_check_races(soc, &soc->dma, order, &soc->ita);
}

static const char *direction(const snitch_area_t *sides)
{
    const bool from_l1 = snitch_begins_in_l1(&sides[SOURCE]);
    if (from_l1 == snitch_begins_in_l1(&sides[DEST])) {
        return "move";
    }
    return from_l1 ? "out" : "in";
}

void snitch_dma_take(htvm_soc_t *soc)
{
    snitch_device_t *dma = &soc->dma;
    snitch_order_t order = {
        .areas = {[SOURCE] = read_area(dma, false), [DEST] = read_area(dma, true)},
        .area_count = SIDES,
    };
    if (!check(soc, &order)) {
        return;
    }
    const snitch_area_t *dest = &order.areas[DEST];
    const uint64_t start = dma->queued == 0 ? soc->now : dma->queue[dma->queued - 1].free_at;
    const uint32_t charged =
        snitch_blocks(dest->bytes, SNITCH_ITA_DMA_GRANULE) * SNITCH_ITA_DMA_GRANULE;
    const uint64_t row = snitch_blocks(charged, SNITCH_ITA_DMA_BYTES_PER_CYCLE);
    order.end = start + SNITCH_ITA_DMA_CALL_CYCLES - SNITCH_ITA_DMA_DRIVER_SINGLE_CYCLES +
                dest->rows * row;
    order.free_at = order.end;
    order.start = order.end - dest->rows * row;
    if (!snitch_queue(soc, dma, &order)) {
        return;
    }
    if (dma->queued == 1) {
        snitch_spoil(dma);
    }
    const htvm_event_t event = {
        .unit = dma->unit,
        .what = direction(order.areas),
        .start = start,
        .end = order.end,
        .issued = soc->now,
        .bytes = (uint64_t)dest->rows * dest->bytes,
        .from = order.areas[SOURCE].first,
        .to = dest->first,
        .written = snitch_span(dest),
        .from_rows = snitch_rows(&order.areas[SOURCE]),
        .to_rows = snitch_rows(dest),
    };
    htvm_log_event(&soc->log, event);
}

bool snitch_dma_complete(htvm_soc_t *soc)
{
    const snitch_order_t *order = &soc->dma.queue[0];
    const snitch_area_t *source = &order->areas[SOURCE];
    const snitch_area_t *dest = &order->areas[DEST];
    if (!snitch_check_unchanged(soc, &soc->dma, order)) {
        return false;
    }
    for (uint32_t row = 0; row < dest->rows; row++) {
        memcpy(dest->memory + (size_t)row * dest->stride,
               source->memory + (size_t)row * source->stride, dest->bytes);
    }
    return true;
}
