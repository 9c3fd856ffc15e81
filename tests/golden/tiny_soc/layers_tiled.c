/* constant: net_conv_weights[1120], uint8, aligned to 16: biases and weights of conv */
/* conv: conv2d C=24 12x10 -> K=40 12x10, kernel 1x1, stride 1x1
 * on the 8x8 multiply-accumulate array; tile k=16, y=1; predicted: 35840 cycles */
int32_t net_conv(const int8_t *in, int8_t *out)
{
    enum { K = 40, C = 24, ROWS = 12, COLUMNS = 10 };
    enum { TILE_K = 16, TILE_ROWS = 1 };
    enum { L1_IN = 448, L1_OUT = 688, L1_WEIGHTS = 0 }; /* byte offsets */

    for (uint32_t k = 0; k < K; k += TILE_K) {
        const uint32_t channels = k + TILE_K < K ? TILE_K : K - k;
        tiny_load(L1_WEIGHTS, net_conv_weights + k * (C + 4u), channels * (C + 4u));
        for (uint32_t y = 0; y < ROWS; y += TILE_ROWS) {
            const uint32_t pixels = (y + TILE_ROWS < ROWS ? TILE_ROWS : ROWS - y) * COLUMNS;
            const tiny_product_t product = {
                .in = L1_IN,
                .weights = L1_WEIGHTS,
                .out = L1_OUT,
                .rows = pixels,
                .k = channels,
                .c = C,
                .shift = 8,
                .low = 0,
                .high = 127,
            };
            tiny_load(L1_IN, in + y * COLUMNS * C, pixels * C);
            const int32_t code = tiny_product(&product);
            if (code != 0) {
                return code;
            }
            tiny_store(out + y * COLUMNS * K + k, K, L1_OUT, pixels, channels);
        }
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
 * on the 8x8 multiply-accumulate array; tile k=8, y=1; predicted: 4372 cycles */
int32_t net_dense(const int8_t *in, int8_t *out)
{
    enum { K = 37, C = 70, ROWS = 1, COLUMNS = 1 };
    enum { TILE_K = 8, TILE_ROWS = 1 };
    enum { L1_IN = 592, L1_OUT = 672, L1_WEIGHTS = 0 }; /* byte offsets */

    for (uint32_t k = 0; k < K; k += TILE_K) {
        const uint32_t channels = k + TILE_K < K ? TILE_K : K - k;
        tiny_load(L1_WEIGHTS, net_dense_weights + k * (C + 4u), channels * (C + 4u));
        for (uint32_t y = 0; y < ROWS; y += TILE_ROWS) {
            const uint32_t pixels = (y + TILE_ROWS < ROWS ? TILE_ROWS : ROWS - y) * COLUMNS;
            const tiny_product_t product = {
                .in = L1_IN,
                .weights = L1_WEIGHTS,
                .out = L1_OUT,
                .rows = pixels,
                .k = channels,
                .c = C,
                .shift = 8,
                .low = -128,
                .high = 127,
            };
            tiny_load(L1_IN, in + y * COLUMNS * C, pixels * C);
            const int32_t code = tiny_product(&product);
            if (code != 0) {
                return code;
            }
            tiny_store(out + y * COLUMNS * K + k, K, L1_OUT, pixels, channels);
        }
    }
    return 0;
}
