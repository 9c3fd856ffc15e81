/* DIANA: driver of the digital core.
 *
 * Runs on the simulated host too, where its cycles are part of the published cost of a trigger:
 * keep it tight, and measure driver_cycles again after a change.
 */
#include "diana_driver.h"

#include <stddef.h>

#include "diana_poll.h"

#define DIGITAL(reg) (DIANA_DIGITAL_REGISTERS + DIANA_##reg)

/* The shape registers are images of the descriptors. */
_Static_assert(offsetof(diana_conv_t, c) == 2 && offsetof(diana_conv_t, iy) == 4, "SHAPE0..1");
_Static_assert(offsetof(diana_conv_t, oy) == 8 && offsetof(diana_conv_t, fy) == 12, "SHAPE2..3");
_Static_assert(offsetof(diana_conv_t, pad_top) == 15, "SHAPE3");
_Static_assert(offsetof(diana_conv_t, pad_left) == 16, "SHAPE4");
_Static_assert(offsetof(diana_conv_t, shift) == 17, "SHAPE4");
_Static_assert(offsetof(diana_conv_t, relu) == 18 && offsetof(diana_conv_t, in) == 20, "SHAPE4");

static inline int32_t digital_finish(void)
{
    return diana_poll(DIGITAL(REG_STATUS), DIGITAL(REG_ERROR));
}

/* Copies the first `words` words of a descriptor into the shape registers. */
static inline void write_shape(const void *descriptor, uint32_t words)
{
    /* Promising the alignment, and using the builtin, makes this one load: in freestanding code
     * memcpy would be a function call. */
    const uint8_t *from = __builtin_assume_aligned(descriptor, sizeof(uint32_t));
    for (uint32_t i = 0; i < words; i++) {
        uint32_t word;
        __builtin_memcpy(&word, from + 4 * i, sizeof word);
        htvm_hal_write(DIGITAL(DIGITAL_SHAPE0) + 4 * i, word);
    }
}

static inline void digital_start(uint32_t operation)
{
    htvm_hal_write(DIGITAL(DIGITAL_START), operation);
}

static inline void conv_prepare(const diana_conv_t *t, const void *weights)
{
    write_shape(t, 5);
    htvm_hal_write(DIGITAL(DIGITAL_IN), t->in);
    htvm_hal_write(DIGITAL(DIGITAL_OUT), t->out);
    htvm_hal_write(DIGITAL(DIGITAL_WEIGHTS), htvm_hal_addr(weights));
}

int32_t diana_digital_conv2d(const diana_conv_t *t, const void *weights)
{
    conv_prepare(t, weights);
    digital_start(DIANA_DIGITAL_OP_CONV);
    return digital_finish();
}

void diana_digital_conv2d_prepare(const diana_conv_t *t, const void *weights)
{
    conv_prepare(t, weights);
}

void diana_digital_conv2d_start(void) { digital_start(DIANA_DIGITAL_OP_CONV); }

int32_t diana_digital_conv2d_finish(void) { return digital_finish(); }

/* Keeps the compiler from computing with `value` before the device has been started.  Afterwards
 * it costs nothing, because the host would only wait. */
static inline uint32_t meanwhile(uint32_t value)
{
    __asm__ volatile("" : "+r"(value));
    return value;
}

static inline uint32_t pitch(uint32_t columns)
{
    return (columns + DIANA_DIGITAL_ROW_PITCH - 1u) / DIANA_DIGITAL_ROW_PITCH *
           DIANA_DIGITAL_ROW_PITCH;
}

int32_t diana_digital_depthwise(const diana_conv_t *t, const void *weights)
{
    const uint32_t in_map = t->iy * pitch(t->ix);
    const uint32_t out_map = t->oy * pitch(t->ox);
    const uint32_t block =
        (uint32_t)t->fy * t->fx * DIANA_DIGITAL_LANES + DIANA_DIGITAL_BIAS_BYTES;
    uint32_t in = t->in;
    uint32_t out = t->out;
    /* A channel's load starts at its lane, which thereby becomes lane 0. */
    uint32_t w = htvm_hal_addr(weights);
    uint32_t lanes_end = w + DIANA_DIGITAL_LANES;
    uint32_t left = t->k;

    if (left == 0) {
        return (int32_t)DIANA_ERROR_PARAMETER;
    }
    write_shape(t, 5);
    htvm_hal_write(DIGITAL(DIGITAL_SHAPE0), DIANA_DIGITAL_LANES | 1u << 16); /* k = 16, c = 1 */
    do {
        htvm_hal_write(DIGITAL(DIGITAL_IN), in);
        htvm_hal_write(DIGITAL(DIGITAL_OUT), out);
        htvm_hal_write(DIGITAL(DIGITAL_WEIGHTS), w);
        htvm_hal_write(DIGITAL(DIGITAL_START), DIANA_DIGITAL_OP_DEPTHWISE);
        in = meanwhile(in) + in_map;
        out = meanwhile(out) + out_map;
        w = meanwhile(w) + DIANA_DIGITAL_GROUP;
        if (w == lanes_end) {
            w += block - DIANA_DIGITAL_LANES;
            lanes_end += block;
        }
        const int32_t error = digital_finish();
        if (error != 0) {
            return error;
        }
    } while (--left != 0);
    return 0;
}

void diana_digital_depthwise_prepare(const diana_conv_t *t, const void *weights)
{
    conv_prepare(t, weights);
    /* k = 16, c = 1; if there are no channels, the device refuses the trigger */
    htvm_hal_write(DIGITAL(DIGITAL_SHAPE0),
                   t->k == 0 ? 0u : DIANA_DIGITAL_LANES | 1u << 16);
}

void diana_digital_depthwise_start(void) { digital_start(DIANA_DIGITAL_OP_DEPTHWISE); }

int32_t diana_digital_depthwise_finish(const diana_conv_t *t, const void *weights)
{
    const uint32_t in_map = t->iy * pitch(t->ix);
    const uint32_t out_map = t->oy * pitch(t->ox);
    const uint32_t block =
        (uint32_t)t->fy * t->fx * DIANA_DIGITAL_LANES + DIANA_DIGITAL_BIAS_BYTES;
    uint32_t in = t->in;
    uint32_t out = t->out;
    uint32_t w = htvm_hal_addr(weights);
    uint32_t lanes_end = w + DIANA_DIGITAL_LANES;

    for (uint32_t left = t->k; left > 1; left--) {
        in += in_map;
        out += out_map;
        w += DIANA_DIGITAL_GROUP;
        if (w == lanes_end) {
            w += block - DIANA_DIGITAL_LANES;
            lanes_end += block;
        }
        htvm_hal_write(DIGITAL(DIGITAL_IN), in);
        htvm_hal_write(DIGITAL(DIGITAL_OUT), out);
        htvm_hal_write(DIGITAL(DIGITAL_WEIGHTS), w);
        const int32_t error = digital_finish();
        if (error != 0) {
            return error;
        }
        digital_start(DIANA_DIGITAL_OP_DEPTHWISE);
    }
    return digital_finish();
}

/* SHAPE0 of a trigger that computes at most `most` of the channels left, each from itself. */
static inline uint32_t channels_of(uint32_t left, uint32_t most)
{
    const uint32_t channels = left < most ? left : most;
    return channels | channels << 16;
}

void diana_digital_depthwise_blocks_prepare(const diana_conv_t *t, const void *weights)
{
    conv_prepare(t, weights);
    htvm_hal_write(DIGITAL(DIGITAL_SHAPE0), channels_of(t->k, t->c));
}

void diana_digital_depthwise_blocks_start(void) { digital_start(DIANA_DIGITAL_OP_CONV); }

int32_t diana_digital_depthwise_blocks_finish(const diana_conv_t *t, const void *weights)
{
    const uint32_t most = t->c;
    const uint32_t in_maps = most * t->iy * pitch(t->ix);
    const uint32_t out_maps = most * t->oy * pitch(t->ox);
    const uint32_t block =
        most * t->fy * t->fx * DIANA_DIGITAL_LANES + DIANA_DIGITAL_BIAS_BYTES;
    uint32_t in = t->in;
    uint32_t out = t->out;
    uint32_t w = htvm_hal_addr(weights);

    for (uint32_t done = most; done < t->k; done += most) {
        in += in_maps;
        out += out_maps;
        w += block;
        htvm_hal_write(DIGITAL(DIGITAL_SHAPE0), channels_of(t->k - done, most));
        htvm_hal_write(DIGITAL(DIGITAL_IN), in);
        htvm_hal_write(DIGITAL(DIGITAL_OUT), out);
        htvm_hal_write(DIGITAL(DIGITAL_WEIGHTS), w);
        const int32_t error = digital_finish();
        if (error != 0) {
            return error;
        }
        digital_start(DIANA_DIGITAL_OP_CONV);
    }
    return digital_finish();
}

/* Writes all shape registers except SHAPE0. */
static inline void dense_prepare(const diana_dense_t *t, const void *weights)
{
    htvm_hal_write(DIGITAL(DIGITAL_SHAPE4), (uint32_t)t->shift << 8 | (uint32_t)t->relu << 16);
    htvm_hal_write(DIGITAL(DIGITAL_IN), t->in);
    htvm_hal_write(DIGITAL(DIGITAL_OUT), t->out);
    htvm_hal_write(DIGITAL(DIGITAL_WEIGHTS), htvm_hal_addr(weights));
}

int32_t diana_digital_dense(const diana_dense_t *t, const void *weights)
{
    write_shape(t, 1);
    dense_prepare(t, weights);
    digital_start(DIANA_DIGITAL_OP_DENSE);
    return digital_finish();
}

static inline uint32_t block_of(uint32_t outputs)
{
    return outputs < DIANA_DIGITAL_DENSE_MAX_K ? outputs : DIANA_DIGITAL_DENSE_MAX_K;
}

void diana_digital_dense_prepare(const diana_dense_t *t, const void *weights)
{
    htvm_hal_write(DIGITAL(DIGITAL_SHAPE0), block_of(t->k) | (uint32_t)t->c << 16);
    dense_prepare(t, weights);
}

void diana_digital_dense_start(void) { digital_start(DIANA_DIGITAL_OP_DENSE); }

int32_t diana_digital_dense_finish(const diana_dense_t *t, const void *weights)
{
    const uint32_t columns =
        (t->c + DIANA_DIGITAL_COLUMNS - 1u) / DIANA_DIGITAL_COLUMNS * DIANA_DIGITAL_COLUMNS;
    const uint32_t block = columns * DIANA_DIGITAL_LANES + DIANA_DIGITAL_DENSE_BIAS_BYTES;
    uint32_t out = t->out;
    uint32_t w = htvm_hal_addr(weights);

    for (uint32_t done = DIANA_DIGITAL_DENSE_MAX_K; done < t->k;
         done += DIANA_DIGITAL_DENSE_MAX_K) {
        out += DIANA_DIGITAL_DENSE_MAX_K;
        w += block;
        htvm_hal_write(DIGITAL(DIGITAL_SHAPE0), block_of(t->k - done) | (uint32_t)t->c << 16);
        htvm_hal_write(DIGITAL(DIGITAL_OUT), out);
        htvm_hal_write(DIGITAL(DIGITAL_WEIGHTS), w);
        const int32_t error = digital_finish();
        if (error != 0) {
            return error;
        }
        digital_start(DIANA_DIGITAL_OP_DENSE);
    }
    return digital_finish();
}

static inline void add_prepare(const diana_add_t *t)
{
    htvm_hal_write(DIGITAL(DIGITAL_SHAPE0), t->elements);
    htvm_hal_write(DIGITAL(DIGITAL_SHAPE4), (uint32_t)t->shift << 8 | (uint32_t)t->relu << 16);
    htvm_hal_write(DIGITAL(DIGITAL_IN), t->a);
    htvm_hal_write(DIGITAL(DIGITAL_IN2), t->b);
    htvm_hal_write(DIGITAL(DIGITAL_OUT), t->out);
}

int32_t diana_digital_add(const diana_add_t *t)
{
    add_prepare(t);
    digital_start(DIANA_DIGITAL_OP_ADD);
    return digital_finish();
}

void diana_digital_add_prepare(const diana_add_t *t) { add_prepare(t); }

void diana_digital_add_start(void) { digital_start(DIANA_DIGITAL_OP_ADD); }

int32_t diana_digital_add_finish(void) { return digital_finish(); }
