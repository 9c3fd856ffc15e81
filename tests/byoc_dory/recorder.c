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

static int32_t conv(int64_t kind, const diana_conv_t *t, const void *weights)
{
    const int64_t fields[] = {
        t->k,  t->c,      t->iy,      t->ix,       t->oy,    t->ox,   t->fy, t->fx,
        t->stride, t->pad_top, t->pad_left, t->shift, t->relu, t->in, t->out,
    };
    return note(kind, weights, fields, 15);
}

int32_t diana_digital_conv2d(const diana_conv_t *t, const void *weights)
{
    return conv(3, t, weights);
}

int32_t diana_digital_depthwise(const diana_conv_t *t, const void *weights)
{
    return conv(4, t, weights);
}

int32_t diana_digital_dense(const diana_dense_t *t, const void *weights)
{
    const int64_t fields[] = {t->k, t->c, t->shift, t->relu, t->in, t->out};
    return note(5, weights, fields, 6);
}

int32_t diana_digital_add(const diana_add_t *t)
{
    const int64_t fields[] = {t->elements, t->shift, t->relu, t->a, t->b, t->out};
    return note(6, 0, fields, 6);
}
