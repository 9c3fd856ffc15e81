/* DIANA: driver of the analog core.
 *
 * Runs on the simulated host too, where its cycles are part of the published cost of a trigger:
 * keep it tight, and measure driver_cycles again after a change.
 */
#include "diana_analog_driver.h"

#include <stdbool.h>
#include <stddef.h>

#include "diana_poll.h"
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

static inline void prepare(const diana_analog_conv_t *t, const void *weights, uint32_t ends)
{
    /* Promising the alignment, and using the builtin, makes this one load: in freestanding code
     * memcpy would be a function call. */
    const uint8_t *from = __builtin_assume_aligned(t, sizeof(uint32_t));
    for (uint32_t i = 0; i < IMAGE_WORDS; i++) {
        uint32_t word;
        __builtin_memcpy(&word, from + 4 * i, sizeof word);
        htvm_hal_write(ANALOG(ANALOG_SHAPE0) + 4 * i, word);
    }
    htvm_hal_write(ANALOG(ANALOG_WEIGHTS), htvm_hal_addr(weights));
    htvm_hal_write(ANALOG(ANALOG_MODE), t->mode | ends);
}

static inline void start(void)
{
    htvm_hal_write(ANALOG(ANALOG_START), 1);
}

static inline int32_t wait(void)
{
    return diana_poll(ANALOG(REG_STATUS), ANALOG(REG_ERROR));
}

int32_t diana_analog_conv2d(const diana_analog_conv_t *t, const void *weights)
{
    prepare(t, weights, DIANA_ANALOG_FIRST | DIANA_ANALOG_LAST);
    start();
    return wait();
}

void diana_analog_conv2d_prepare(const diana_analog_conv_t *t, const void *weights)
{
    prepare(t, weights, DIANA_ANALOG_FIRST | DIANA_ANALOG_LAST);
}

void diana_analog_conv2d_start(void)
{
    start();
}

int32_t diana_analog_conv2d_finish(void)
{
    return wait();
}

static inline uint32_t pitch(uint32_t columns)
{
    return (columns + DIANA_ANALOG_ROW_PITCH - 1u) / DIANA_ANALOG_ROW_PITCH *
           DIANA_ANALOG_ROW_PITCH;
}

int32_t diana_analog_passes(const diana_analog_conv_t *t, const void *weights)
{
    diana_analog_passes_prepare(t, weights);
    start();
    return diana_analog_passes_finish(t, weights);
}

void diana_analog_passes_prepare(const diana_analog_conv_t *t, const void *weights)
{
    prepare(t, weights, DIANA_ANALOG_FIRST);
    htvm_hal_write(ANALOG(ANALOG_SHAPE0), t->k | (uint32_t)t->c_pass << 16);
}

void diana_analog_passes_start(void)
{
    start();
}

int32_t diana_analog_passes_finish(const diana_analog_conv_t *t, const void *weights)
{
    const bool vector = (t->mode & DIANA_ANALOG_VECTOR) != 0;
    const uint32_t step = t->c_pass * (vector ? 1u : t->iy * pitch(t->ix));
    uint32_t in = t->in;
    uint32_t image = htvm_hal_addr(weights);
    uint32_t left = t->c;
    if (t->c_pass == 0 || left <= t->c_pass) {
        return (int32_t)DIANA_ERROR_PARAMETER;
    }
    do {
        left -= t->c_pass;
        in += step;
        image += t->pass_bytes;
        uint32_t channels = t->c_pass;
        uint32_t mode = t->mode;
        if (left <= channels) {
            channels = left;
            mode |= DIANA_ANALOG_LAST;
        }
        htvm_hal_write(ANALOG(ANALOG_SHAPE0), t->k | channels << 16);
        htvm_hal_write(ANALOG(ANALOG_IN), in);
        htvm_hal_write(ANALOG(ANALOG_WEIGHTS), image);
        htvm_hal_write(ANALOG(ANALOG_MODE), mode);
        const int32_t error = wait();
        if (error != 0) {
            return error;
        }
        start();
    } while (left > t->c_pass);
    return wait();
}

/* Returns the number of outputs of the trigger that begins with output `first`. */
static inline uint32_t outputs(const diana_analog_conv_t *t, uint32_t first)
{
    const uint32_t left = t->k - first;
    return left < DIANA_ANALOG_DENSE_MAX_K ? left : DIANA_ANALOG_DENSE_MAX_K;
}

int32_t diana_analog_dense(const diana_analog_conv_t *t, const void *weights)
{
    diana_analog_dense_prepare(t, weights);
    start();
    return diana_analog_dense_finish(t, weights);
}

void diana_analog_dense_prepare(const diana_analog_conv_t *t, const void *weights)
{
    const bool all = t->c <= t->c_pass;
    const uint32_t ends = DIANA_ANALOG_FIRST | (all ? DIANA_ANALOG_LAST : 0u);
    prepare(t, weights, ends | DIANA_ANALOG_SLICED);
    htvm_hal_write(ANALOG(ANALOG_SHAPE0),
                   outputs(t, 0) | (uint32_t)(all ? t->c : t->c_pass) << 16);
    htvm_hal_write(ANALOG(ANALOG_SLICE), (uint32_t)t->k << 16);
}

void diana_analog_dense_start(void)
{
    start();
}

int32_t diana_analog_dense_finish(const diana_analog_conv_t *t, const void *weights)
{
    uint32_t first = 0; /* first output of the trigger that is running */
    uint32_t done = 0;  /* number of channels before those of its pass */
    uint32_t image = htvm_hal_addr(weights);
    if (t->c_pass == 0) {
        return (int32_t)DIANA_ERROR_PARAMETER;
    }
    for (;;) {
        done += t->c_pass;
        image += t->pass_bytes;
        if (done >= t->c) {
            done = 0;
            image = htvm_hal_addr(weights);
            first += DIANA_ANALOG_DENSE_MAX_K;
            if (first >= t->k) {
                return wait();
            }
        }
        const uint32_t left = t->c - done;
        uint32_t mode = t->mode | DIANA_ANALOG_SLICED;
        mode |= done == 0 ? DIANA_ANALOG_FIRST : 0u;
        mode |= left <= t->c_pass ? DIANA_ANALOG_LAST : 0u;
        htvm_hal_write(ANALOG(ANALOG_SHAPE0),
                       outputs(t, first) | (left < t->c_pass ? left : t->c_pass) << 16);
        htvm_hal_write(ANALOG(ANALOG_IN), t->in + done);
        htvm_hal_write(ANALOG(ANALOG_OUT), t->out + first);
        htvm_hal_write(ANALOG(ANALOG_WEIGHTS), image);
        htvm_hal_write(ANALOG(ANALOG_SLICE), first | (uint32_t)t->k << 16);
        htvm_hal_write(ANALOG(ANALOG_MODE), mode);
        const int32_t error = wait();
        if (error != 0) {
            return error;
        }
        start();
    }
}
