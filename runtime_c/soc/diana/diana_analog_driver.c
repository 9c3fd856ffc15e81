/* DIANA: driver of the analog core.
 *
 * Runs on the simulated host too, where its cycles are part of the published cost of a trigger:
 * keep it tight, and measure driver_cycles again after a change.
 */
#include "diana_analog_driver.h"

#include <stddef.h>

#include "htvm_hal.h"

#define ANALOG(reg) (DIANA_ANALOG_REGISTERS + DIANA_##reg)

/* The registers up to PARTIAL are an image of the descriptor. */
#define IMAGE_WORDS 8u
_Static_assert(offsetof(diana_analog_conv_t, c) == 2, "SHAPE0");
_Static_assert(offsetof(diana_analog_conv_t, iy) == 4, "SHAPE1");
_Static_assert(offsetof(diana_analog_conv_t, oy) == 8, "SHAPE2");
_Static_assert(offsetof(diana_analog_conv_t, fy) == 12, "SHAPE3");
_Static_assert(offsetof(diana_analog_conv_t, pad_top) == 15, "SHAPE3");
_Static_assert(offsetof(diana_analog_conv_t, pad_left) == 16, "SHAPE4");
_Static_assert(offsetof(diana_analog_conv_t, clip) == 19, "SHAPE4");
_Static_assert(offsetof(diana_analog_conv_t, in) == 20, "IN");
_Static_assert(offsetof(diana_analog_conv_t, partial) == 28, "PARTIAL");

static inline void start(const diana_analog_conv_t *t, const void *weights)
{
    /* One load per word: needs the promise, and the builtin, as freestanding memcpy is a call. */
    const uint8_t *from = __builtin_assume_aligned(t, sizeof(uint32_t));
    for (uint32_t i = 0; i < IMAGE_WORDS; i++) {
        uint32_t word;
        __builtin_memcpy(&word, from + 4 * i, sizeof word);
        htvm_hal_write(ANALOG(ANALOG_SHAPE0) + 4 * i, word);
    }
    htvm_hal_write(ANALOG(ANALOG_WEIGHTS), htvm_hal_addr(weights));
    htvm_hal_write(ANALOG(ANALOG_START), t->mode);
}

static inline int32_t finish(void)
{
    uint32_t status;
    do {
        status = htvm_hal_read(ANALOG(REG_STATUS));
    } while (status == DIANA_STATUS_BUSY);
    if (__builtin_expect(status != DIANA_STATUS_IDLE, 0)) {
        return (int32_t)htvm_hal_read(ANALOG(REG_ERROR));
    }
    return 0;
}

void diana_analog_conv2d_start(const diana_analog_conv_t *t, const void *weights)
{
    start(t, weights);
}

int32_t diana_analog_conv2d_finish(void)
{
    return finish();
}

int32_t diana_analog_conv2d(const diana_analog_conv_t *t, const void *weights)
{
    start(t, weights);
    return finish();
}
