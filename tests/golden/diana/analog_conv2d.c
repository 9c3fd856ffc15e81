/* ==== published, all of L1 ==== */

/* conv: conv2d C=20 10x9 -> K=21 10x9, kernel 3x3, stride 1x1
 * tile k=21, c=20, y=10, x=9 (1 in all); L1: input 3200 B, output 3360 B
 * weight memory: 1512 B
 * predicted: 4486 cycles */
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
    static const diana_analog_conv_t tile = {
        .k = 21,
        .c = 20,
        .iy = 10,
        .ix = 9,
        .oy = 10,
        .ox = 9,
        .fy = 3,
        .fx = 3,
        .stride = 1,
        .pad_top = 1,
        .pad_left = 1,
        .gain = 5,
        .shift = 5,
        .clip = DIANA_ANALOG_CLIP_RELU | DIANA_ANALOG_CLIP_SHORT,
        .in = L1_IN,
        .out = L1_OUT,
        .mode = 1,
    };
    code = diana_analog_conv2d(&tile, net_conv_weights);
    if (code != 0) {
        return code;
    }
    static const diana_block_t out_block = {
        .channels = 21,
        .rows = 10,
        .bytes = 16,
        .l2_channel_stride = 160,
        .l2_row_stride = 16,
        .l1_channel_stride = 160,
        .l1_row_stride = 16,
    };
    code = diana_dma_out(out, L1_OUT, &out_block);
    if (code != 0) {
        return code;
    }

    return 0;
}

/* ==== published, 3000 B of L1 ==== */

/* conv: conv2d C=20 10x9 -> K=21 10x9, kernel 3x3, stride 1x1
 * tile k=21, c=20, y=3, x=9 (4 in all); L1: input 1600 B, output 1008 B
 * weight memory: 1512 B
 * predicted: 17192 cycles */
int32_t net_conv(const int8_t *in, int8_t *out)
{
    enum {
        L1_IN = 0, L1_OUT = 1600, /* byte offsets in L1 */
        IN_ROW = 16, IN_MAP = 160, /* bytes of a row and of a channel */
        OUT_ROW = 16, OUT_MAP = 160,
        WEIGHT_BYTES = 9300, /* weights and biases of a full channel tile */
    };
    /* rows of each tile: first and number of outputs, first and number of inputs,
     * zero rows above (negative: rows to skip) */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int8_t pad;
    } y_tiles[4] = {
        {0, 3, 0, 4, 1},
        {3, 3, 2, 5, 0},
        {6, 3, 5, 5, 0},
        {9, 1, 8, 2, 0},
    };
    int32_t code;

    for (uint32_t y = 0; y < 4; ++y) { /* rows */
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
        const diana_analog_conv_t tile = {
            .k = 21,
            .c = 20,
            .iy = y_tiles[y].in_size,
            .ix = 9,
            .oy = y_tiles[y].out_size,
            .ox = 9,
            .fy = 3,
            .fx = 3,
            .stride = 1,
            .pad_top = y_tiles[y].pad,
            .pad_left = 1,
            .gain = 5,
            .shift = 5,
            .clip = DIANA_ANALOG_CLIP_RELU | DIANA_ANALOG_CLIP_SHORT,
            .in = L1_IN,
            .out = L1_OUT,
            .mode = 1,
        };
        code = diana_analog_conv2d(&tile, net_conv_weights);
        if (code != 0) {
            return code;
        }
        const diana_block_t out_block = {
            .channels = 21,
            .rows = y_tiles[y].out_size,
            .bytes = 16,
            .l2_channel_stride = 160,
            .l2_row_stride = 16,
            .l1_channel_stride = y_tiles[y].out_size * 16,
            .l1_row_stride = 16,
        };
        code = diana_dma_out(out + y_tiles[y].out_start * OUT_ROW, L1_OUT, &out_block);
        if (code != 0) {
            return code;
        }
    }

    return 0;
}

/* ==== overlapped, all of L1 ==== */

/* conv: conv2d C=20 10x9 -> K=21 10x9, kernel 3x3, stride 1x1
 * tile k=21, c=20, y=10, x=9 (1 in all); L1: input 3200 B, output 3360 B
 * weight memory: 1512 B
 * predicted: 4486 cycles */
int32_t net_conv(const int8_t *in, int8_t *out)
{
    enum {
        L1_IN = 3360, L1_OUT = 0, /* byte offsets in L1 */
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
    static const diana_analog_conv_t tile = {
        .k = 21,
        .c = 20,
        .iy = 10,
        .ix = 9,
        .oy = 10,
        .ox = 9,
        .fy = 3,
        .fx = 3,
        .stride = 1,
        .pad_top = 1,
        .pad_left = 1,
        .gain = 5,
        .shift = 5,
        .clip = DIANA_ANALOG_CLIP_RELU | DIANA_ANALOG_CLIP_SHORT,
        .in = L1_IN,
        .out = L1_OUT,
        .mode = 1,
    };
    diana_analog_conv2d_prepare(&tile, net_conv_weights);
    code = diana_dma_wait();
    if (code != 0) {
        return code;
    }
    diana_analog_conv2d_start();
    code = diana_analog_conv2d_finish();
    if (code != 0) {
        return code;
    }
    static const diana_block_t out_block = {
        .channels = 21,
        .rows = 10,
        .bytes = 16,
        .l2_channel_stride = 160,
        .l2_row_stride = 16,
        .l1_channel_stride = 160,
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

/* conv: conv2d C=20 10x9 -> K=21 10x9, kernel 3x3, stride 1x1
 * tile k=21, c=20, y=3, x=9 (4 in all); L1: input 1600 B, output 1008 B
 * weight memory: 1512 B
 * predicted: 14540 cycles */
int32_t net_conv(const int8_t *in, int8_t *out)
{
    enum {
        L1_IN = 0, L1_OUT = 1600, /* byte offsets in L1 */
        IN_ROW = 16, IN_MAP = 160, /* bytes of a row and of a channel */
        OUT_ROW = 16, OUT_MAP = 160,
        WEIGHT_BYTES = 9300, /* weights and biases of a full channel tile */
    };
    /* rows of each tile: first and number of outputs, first and number of inputs,
     * zero rows above (negative: rows to skip) */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int8_t pad;
    } y_tiles[4] = {
        {0, 3, 0, 4, 1},
        {3, 3, 2, 5, 0},
        {6, 3, 5, 5, 0},
        {9, 1, 8, 2, 0},
    };
    int32_t code;

    for (uint32_t y = 0; y < 4; ++y) { /* rows */
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
        const diana_analog_conv_t tile = {
            .k = 21,
            .c = 20,
            .iy = y_tiles[y].in_size,
            .ix = 9,
            .oy = y_tiles[y].out_size,
            .ox = 9,
            .fy = 3,
            .fx = 3,
            .stride = 1,
            .pad_top = y_tiles[y].pad,
            .pad_left = 1,
            .gain = 5,
            .shift = 5,
            .clip = DIANA_ANALOG_CLIP_RELU | DIANA_ANALOG_CLIP_SHORT,
            .in = L1_IN,
            .out = L1_OUT,
            .mode = 1,
        };
        diana_analog_conv2d_prepare(&tile, net_conv_weights);
        code = diana_dma_wait();
        if (code != 0) {
            return code;
        }
        diana_analog_conv2d_start();
        code = diana_analog_conv2d_finish();
        if (code != 0) {
            return code;
        }
        const diana_block_t out_block = {
            .channels = 21,
            .rows = y_tiles[y].out_size,
            .bytes = 16,
            .l2_channel_stride = 160,
            .l2_row_stride = 16,
            .l1_channel_stride = y_tiles[y].out_size * 16,
            .l1_row_stride = 16,
        };
        diana_dma_out_start(out + y_tiles[y].out_start * OUT_ROW, L1_OUT, &out_block);
        code = diana_dma_wait();
        if (code != 0) {
            return code;
        }
    }

    return 0;
}
