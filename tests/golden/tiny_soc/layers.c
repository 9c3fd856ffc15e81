/* constant: net_conv_weights[1120], uint8, aligned to 16: biases and weights of conv */
/* conv: conv2d C=24 12x10 -> K=40 12x10, kernel 1x1, stride 1x1
 * on the 8x8 multiply-accumulate array; tile k=40, y=5 (3 in all, two of them in L1)
 * predicted: 2628 cycles */
int32_t net_conv(const int8_t *input, int8_t *out)
{
    enum { L1_INPUT = 4000, L1_OUT = 0, L1_WEIGHTS = 6400 }; /* byte offsets in L1 */
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    int32_t code;

    /* Several tiles are under way at a time, each at a different stage:
     *
     *   step     load        start       finish          store
     *   0        tile 0      tile 0      -               -               prologue
     *   1 to 2   tile step   tile step   tile step - 1   tile step - 1   steady state
     *   3        -           -           tile 2          tile 2          epilogue
     */
    for (uint32_t step = 0; step < 4u; ++step) {
        if (step < 3u) { /* load */
            const uint32_t tile = step;
            const uint32_t y = tile;
            ready = tiny_load(L1_INPUT + tile % 2u * 1200u, input + (y * 5u) * 240u, ((y + 1u < 3u ? 5u : 2u)) * 240);
            if (tile == 0u) { /* weights */
                ready = tiny_load(L1_WEIGHTS, net_conv_weights, 1120);
            }
        }
        if (step >= 1u) { /* finish */
            code = tiny_finish();
            if (code != 0) {
                return code;
            }
        }
        if (step < 3u) { /* start */
            const uint32_t tile = step;
            const uint32_t y = tile;
            tiny_wait(ready);
            const tiny_product_t product = {
                .input = L1_INPUT + tile % 2u * 1200u,
                .weights = L1_WEIGHTS,
                .out = L1_OUT + tile % 2u * 2000u,
                .rows = ((y + 1u < 3u ? 5u : 2u)) * 10,
                .k = 40,
                .c = 24,
                .pitch = 40,
                .shift = 8,
                .low = 0,
                .high = 127,
            };
            tiny_start(&product);
        }
        if (step >= 1u) { /* store */
            const uint32_t tile = step - 1u;
            const uint32_t y = tile;
            tiny_store(out + (y * 5u) * 400u, 40, L1_OUT + tile % 2u * 2000u, 1, (((y + 1u < 3u ? 5u : 2u)) * 10) * 40);
        }
    }
    tiny_wait_all();
    return 0;
}

/* epilogue: y 40x12x10, y.core to y */
int32_t net_y_from_core(const int8_t *in, int8_t *out)
{
    for (uint32_t c = 0; c < 40u; ++c) {
        for (uint32_t i = 0; i < 120u; ++i) {
            out[c * 120u + i] = in[i * 40u + c];
        }
    }
    return 0;
}

/* constant: net_dense_weights[2738], uint8, aligned to 16: biases and weights of dense */
/* dense: dense C=70 -> K=37
 * on the 8x8 multiply-accumulate array; tile k=37, y=1 (1 in all)
 * predicted: 673 cycles */
int32_t net_dense(const int8_t *input, int8_t *out)
{
    enum { L1_INPUT = 2752, L1_OUT = 2832, L1_WEIGHTS = 0 }; /* byte offsets in L1 */
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    int32_t code;

    tiny_load(L1_INPUT, input, 70);
    ready = tiny_load(L1_WEIGHTS, net_dense_weights, 2738);
    tiny_wait(ready);
    const tiny_product_t product = {
        .input = L1_INPUT,
        .weights = L1_WEIGHTS,
        .out = L1_OUT,
        .rows = 1,
        .k = 37,
        .c = 70,
        .pitch = 37,
        .shift = 8,
        .low = -128,
        .high = 127,
    };
    tiny_start(&product);
    code = tiny_finish();
    if (code != 0) {
        return code;
    }
    tiny_store(out, 37, L1_OUT, 1, 37);
    tiny_wait_all();
    return 0;
}
