/* constant: net_conv_weights[1120], uint8, aligned to 16: biases and weights of conv */
/* conv: conv2d C=24 12x10 -> K=40 12x10, kernel 1x1, stride 1x1
 * on the 8x8 multiply-accumulate array; tile k=16, y=1 (36 in all)
 * predicted: 36060 cycles */
int32_t net_conv(const int8_t *input, int8_t *out)
{
    enum { L1_INPUT = 448, L1_OUT = 688, L1_WEIGHTS = 0 }; /* byte offsets in L1 */
    int32_t code;

    for (uint32_t step = 0; step < 36u; ++step) {
        const uint32_t tile = step;
        const uint32_t k = tile / 12u;
        const uint32_t y = tile % 12u;
        tiny_load(L1_INPUT, input + y * 240u, 240);
        if (y == 0u) { /* weights */
            tiny_load(L1_WEIGHTS, net_conv_weights + (k * 16u) * 28u, ((k + 1u < 3u ? 16u : 8u)) * 28);
        }
        const tiny_product_t product = {
            .input = L1_INPUT,
            .weights = L1_WEIGHTS,
            .out = L1_OUT,
            .rows = 10,
            .k = (k + 1u < 3u ? 16u : 8u),
            .c = 24,
            .pitch = (k + 1u < 3u ? 16u : 8u),
            .shift = 8,
            .low = 0,
            .high = 127,
        };
        tiny_start(&product);
        code = tiny_finish();
        if (code != 0) {
            return code;
        }
        tiny_store(out + y * 400u + k * 16u, 40, L1_OUT, 10, (k + 1u < 3u ? 16u : 8u));
    }
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
 * predicted: 3789 cycles */
int32_t net_dense(const int8_t *input, int8_t *out)
{
    enum { L1_INPUT = 592, L1_OUT = 672, L1_WEIGHTS = 0 }; /* byte offsets in L1 */
    int32_t code;

    for (uint32_t step = 0; step < 5u; ++step) {
        const uint32_t tile = step;
        const uint32_t k = tile;
        if (tile == 0u) { /* input */
            tiny_load(L1_INPUT, input, 70);
        }
        tiny_load(L1_WEIGHTS, net_dense_weights + (k * 8u) * 74u, ((k + 1u < 5u ? 8u : 5u)) * 74);
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
    return 0;
}
