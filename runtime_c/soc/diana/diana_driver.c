/* DIANA: driver of the DMA and the digital core.
 *
 * Runs on the simulated host too, where its cycles are part of the published cost of a transfer
 * or trigger: keep it tight, and measure driver_cycles again after a change.
 */
#include "diana_driver.h"

#include <stdbool.h>
#include <stddef.h>

#include "htvm_hal.h"

#define DMA(reg) (DIANA_DMA_REGISTERS + DIANA_##reg)
#define DIGITAL(reg) (DIANA_DIGITAL_REGISTERS + DIANA_##reg)

/* For branches that cost when taken. */
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* The shape registers are images of the descriptors. */
_Static_assert(offsetof(diana_conv_t, c) == 2 && offsetof(diana_conv_t, iy) == 4, "SHAPE0..1");
_Static_assert(offsetof(diana_conv_t, oy) == 8 && offsetof(diana_conv_t, fy) == 12, "SHAPE2..3");
_Static_assert(offsetof(diana_conv_t, pad_top) == 15, "SHAPE3");
_Static_assert(offsetof(diana_conv_t, pad_left) == 16, "SHAPE4");
_Static_assert(offsetof(diana_conv_t, shift) == 17, "SHAPE4");
_Static_assert(offsetof(diana_conv_t, relu) == 18 && offsetof(diana_conv_t, in) == 20, "SHAPE4");

static inline int32_t finish(uint32_t status_register, uint32_t error_register)
{
    uint32_t status;
    do {
        status = htvm_hal_read(status_register);
    } while (status == DIANA_STATUS_BUSY);
    if (UNLIKELY(status != DIANA_STATUS_IDLE)) {
        return (int32_t)htvm_hal_read(error_register);
    }
    return 0;
}

static inline int32_t dma_finish(void)
{
    return finish(DMA(REG_STATUS), DMA(REG_ERROR));
}

static inline int32_t digital_finish(void)
{
    return finish(DIGITAL(REG_STATUS), DIGITAL(REG_ERROR));
}

static inline int32_t dma_command(uint32_t l1, uint32_t l2, uint32_t command)
{
    htvm_hal_write(DMA(DMA_L2), l2);
    htvm_hal_write(DMA(DMA_L1), l1);
    htvm_hal_write(DMA(DMA_COMMAND), command);
    return dma_finish();
}

/* `count` runs of `bytes` bytes at these strides; only the first may be the first of its call. */
static inline int32_t dma_runs(uint32_t l1, uint32_t l2, uint32_t count, uint32_t l1_stride,
                               uint32_t l2_stride, uint32_t command)
{
    do {
        const int32_t error = dma_command(l1, l2, command);
        if (error != 0) {
            return error;
        }
        command = (command & ~DIANA_DMA_POSITION_MASK) | DIANA_DMA_NEXT;
        l1 += l1_stride;
        l2 += l2_stride;
    } while (--count != 0);
    return 0;
}

/* Rows, or channels, of a block do not follow each other on both sides. */
static inline bool rows_apart(const diana_block_t *b)
{
    return b->rows != 1 && UNLIKELY(b->l2_row_stride != b->bytes || b->l1_row_stride != b->bytes);
}

static inline bool channels_apart(const diana_block_t *b, uint32_t map)
{
    return b->channels != 1 && UNLIKELY(b->l2_channel_stride != map || b->l1_channel_stride != map);
}

/* Row by row, one command each. */
static int32_t dma_rows(uint32_t l1, uint32_t l2, const diana_block_t *b, uint32_t direction)
{
    uint32_t command = b->bytes | direction | DIANA_DMA_FIRST;
    for (uint32_t left = b->channels; left != 0; left--) {
        const int32_t error =
            dma_runs(l1, l2, b->rows, b->l1_row_stride, b->l2_row_stride, command);
        if (error != 0) {
            return error;
        }
        command = b->bytes | direction | DIANA_DMA_NEXT;
        l1 += b->l1_channel_stride;
        l2 += b->l2_channel_stride;
    }
    return 0;
}

static inline bool is_empty(const diana_block_t *b)
{
    return b->rows == 0 || b->bytes == 0 || b->channels == 0;
}

/* A block that cannot be moved as one, row by row or channel by channel. */
static __attribute__((noinline)) int32_t dma_scattered(uint32_t l1, uint32_t l2,
                                                       const diana_block_t *b, uint32_t direction)
{
    const uint32_t map = b->rows * b->bytes;
    if (is_empty(b)) {
        return (int32_t)DIANA_ERROR_PARAMETER;
    }
    if (!rows_apart(b)) {
        return dma_runs(l1, l2, b->channels, b->l1_channel_stride, b->l2_channel_stride,
                        map | direction | DIANA_DMA_FIRST);
    }
    return dma_rows(l1, l2, b, direction);
}

/* Inlined, and apart from dma_scattered, so that the common case saves no registers. */
static inline int32_t dma_block(uint32_t l1, uint32_t l2, const diana_block_t *b,
                                uint32_t direction)
{
    const uint32_t map = b->rows * b->bytes;
    const uint32_t total = b->channels * map;
    if (UNLIKELY((total & ~DIANA_DMA_BYTES_MASK) != 0)) {
        return (int32_t)DIANA_ERROR_PARAMETER; /* more than a command can say, and than L1 has */
    }
    if (rows_apart(b) || channels_apart(b, map)) {
        return dma_scattered(l1, l2, b, direction);
    }
    return dma_command(l1, l2, total | direction | DIANA_DMA_SINGLE);
}

int32_t diana_dma_in(uint32_t l1, const void *l2, const diana_block_t *block)
{
    return dma_block(l1, htvm_hal_addr(l2), block, 0u);
}

int32_t diana_dma_out(void *l2, uint32_t l1, const diana_block_t *block)
{
    return dma_block(l1, htvm_hal_addr(l2), block, DIANA_DMA_TO_L2);
}

int32_t diana_dma_in_rows(uint32_t l1, const void *l2, const diana_block_t *block)
{
    if (is_empty(block)) {
        return (int32_t)DIANA_ERROR_PARAMETER;
    }
    return dma_rows(l1, htvm_hal_addr(l2), block, 0u);
}

static inline void dma_queue(uint32_t l1, uint32_t l2, uint32_t command)
{
    while (UNLIKELY(htvm_hal_read(DMA(DMA_ROOM)) == 0)) {
    }
    htvm_hal_write(DMA(DMA_L2), l2);
    htvm_hal_write(DMA(DMA_L1), l1);
    htvm_hal_write(DMA(DMA_COMMAND), command);
}

/* `count` runs of `bytes` bytes at these strides; returns what further commands begin with. */
static inline uint32_t dma_queue_runs(uint32_t l1, uint32_t l2, uint32_t count, uint32_t l1_stride,
                                      uint32_t l2_stride, uint32_t command)
{
    do {
        dma_queue(l1, l2, command);
        command = (command & ~DIANA_DMA_POSITION_MASK) | DIANA_DMA_NEXT;
        l1 += l1_stride;
        l2 += l2_stride;
    } while (--count != 0);
    return command;
}

static __attribute__((noinline)) void dma_queue_scattered(uint32_t l1, uint32_t l2,
                                                          const diana_block_t *b,
                                                          uint32_t direction)
{
    /* Read once: the compiler must read memory anew after every access to a register. */
    const uint32_t channels = b->channels;
    const uint32_t rows = b->rows;
    const uint32_t l1_row = b->l1_row_stride;
    const uint32_t l2_row = b->l2_row_stride;
    const uint32_t l1_map = b->l1_channel_stride;
    const uint32_t l2_map = b->l2_channel_stride;
    uint32_t command = b->bytes | direction | DIANA_DMA_FIRST;

    if (!rows_apart(b)) {
        dma_queue_runs(l1, l2, channels, l1_map, l2_map, rows * b->bytes | direction | DIANA_DMA_FIRST);
        return;
    }
    for (uint32_t left = channels; left != 0; left--) {
        command = dma_queue_runs(l1, l2, rows, l1_row, l2_row, command);
        l1 += l1_map;
        l2 += l2_map;
    }
}

static inline void dma_start(uint32_t l1, uint32_t l2, const diana_block_t *b, uint32_t direction)
{
    const uint32_t map = b->rows * b->bytes;
    const uint32_t total = b->channels * map;
    if (UNLIKELY(total == 0 || (total & ~DIANA_DMA_BYTES_MASK) != 0)) {
        dma_queue(l1, l2, direction); /* no bytes: the device refuses, and the wait shows it */
    } else if (rows_apart(b) || channels_apart(b, map)) {
        dma_queue_scattered(l1, l2, b, direction);
    } else {
        dma_queue(l1, l2, total | direction | DIANA_DMA_SINGLE);
    }
}

void diana_dma_in_start(uint32_t l1, const void *l2, const diana_block_t *block)
{
    dma_start(l1, htvm_hal_addr(l2), block, 0u);
}

void diana_dma_out_start(void *l2, uint32_t l1, const diana_block_t *block)
{
    dma_start(l1, htvm_hal_addr(l2), block, DIANA_DMA_TO_L2);
}

int32_t diana_dma_wait(void) { return dma_finish(); }

/* Copies the first `words` words of a descriptor into the shape registers. */
static inline void write_shape(const void *descriptor, uint32_t words)
{
    /* One load per word: needs the promise, and the builtin, as freestanding memcpy is a call. */
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

/* Keeps the compiler from computing on `value` before the device has been started: afterwards it
 * costs nothing, as the host would only wait. */
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
    /* k = 16, c = 1; without a channel the trigger is none, and the device refuses it */
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

/* All but SHAPE0. */
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
