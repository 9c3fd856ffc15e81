/* Firmware that times every function of DIANA's driver on the simulated host.
 *
 * Marks: (case << 8 | size) << 1, plus 1 after the call.  The descriptors are complete before the
 * first mark; setting up the call's arguments counts as the driver's. */
#include "diana_analog_driver.h"
#include "diana_driver.h"
#include "htvm_hal.h"

#define SIZES 32u
#define OUT 131072u

static uint8_t l2[65536] __attribute__((section(".noinit"), aligned(16)));

static int32_t error;

/* Static, so that the compiler must complete them before it writes the mark. */
static diana_block_t block;
static diana_conv_t conv;
static diana_dense_t dense;
static diana_add_t add;
static diana_analog_conv_t analog;

static void begin(uint32_t which, uint32_t size)
{
    htvm_hal_trace((which << 8 | size) << 1);
}

static void end(uint32_t which, uint32_t size, int32_t code)
{
    htvm_hal_trace((which << 8 | size) << 1 | 1u);
    error = error != 0 ? error : code;
}

static void time_dma(uint32_t n)
{
    block = (diana_block_t){1, 1, n * 32u, 0, 0, 0, 0};
    begin(1, n);
    end(1, n, diana_dma_in(0, l2, &block));
    block = (diana_block_t){2, 4, n * 32u, n * 128u, n * 32u, n * 128u, n * 32u};
    begin(2, n);
    end(2, n, diana_dma_in(0, l2, &block));
    begin(3, n);
    end(3, n, diana_dma_out(l2, 0, &block));
    block = (diana_block_t){n + 1u, 1, n * 32u, 1024u, 0, 1024u, 0};
    begin(4, n);
    end(4, n, diana_dma_in(0, l2, &block));
    block = (diana_block_t){2, n + 1u, 32u + n, 32768u, 64u, 32768u, 64u};
    begin(5, n);
    end(5, n, diana_dma_in(0, l2, &block));
    begin(6, n);
    end(6, n, diana_dma_out(l2, 0, &block));
}

static void time_core(uint16_t n)
{
    conv = (diana_conv_t){.k = 16, .c = n, .iy = 8, .ix = 8, .oy = 8, .ox = 8, .fy = 3, .fx = 3,
                          .stride = 1, .pad_top = 1, .pad_left = 1, .shift = 4, .out = OUT};
    begin(7, n);
    end(7, n, diana_digital_conv2d(&conv, l2));
    conv.k = 32;
    conv.iy = conv.oy = (uint16_t)(n + 2u);
    begin(8, n);
    end(8, n, diana_digital_depthwise(&conv, l2));
    dense = (diana_dense_t){.k = 16, .c = (uint16_t)(16u * n), .in = 0, .out = OUT};
    begin(9, n);
    end(9, n, diana_digital_dense(&dense, l2));
    add = (diana_add_t){.elements = 16u * n, .a = 0, .b = 1024, .out = OUT};
    begin(10, n);
    end(10, n, diana_digital_add(&add));
    /* registers written ahead: calls of several triggers */
    begin(12, n);
    diana_digital_depthwise_prepare(&conv, l2);
    diana_digital_depthwise_start();
    end(12, n, diana_digital_depthwise_finish(&conv, l2));
    dense.k = 64;
    begin(13, n);
    diana_digital_dense_prepare(&dense, l2);
    diana_digital_dense_start();
    end(13, n, diana_digital_dense_finish(&dense, l2));
    analog = (diana_analog_conv_t){.k = 16, .c = 1, .iy = 2, .ix = n, .oy = 2, .ox = n, .fy = 1,
                                   .fx = 1, .stride = 1, .gain = 4, .shift = 4, .out = OUT,
                                   .mode = 1};
    begin(11, n);
    end(11, n, diana_analog_conv2d(&analog, l2));
}

int main(void)
{
    block = (diana_block_t){1, 1, sizeof l2, 0, 0, 0, 0};
    error = diana_dma_in(0, l2, &block);
    begin(0, 0); /* what a pair of marks costs by itself */
    end(0, 0, 0);
    for (uint32_t n = 1; n <= SIZES; n++) {
        time_dma(n);
        time_core((uint16_t)n);
    }
    return (int)error;
}
