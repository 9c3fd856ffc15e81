/* Firmware that times the analog core's driver with one pass and with several.
 *
 * Marks: (case << 8 | size) << 1, plus 1 after the call. */
#include "diana_analog_driver.h"
#include "diana_driver.h"
#include "htvm_hal.h"

#define SIZES 32u
#define PASSES 8u
#define OUT 131072u
#define SUMS 196608u

static uint8_t l2[131072] __attribute__((section(".noinit"), aligned(16)));

static int32_t error;

/* Static, so that the compiler must complete them before it writes the mark. */
static diana_block_t block;
static diana_analog_conv_t tile;

static void measure(uint32_t which, uint32_t size,
                    int32_t (*call)(const diana_analog_conv_t *, const void *))
{
    htvm_hal_trace((which << 8 | size) << 1);
    const int32_t code = call(&tile, l2);
    htvm_hal_trace((which << 8 | size) << 1 | 1u);
    error = error != 0 ? error : code;
}

int main(void)
{
    block = (diana_block_t){1, 1, sizeof l2, 0, 0, 0, 0};
    error = diana_dma_in(0, l2, &block);
    htvm_hal_trace(0); /* what a pair of marks costs by itself */
    htvm_hal_trace(1);
    for (uint32_t n = 1; n <= SIZES; n++) {
        tile = (diana_analog_conv_t){.k = 16, .c = 1, .iy = 2, .ix = (uint16_t)n, .oy = 2,
                                     .ox = (uint16_t)n, .fy = 1, .fx = 1, .stride = 1, .gain = 4,
                                     .shift = 4, .out = OUT, .mode = 1, .c_pass = 1};
        measure(1, n, diana_analog_conv2d);
        tile.c = PASSES;
        tile.partial = SUMS;
        tile.pass_bytes = DIANA_ANALOG_ROW_STEP * DIANA_ANALOG_COLUMN_STEP / 4u;
        measure(2, n, diana_analog_passes);
    }
    return (int)error;
}
