/* Banks of L1 that the DMA and ITA take from the cores.
 *
 * The DMA's port is as wide as several banks, and has priority over the cores (public code: Snitch's
 * cluster); it takes them in each cycle in which bytes move.  ITA has 16 ports like those of the cores
 * (published), between which banks take turns, so that it refuses a core once (public code).  Its
 * accesses are those that its operands need, spread evenly over the task.  Neither waits for cores
 * (assumed: ITA has queues of words, and uses its ports in about half of the cycles).
 */
#include "htvm_soc_banks.h"
#include "snitch_model.h"

#define BANK HTVM_CLUSTER_BANK_BYTES
#define BANKS_OF(bytes) (((bytes) + BANK - 1u) / BANK)

static htvm_soc_port_t port_of_side(const snitch_order_t *order, const snitch_area_t *side)
{
    const uint32_t beats = snitch_blocks(side->bytes, SNITCH_ITA_DMA_BYTES_PER_CYCLE);
    return (htvm_soc_port_t){
        .from = order->start,
        .busy = 1,
        .of = 1,
        .bank = side->first / BANK,
        .step = BANKS_OF(side->rows > 1 && beats == 1 ? side->stride
                                                      : SNITCH_ITA_DMA_BYTES_PER_CYCLE),
        .width = BANKS_OF(SNITCH_ITA_DMA_BYTES_PER_CYCLE),
        .most = UINT32_MAX,
    };
}

/* The accesses of a task: ITA holds the weights of as many columns as it has lanes, and streams all
 * rows past them. */
static uint64_t accesses_of(const snitch_product_t *p)
{
    const uint64_t turns = snitch_blocks(p->cols, SNITCH_ITA_ITA_LANES);
    const uint64_t blocks = snitch_blocks(p->rows, SNITCH_ITA_ITA_TILE);
    const uint64_t streamed = turns * p->rows * p->inner;
    const uint64_t held = blocks * p->cols * p->inner;
    const uint64_t written = (uint64_t)p->rows * p->cols;
    return (streamed + held + written) / SNITCH_ITA_ITA_WEIGHT_BYTES_PER_CYCLE;
}

static htvm_soc_port_t port_of_task(const snitch_order_t *order)
{
    const uint64_t cycles = order->end - order->start;
    const uint64_t accesses = accesses_of(&order->product);
    return (htvm_soc_port_t){
        .from = order->start,
        .busy = (uint32_t)(accesses < cycles ? accesses : cycles),
        .of = (uint32_t)cycles,
        .bank = order->areas[1].first / BANK, /* the left operand */
        .step = BANKS_OF(SNITCH_ITA_ITA_WEIGHT_BYTES_PER_CYCLE),
        .width = BANKS_OF(SNITCH_ITA_ITA_WEIGHT_BYTES_PER_CYCLE),
        .most = 1,
    };
}

htvm_soc_banks_t htvm_soc_banks(const htvm_soc_t *soc, uint64_t at)
{
    htvm_soc_banks_t banks = {.from = 0, .until = UINT64_MAX};
    for (size_t n = 0; n < soc->dma.queued; n++) {
        const snitch_order_t *order = &soc->dma.queue[n];
        for (size_t side = 0; side < order->area_count; side++) {
            if (snitch_begins_in_l1(&order->areas[side])) {
                htvm_banks_add(&banks, at, port_of_side(order, &order->areas[side]), order->end);
            }
        }
    }
    for (size_t n = 0; n < soc->ita.queued; n++) {
        const snitch_order_t *order = &soc->ita.queue[n];
        htvm_banks_add(&banks, at, port_of_task(order), order->end);
    }
    return banks;
}
