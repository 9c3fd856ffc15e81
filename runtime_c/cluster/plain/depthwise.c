/* cluster_depthwise: blocks of sums as of products, of 4 pixels beside each other by 3 channels, or
 * of one pixel by 4 channels.  Here a product's columns are channels of the input, too. */
#include "cluster_convolve.h"

#define PIXEL3(x, n)                                              \
    {                                                             \
        const int32_t t0 = u0 * cluster_byte(x, 0, is_unsigned);   \
        const int32_t t1 = u1 * cluster_byte(x, 1, is_unsigned);   \
        const int32_t t2 = u2 * cluster_byte(x, 2, is_unsigned);   \
        x += pitch;                                               \
        s[n] += t0;                                               \
        s[(n) + 1] += t1;                                         \
        s[(n) + 2] += t2;                                         \
        CLUSTER_HOLD3(s[n], s[(n) + 1], s[(n) + 2]);               \
        CLUSTER_HOLD(x);                                           \
    }

/* Adds one row of taps. */
CLUSTER_INLINE void dots_4x3(const cluster_product_t *p, int32_t *s, const uint8_t *in,
                            const int8_t *w, bool is_unsigned)
{
    const uint32_t pitch = p->in_x, channels = p->weights_x;
    const uint8_t *x0 = in, *x1 = x0 + p->in_row, *x2 = x1 + p->in_row, *x3 = x2 + p->in_row;
    const int8_t *const end = w + p->taps_x * channels;
    while (w != end) {
        const int32_t u0 = w[0], u1 = w[1], u2 = w[2];
        w += channels;
        CLUSTER_HOLD(w);
        PIXEL3(x0, 0)
        PIXEL3(x1, 3)
        PIXEL3(x2, 6)
        PIXEL3(x3, 9)
    }
}

CLUSTER_INLINE void dots_1(const cluster_product_t *p, int32_t *s, const uint8_t *in, const int8_t *w,
                          uint32_t columns, bool is_unsigned)
{
    const uint32_t pitch = p->in_x, channels = p->weights_x;
    const int8_t *const end = w + p->taps_x * channels;
    while (w != end) {
        int32_t x[4], u[4];
        for (uint32_t j = 0; j < columns; j++) {
            x[j] = cluster_byte(in, j, is_unsigned);
            u[j] = w[j];
        }
        cluster_hold_all(x, columns);
        for (uint32_t j = 0; j < columns; j++) {
            x[j] *= u[j];
        }
        in += pitch;
        w += channels;
        CLUSTER_HOLD(in);
        CLUSTER_HOLD(w);
        for (uint32_t j = 0; j < columns; j++) {
            s[j] += x[j];
            CLUSTER_HOLD(s[j]);
        }
    }
}

CLUSTER_INLINE void block(const cluster_product_t *p, uint32_t row, uint32_t column, uint32_t rows,
                         uint32_t columns, bool is_unsigned)
{
    int32_t s[12], sums[12]; /* the sums in registers, and in memory */
    for (uint32_t j = 0; j < columns; j++) {
        const int32_t start = p->bias != NULL ? p->bias[column + j] : 0;
        for (uint32_t i = 0; i < rows; i++) {
            s[i * columns + j] = start;
        }
    }
    const uint8_t *in = p->in + row * p->in_row + column;
    const int8_t *weights = p->weights + column;
    for (uint32_t y = 0; y < p->taps_y; y++) {
        if (rows == 4) {
            dots_4x3(p, s, in, weights, is_unsigned);
        } else {
            dots_1(p, s, in, weights, columns, is_unsigned);
        }
        in += p->in_y;
        weights += p->weights_y;
    }
    for (uint32_t i = 0; i < rows * columns; i++) {
        sums[i] = s[i];
    }
    cluster_product_store(p, sums, row, column, rows, columns);
}

CLUSTER_INLINE void product(const cluster_product_t *p, bool is_unsigned)
{
    const uint32_t end = p->columns.end, whole = p->rows & ~3u;
    uint32_t column = p->columns.begin;
    for (; column + 3 <= end; column += 3) {
        for (uint32_t row = 0; row < whole; row += 4) {
            block(p, row, column, 4, 3, is_unsigned);
        }
    }
    for (; column < end; column++) {
        for (uint32_t row = 0; row < whole; row++) {
            block(p, row, column, 1, 1, is_unsigned);
        }
    }
    for (uint32_t row = whole; row < p->rows; row++) {
        for (column = p->columns.begin; column + 4 <= end; column += 4) {
            block(p, row, column, 1, 4, is_unsigned);
        }
        for (; column < end; column++) {
            block(p, row, column, 1, 1, is_unsigned);
        }
    }
}

static void run_s8(const cluster_product_t *p) { product(p, false); }

static void run_u8(const cluster_product_t *p) { product(p, true); }

void cluster_depthwise(const void *args, uint32_t core, uint32_t cores)
{
    const cluster_conv_t *const v = args;
    const cluster_product_t p = {
        .bias = v->bias,
        .requant = &v->requant,
        .flags = v->flags,
        .weights_y = v->fx * v->c,
        .weights_x = v->c,
    };
    const bool is_unsigned = (v->flags & CLUSTER_IN_UNSIGNED) != 0;
    cluster_convolve(v, p, v->c, core, cores, is_unsigned ? run_u8 : run_s8);
}
