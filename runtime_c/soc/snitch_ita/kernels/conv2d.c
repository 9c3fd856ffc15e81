/* snitch_conv2d: a product whose rows are the pixels of one row of the result. */
#include "snitch_product.h"
#include "snitch_window.h"

static void run(const snitch_product_t *product, uint32_t flags)
{
    if ((flags & SNITCH_IN_UNSIGNED) != 0) {
        snitch_product_u8_rows(product);
    } else {
        snitch_product_s8_rows(product);
    }
}

/* Pixels x to end - 1 of output row y. */
static void pixels(const snitch_conv_t *v, snitch_product_t *p, uint32_t y, uint32_t x, uint32_t end)
{
    const snitch_window_t rows = snitch_window(y, v->stride_y, v->pad_top, v->fy, v->iy);
    const bool dense = v->in_pitch == v->c; /* taps beside each other are one run of bytes */
    while (x < end) {
        const snitch_window_t first = snitch_window(x, v->stride_x, v->pad_left, v->fx, v->ix);
        p->in = (const uint8_t *)v->in + (rows.at * v->ix + first.at) * v->in_pitch;
        p->weights = v->weights + (rows.tap * v->fx + first.tap) * v->c;
        p->out = (uint8_t *)v->out + (y * v->ox + x) * v->out_pitch;
        p->taps_y = first.count != 0 ? rows.count : 0;
        p->taps_x = dense ? 1u : first.count;
        p->length = dense ? first.count * v->c : v->c;
        p->rows = snitch_run(v, x, end);
        run(p, v->flags);
        x += p->rows;
    }
}

void snitch_conv2d(const void *args, uint32_t core, uint32_t cores)
{
    const snitch_conv_t *const v = args;
    snitch_share_t all = {0, v->oy * v->ox}, columns = {0, v->k};
    if (snitch_by_columns(all.end, v->k, cores)) {
        columns = snitch_share(v->k, core, cores);
    } else {
        all = snitch_share(all.end, core, cores);
    }
    snitch_product_t product = {
        .bias = v->bias,
        .requant = &v->requant,
        .flags = v->flags,
        .in_row = v->stride_x * v->in_pitch,
        .in_y = v->ix * v->in_pitch,
        .in_x = v->in_pitch,
        .weights_pitch = v->fy * v->fx * v->c,
        .weights_y = v->fx * v->c,
        .weights_x = v->c,
        .out_row = v->out_pitch,
        .out_column = 1,
        .columns = columns,
    };
    uint32_t pixel = all.begin;
    while (pixel < all.end) {
        const uint32_t y = pixel / v->ox, x = pixel - y * v->ox;
        const uint32_t left = all.end - pixel, end = v->ox - x < left ? v->ox : x + left;
        pixels(v, &product, y, x, end);
        pixel += end - x;
    }
}
