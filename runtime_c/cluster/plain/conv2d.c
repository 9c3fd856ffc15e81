/* cluster_conv2d. */
#include "cluster_convolve.h"

/* If there are no gaps between pixels, the taps of a row are one run of bytes. */
CLUSTER_INLINE cluster_product_t joined(const cluster_product_t *p)
{
    cluster_product_t product = *p;
    if (p->in_x == p->length) {
        product.length *= p->taps_x;
        product.taps_x = 1;
    }
    return product;
}

static void run_s8(const cluster_product_t *p)
{
    const cluster_product_t product = joined(p);
    cluster_product_s8_rows(&product);
}

static void run_u8(const cluster_product_t *p)
{
    const cluster_product_t product = joined(p);
    cluster_product_u8_rows(&product);
}

void cluster_conv2d(const void *args, uint32_t core, uint32_t cores)
{
    const cluster_conv_t *const v = args;
    const cluster_product_t product = {
        .bias = v->bias,
        .requant = &v->requant,
        .flags = v->flags,
        .length = v->c,
        .weights_pitch = v->fy * v->fx * v->c,
        .weights_y = v->fx * v->c,
        .weights_x = v->c,
    };
    const bool is_unsigned = (v->flags & CLUSTER_IN_UNSIGNED) != 0;
    cluster_convolve(v, product, v->c, core, cores, is_unsigned ? run_u8 : run_s8);
}
