/* ==== published, all of L1 ==== */

/* conv: conv2d C=20 10x9 -> K=18 5x4, kernel 5x3, stride 2x2
 * tile k=18, c=20, y=5, x=4 (1 in all); L1: input 3200 B, output 2560 B
 * weight memory: 9728 B
 * predicted: 5263 cycles */
int32_t net_conv(const int8_t *in, int8_t *out)
{
    enum {
        L1_IN = 0, L1_OUT = 3200, /* byte offsets in L1 */
    };
    int32_t code;

    static const diana_block_t in_block = {
        .channels = 20,
        .rows = 10,
        .bytes = 16,
        .l2_channel_stride = 160,
        .l2_row_stride = 16,
        .l1_channel_stride = 160,
        .l1_row_stride = 16,
    };
    code = diana_dma_in(L1_IN, in, &in_block);
    if (code != 0) {
        return code;
    }
    static const diana_conv_t tile = {
        .k = 18,
        .c = 20,
        .iy = 10,
        .ix = 9,
        .oy = 5,
        .ox = 4,
        .fy = 5,
        .fx = 3,
        .stride = 2,
        .pad_top = 2,
        .pad_left = 1,
        .shift = 8,
        .relu = 1,
        .in = L1_IN,
        .out = L1_OUT,
    };
    code = diana_digital_conv2d(&tile, net_conv_weights);
    if (code != 0) {
        return code;
    }
    static const diana_block_t out_block = {
        .channels = 18,
        .rows = 5,
        .bytes = 16,
        .l2_channel_stride = 80,
        .l2_row_stride = 16,
        .l1_channel_stride = 80,
        .l1_row_stride = 16,
    };
    code = diana_dma_out(out, L1_OUT, &out_block);
    if (code != 0) {
        return code;
    }

    return 0;
}

/* ==== published, 3000 B of L1 ==== */

/* conv: conv2d C=20 10x9 -> K=18 5x4, kernel 5x3, stride 2x2
 * tile k=16, c=20, y=2, x=4 (6 in all); L1: input 2240 B, output 512 B
 * weight memory: 4864 B
 * predicted: 16206 cycles */
int32_t net_conv(const int8_t *in, int8_t *out)
{
    enum {
        L1_IN = 0, L1_OUT = 2240, /* byte offsets in L1 */
        IN_ROW = 16, IN_MAP = 160, /* bytes of a row and of a channel */
        OUT_ROW = 16, OUT_MAP = 80,
        WEIGHT_BYTES = 4864, /* weights and biases of a full channel tile */
    };
    /* rows of each tile: first and number of outputs, first and number of inputs,
     * zero rows above (negative: rows to skip) */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int8_t pad;
    } y_tiles[3] = {
        {0, 2, 0, 5, 2},
        {2, 2, 2, 7, 0},
        {4, 1, 6, 4, 0},
    };
    int32_t code;

    for (uint32_t k = 0; k < 2; ++k) { /* output channels */
        for (uint32_t y = 0; y < 3; ++y) { /* rows */
            const diana_block_t in_block = {
                .channels = 20,
                .rows = y_tiles[y].in_size,
                .bytes = 16,
                .l2_channel_stride = 160,
                .l2_row_stride = 16,
                .l1_channel_stride = y_tiles[y].in_size * 16,
                .l1_row_stride = 16,
            };
            code = diana_dma_in(L1_IN, in + y_tiles[y].in_start * IN_ROW, &in_block);
            if (code != 0) {
                return code;
            }
            const diana_conv_t tile = {
                .k = (k + 1 < 2 ? 16 : 2),
                .c = 20,
                .iy = y_tiles[y].in_size,
                .ix = 9,
                .oy = y_tiles[y].out_size,
                .ox = 4,
                .fy = 5,
                .fx = 3,
                .stride = 2,
                .pad_top = y_tiles[y].pad,
                .pad_left = 1,
                .shift = 8,
                .relu = 1,
                .in = L1_IN,
                .out = L1_OUT,
            };
            code = diana_digital_conv2d(&tile, net_conv_weights + k * WEIGHT_BYTES);
            if (code != 0) {
                return code;
            }
            const diana_block_t out_block = {
                .channels = (k + 1 < 2 ? 16 : 2),
                .rows = y_tiles[y].out_size,
                .bytes = 16,
                .l2_channel_stride = 80,
                .l2_row_stride = 16,
                .l1_channel_stride = y_tiles[y].out_size * 16,
                .l1_row_stride = 16,
            };
            code = diana_dma_out(out + (k * 16) * OUT_MAP + y_tiles[y].out_start * OUT_ROW, L1_OUT, &out_block);
            if (code != 0) {
                return code;
            }
        }
    }

    return 0;
}

/* ==== overlapped, all of L1 ==== */

/* conv: conv2d C=20 10x9 -> K=18 5x4, kernel 5x3, stride 2x2
 * tile k=18, c=20, y=5, x=4 (1 in all); L1: input 3200 B, output 2560 B
 * weight memory: 9728 B
 * predicted: 5263 cycles */
int32_t net_conv(const int8_t *in, int8_t *out)
{
    enum {
        L1_IN = 0, L1_OUT = 3200, /* byte offsets in L1 */
    };
    int32_t code;

    static const diana_block_t in_block = {
        .channels = 20,
        .rows = 10,
        .bytes = 16,
        .l2_channel_stride = 160,
        .l2_row_stride = 16,
        .l1_channel_stride = 160,
        .l1_row_stride = 16,
    };
    diana_dma_in_start(L1_IN, in, &in_block);
    static const diana_conv_t tile = {
        .k = 18,
        .c = 20,
        .iy = 10,
        .ix = 9,
        .oy = 5,
        .ox = 4,
        .fy = 5,
        .fx = 3,
        .stride = 2,
        .pad_top = 2,
        .pad_left = 1,
        .shift = 8,
        .relu = 1,
        .in = L1_IN,
        .out = L1_OUT,
    };
    diana_digital_conv2d_prepare(&tile, net_conv_weights);
    code = diana_dma_wait();
    if (code != 0) {
        return code;
    }
    diana_digital_conv2d_start();
    code = diana_digital_conv2d_finish();
    if (code != 0) {
        return code;
    }
    static const diana_block_t out_block = {
        .channels = 18,
        .rows = 5,
        .bytes = 16,
        .l2_channel_stride = 80,
        .l2_row_stride = 16,
        .l1_channel_stride = 80,
        .l1_row_stride = 16,
    };
    diana_dma_out_start(out, L1_OUT, &out_block);
    code = diana_dma_wait();
    if (code != 0) {
        return code;
    }

    return 0;
}

/* ==== overlapped, 3000 B of L1 ==== */

/* conv: conv2d C=20 10x9 -> K=18 5x4, kernel 5x3, stride 2x2
 * tile k=16, c=20, y=2, x=4 (6 in all); L1: input 2240 B, output 512 B
 * weight memory: 4864 B
 * predicted: 11751 cycles */
int32_t net_conv(const int8_t *in, int8_t *out)
{
    enum {
        L1_IN = 0, L1_OUT = 2240, /* byte offsets in L1 */
        IN_ROW = 16, IN_MAP = 160, /* bytes of a row and of a channel */
        OUT_ROW = 16, OUT_MAP = 80,
        WEIGHT_BYTES = 4864, /* weights and biases of a full channel tile */
    };
    /* rows of each tile: first and number of outputs, first and number of inputs,
     * zero rows above (negative: rows to skip) */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int8_t pad;
    } y_tiles[3] = {
        {0, 2, 0, 5, 2},
        {2, 2, 2, 7, 0},
        {4, 1, 6, 4, 0},
    };
    int32_t code;

    for (uint32_t y = 0; y < 3; ++y) { /* rows */
        const diana_block_t in_block = {
            .channels = 20,
            .rows = y_tiles[y].in_size,
            .bytes = 16,
            .l2_channel_stride = 160,
            .l2_row_stride = 16,
            .l1_channel_stride = y_tiles[y].in_size * 16,
            .l1_row_stride = 16,
        };
        diana_dma_in_start(L1_IN, in + y_tiles[y].in_start * IN_ROW, &in_block);
        for (uint32_t k = 0; k < 2; ++k) { /* output channels */
            const diana_conv_t tile = {
                .k = (k + 1 < 2 ? 16 : 2),
                .c = 20,
                .iy = y_tiles[y].in_size,
                .ix = 9,
                .oy = y_tiles[y].out_size,
                .ox = 4,
                .fy = 5,
                .fx = 3,
                .stride = 2,
                .pad_top = y_tiles[y].pad,
                .pad_left = 1,
                .shift = 8,
                .relu = 1,
                .in = L1_IN,
                .out = L1_OUT,
            };
            diana_digital_conv2d_prepare(&tile, net_conv_weights + k * WEIGHT_BYTES);
            code = diana_dma_wait();
            if (code != 0) {
                return code;
            }
            diana_digital_conv2d_start();
            code = diana_digital_conv2d_finish();
            if (code != 0) {
                return code;
            }
            const diana_block_t out_block = {
                .channels = (k + 1 < 2 ? 16 : 2),
                .rows = y_tiles[y].out_size,
                .bytes = 16,
                .l2_channel_stride = 80,
                .l2_row_stride = 16,
                .l1_channel_stride = y_tiles[y].out_size * 16,
                .l1_row_stride = 16,
            };
            diana_dma_out_start(out + (k * 16) * OUT_MAP + y_tiles[y].out_start * OUT_ROW, L1_OUT, &out_block);
            code = diana_dma_wait();
            if (code != 0) {
                return code;
            }
        }
    }

    return 0;
}
