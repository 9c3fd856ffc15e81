/* The DMA: copies bytes at once, and is busy for as long as the cycle model says. */
#include <inttypes.h>
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
    if (to_l2) {
        const uint8_t *hole = memchr(soc->shadow + l1, 0, bytes);
        if (hole != NULL) {
            diana_complain(soc, dma, DIANA_ERROR_UNINITIALISED,
                           "transfer to L2 0x%08" PRIX32 " reads L1 0x%08" PRIX32 " (%" PRIu32
                           " B), of which offset %td was never written",
                           l2, HTVM_L1_BASE + l1, bytes, hole - (soc->shadow + l1));
            return;
        }
        memcpy(memory, soc->l1 + l1, bytes);
    } else {
        memcpy(soc->l1 + l1, memory, bytes);
        memset(soc->shadow + l1, 1, bytes);
    }
    const uint32_t moved =
        diana_blocks(diana_round_up(bytes, DIANA_DMA_GRANULE), DIANA_DMA_BYTES_PER_CYCLE);
    const diana_event_t event = {.what = to_l2 ? "out" : "in", .bytes = bytes};
    diana_start(soc, dma, event, now, (uint64_t)setup_cycles(position) + moved);
}
