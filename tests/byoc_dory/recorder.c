/* A driver that computes nothing and writes down every call: one record of RECORD words each. */
#include "diana_driver.h"

#define RECORD 20
#define CAPACITY 20000

int64_t records[CAPACITY][RECORD];
uint32_t record_count;
int32_t fail_at = -1; /* the call that shall fail */

static int32_t note(int64_t kind, const void *pointer, const int64_t *fields, uint32_t count)
{
    if (record_count >= CAPACITY) {
        return 1;
    }
    int64_t *record = records[record_count];
    record[0] = kind;
    record[1] = (int64_t)(intptr_t)pointer;
    for (uint32_t i = 0; i < count; ++i) {
        record[2 + i] = fields[i];
    }
    return (int32_t)record_count++ == fail_at ? 42 : 0;
}

static int32_t dma(int64_t kind, const void *l2, uint32_t l1, const diana_block_t *b)
{
    const int64_t fields[] = {
        l1,
        b->channels,
        b->rows,
        b->bytes,
        b->l2_channel_stride,
        b->l2_row_stride,
        b->l1_channel_stride,
        b->l1_row_stride,
    };
    return note(kind, l2, fields, 8);
}

int32_t diana_dma_in(uint32_t l1, const void *l2, const diana_block_t *block)
{
    return dma(1, l2, l1, block);
}

int32_t diana_dma_out(void *l2, uint32_t l1, const diana_block_t *block)
{
    return dma(2, l2, l1, block);
}

int32_t diana_dma_in_rows(uint32_t l1, const void *l2, const diana_block_t *block)
{
    return dma(7, l2, l1, block);
}

void diana_dma_in_start(uint32_t l1, const void *l2, const diana_block_t *block)
{
    (void)dma(11, l2, l1, block);
}

void diana_dma_out_start(void *l2, uint32_t l1, const diana_block_t *block)
{
    (void)dma(12, l2, l1, block);
}

int32_t diana_dma_wait(void) { return note(10, 0, 0, 0); }

static int32_t conv(int64_t kind, const diana_conv_t *t, const void *weights)
{
    const int64_t fields[] = {
        t->k,  t->c,      t->iy,      t->ix,       t->oy,    t->ox,   t->fy, t->fx,
        t->stride, t->pad_top, t->pad_left, t->shift, t->relu, t->in, t->out,
    };
    return note(kind, weights, fields, 15);
}

static int32_t dense(int64_t kind, const diana_dense_t *t, const void *weights)
{
    const int64_t fields[] = {t->k, t->c, t->shift, t->relu, t->in, t->out};
    return note(kind, weights, fields, 6);
}

static int32_t add(int64_t kind, const diana_add_t *t)
{
    const int64_t fields[] = {t->elements, t->shift, t->relu, t->a, t->b, t->out};
    return note(kind, 0, fields, 6);
}

/* The call that waits has the operation's kind; prepare, start and finish add 20, 30 and 40. */
#define WITH_WEIGHTS(name, type, function, kind) \
    int32_t name(const type *t, const void *w) { return function(kind, t, w); } \
    void name##_prepare(const type *t, const void *w) { (void)function(20 + kind, t, w); } \
    void name##_start(void) { (void)note(30 + kind, 0, 0, 0); }
#define FINISH_WITH(name, type, function, kind) \
    int32_t name##_finish(const type *t, const void *w) { return function(40 + kind, t, w); }

WITH_WEIGHTS(diana_digital_conv2d, diana_conv_t, conv, 3)
WITH_WEIGHTS(diana_digital_depthwise, diana_conv_t, conv, 4)
WITH_WEIGHTS(diana_digital_depthwise_blocks, diana_conv_t, conv, 8)
WITH_WEIGHTS(diana_digital_dense, diana_dense_t, dense, 5)
int32_t diana_digital_conv2d_finish(void) { return note(43, 0, 0, 0); }
FINISH_WITH(diana_digital_depthwise, diana_conv_t, conv, 4)
FINISH_WITH(diana_digital_depthwise_blocks, diana_conv_t, conv, 8)
FINISH_WITH(diana_digital_dense, diana_dense_t, dense, 5)

int32_t diana_digital_add(const diana_add_t *t) { return add(6, t); }
void diana_digital_add_prepare(const diana_add_t *t) { (void)add(26, t); }
void diana_digital_add_start(void) { (void)note(36, 0, 0, 0); }
int32_t diana_digital_add_finish(void) { return note(46, 0, 0, 0); }
