/* The DMA: a queue of commands, each of which moves its bytes when the cycle model says it is done.
 *
 * Bytes that are changed too early or read too soon are therefore wrong, and the models complain:
 * for L1 when a command is given or a core is started (diana_race.c), for L2 when a command is done
 * and the host has written there in the meantime. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "diana_model.h"

/* Published costs of a call and a command include the host's driver code, which the simulator
 * runs as well: the device takes the difference. */
_Static_assert(DIANA_DMA_CALL_CYCLES >= DIANA_DMA_DRIVER_SINGLE_CYCLES, "driver too slow");
_Static_assert(DIANA_DMA_CALL_CYCLES + DIANA_DMA_COMMAND_CYCLES >= DIANA_DMA_DRIVER_FIRST_CYCLES,
               "driver too slow");
_Static_assert(DIANA_DMA_COMMAND_CYCLES >= DIANA_DMA_DRIVER_NEXT_CYCLES, "driver too slow");

static uint32_t setup_cycles(uint32_t position)
{
    switch (position) {
    case DIANA_DMA_SINGLE:
        return DIANA_DMA_CALL_CYCLES - DIANA_DMA_DRIVER_SINGLE_CYCLES;
    case DIANA_DMA_FIRST:
        return DIANA_DMA_CALL_CYCLES + DIANA_DMA_COMMAND_CYCLES - DIANA_DMA_DRIVER_FIRST_CYCLES;
    default:
        return DIANA_DMA_COMMAND_CYCLES - DIANA_DMA_DRIVER_NEXT_CYCLES;
    }
}

static bool check_l2(htvm_soc_t *soc, uint32_t l2, uint32_t bytes, uint8_t **memory)
{
    if (l2 % DIANA_DMA_L2_ALIGN != 0) {
        return diana_complain(soc, &soc->dma, DIANA_ERROR_ALIGNMENT,
                              "L2 address 0x%08" PRIX32 " (%" PRIu32
                              " B) is not aligned to %" PRIu32 " B",
                              l2, bytes, DIANA_DMA_L2_ALIGN);
    }
    *memory = soc->bus.map(soc->bus.ctx, l2, bytes);
    if (*memory == NULL) {
        return diana_complain(soc, &soc->dma, DIANA_ERROR_RANGE,
                              "L2 address 0x%08" PRIX32 " (%" PRIu32 " B) is not memory", l2,
                              bytes);
    }
    return true;
}

void diana_dma_command(htvm_soc_t *soc, uint64_t now)
{
    diana_device_t *dma = &soc->dma;
    const uint32_t command = diana_reg(dma, DIANA_DMA_COMMAND);
    const uint32_t bytes = command & DIANA_DMA_BYTES_MASK;
    const uint32_t position = command & DIANA_DMA_POSITION_MASK;
    const uint32_t l2 = diana_reg(dma, DIANA_DMA_L2);
    const uint32_t l1 = diana_reg(dma, DIANA_DMA_L1);
    const bool to_l2 = (command & DIANA_DMA_TO_L2) != 0;
    const uint32_t known = DIANA_DMA_BYTES_MASK | DIANA_DMA_POSITION_MASK | DIANA_DMA_TO_L2;
    uint8_t *memory;

    if (bytes == 0 || (command & ~known) != 0 || position == DIANA_DMA_POSITION_MASK) {
        diana_complain(soc, dma, DIANA_ERROR_PARAMETER,
                       "command 0x%08" PRIX32 " (%" PRIu32 " B, L1 0x%08" PRIX32
                       ", L2 0x%08" PRIX32 ") is not one",
                       command, bytes, HTVM_L1_BASE + l1, l2);
        return;
    }
    if (!diana_check_l1(soc, dma, "transfer", l1, bytes, DIANA_DMA_L1_ALIGN) ||
        !check_l2(soc, l2, bytes, &memory)) {
        return;
    }
    if (soc->queued == DIANA_DMA_QUEUE_DEPTH) {
        diana_complain(soc, dma, DIANA_ERROR_BUSY,
                       "command for L1 0x%08" PRIX32 " (%" PRIu32 " B): the queue of %" PRIu32
                       " is full for another %" PRIu64 " cycles",
                       HTVM_L1_BASE + l1, bytes, DIANA_DMA_QUEUE_DEPTH, soc->queue[0].end - now);
        return;
    }
    const diana_claim_t claim = {.offset = l1, .bytes = bytes, .write = !to_l2};
    if (!diana_claim_transfer(soc, claim, now)) {
        return;
    }
    uint8_t *before = malloc(bytes);
    if (before == NULL) {
        diana_complain(soc, dma, DIANA_ERROR_OPERATION,
                       "no memory on the simulating machine for %" PRIu32 " B", bytes);
        return;
    }
    memcpy(before, memory, bytes);
    const uint64_t start = soc->queued == 0 ? now : soc->queue[soc->queued - 1].end;
    const uint32_t moved =
        diana_blocks(diana_round_up(bytes, DIANA_DMA_GRANULE), DIANA_DMA_BYTES_PER_CYCLE);
    const uint64_t cycles = (uint64_t)setup_cycles(position) + moved;
    soc->queue[soc->queued++] = (diana_transfer_t){
        .l1 = l1,
        .l2 = l2,
        .bytes = bytes,
        .to_l2 = to_l2,
        .end = start + cycles,
        .memory = memory,
        .before = before,
    };
    const htvm_event_t event = {
        .what = to_l2 ? "out" : "in",
        .bytes = bytes,
        .issued = now,
        .from = to_l2 ? HTVM_L1_BASE + l1 : l2,
        .to = to_l2 ? l2 : HTVM_L1_BASE + l1,
        .written = bytes,
    };
    diana_start(soc, dma, event, start, cycles);
}

static bool move(htvm_soc_t *soc, const diana_transfer_t *t)
{
    if (memcmp(t->before, t->memory, t->bytes) != 0) {
        return diana_complain(soc, &soc->dma, DIANA_ERROR_RACE,
                              "L2 0x%08" PRIX32 " (%" PRIu32
                              " B) was written while a transfer %s L1 0x%08" PRIX32
                              " was under way",
                              t->l2, t->bytes, t->to_l2 ? "from" : "to", HTVM_L1_BASE + t->l1);
    }
    if (!t->to_l2) {
        memcpy(soc->l1 + t->l1, t->memory, t->bytes);
        memset(soc->shadow + t->l1, 1, t->bytes);
        return true;
    }
    const uint8_t *hole = memchr(soc->shadow + t->l1, 0, t->bytes);
    if (hole != NULL) {
        return diana_complain(soc, &soc->dma, DIANA_ERROR_UNINITIALISED,
                              "transfer to L2 0x%08" PRIX32 " reads L1 0x%08" PRIX32 " (%" PRIu32
                              " B), of which offset %td was never written",
                              t->l2, HTVM_L1_BASE + t->l1, t->bytes,
                              hole - (soc->shadow + t->l1));
    }
    memcpy(t->memory, soc->l1 + t->l1, t->bytes);
    return true;
}

/* Commands behind a store expect to find in L2 what it wrote there. */
static void refresh(htvm_soc_t *soc, const diana_transfer_t *done)
{
    for (size_t i = 1; i < soc->queued; i++) {
        const diana_transfer_t *t = &soc->queue[i];
        if (t->l2 - done->l2 < done->bytes || done->l2 - t->l2 < t->bytes) {
            memcpy(t->before, t->memory, t->bytes);
        }
    }
}

void diana_dma_advance(htvm_soc_t *soc, uint64_t now)
{
    while (soc->queued != 0 && soc->queue[0].end <= now) {
        const diana_transfer_t done = soc->queue[0];
        if (!move(soc, &done)) {
            diana_dma_drop(soc);
            return;
        }
        if (done.to_l2) {
            refresh(soc, &done);
        }
        free(done.before);
        soc->queued--;
        memmove(soc->queue, soc->queue + 1, soc->queued * sizeof soc->queue[0]);
    }
}

void diana_dma_drop(htvm_soc_t *soc)
{
    for (size_t i = 0; i < soc->queued; i++) {
        free(soc->queue[i].before);
    }
    soc->queued = 0;
}
