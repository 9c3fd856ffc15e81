/* constant: net_conv_weights[1120], uint8, aligned to 16: biases and weights of conv */
/* conv: conv2d C=24 12x10 -> K=40 12x10, kernel 1x1, stride 1x1
 * on the 8x8 multiply-accumulate array; tile k=8, y=2 (30 in all)
 * predicted: 9778 cycles */
int32_t net_conv(const int8_t *input, int8_t *out)
{
    enum { L1_INPUT = 0, L1_OUT = 704, L1_WEIGHTS = 480 }; /* byte offsets in L1 */
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    int32_t code;

    for (uint32_t step = 0; step < 30u; ++step) {
        const uint32_t tile = step;
        const uint32_t y = tile / 5u;
        const uint32_t k = tile % 5u;
        if (k == 0u) { /* input */
            tiny_load(L1_INPUT, input + (y * 2u) * 240u, 480);
        }
        ready = tiny_load(L1_WEIGHTS, net_conv_weights + (k * 8u) * 28u, 224);
        tiny_wait(ready);
        const tiny_product_t product = {
            .input = L1_INPUT,
            .weights = L1_WEIGHTS,
            .out = L1_OUT,
            .rows = 20,
            .k = 8,
            .c = 24,
            .pitch = 8,
            .shift = 8,
            .low = 0,
            .high = 127,
        };
        tiny_start(&product);
        code = tiny_finish();
        if (code != 0) {
            return code;
        }
        tiny_store(out + (y * 2u) * 400u + k * 8u, 40, L1_OUT, 20, 8);
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
 * on the 8x8 multiply-accumulate array; tile k=8, y=1 (5 in all)
 * predicted: 1397 cycles */
int32_t net_dense(const int8_t *input, int8_t *out)
{
    enum { L1_INPUT = 592, L1_OUT = 672, L1_WEIGHTS = 0 }; /* byte offsets in L1 */
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    int32_t code;

    for (uint32_t step = 0; step < 5u; ++step) {
        const uint32_t tile = step;
        const uint32_t k = tile;
        if (tile == 0u) { /* input */
            tiny_load(L1_INPUT, input, 70);
        }
        ready = tiny_load(L1_WEIGHTS, net_dense_weights + (k * 8u) * 74u, ((k + 1u < 5u ? 8u : 5u)) * 74);
        tiny_wait(ready);
        const tiny_product_t product = {
            .input = L1_INPUT,
            .weights = L1_WEIGHTS,
            .out = L1_OUT,
            .rows = 1,
            .k = (k + 1u < 5u ? 8u : 5u),
            .c = 70,
            .pitch = (k + 1u < 5u ? 8u : 5u),
            .shift = 8,
            .low = -128,
            .high = 127,
        };
        tiny_start(&product);
        code = tiny_finish();
        if (code != 0) {
            return code;
        }
        tiny_store(out + k * 8u, 37, L1_OUT, 1, (k + 1u < 5u ? 8u : 5u));
    }
    tiny_wait_all();
    return 0;
}
