/* ==== published, all of L1 ==== */

/* conv: conv2d C=140 10x9 -> K=21 10x9, kernel 3x3, stride 1x1
 * tile k=21, c=140, y=10, x=9 (1 in all); L1: input 22400 B, output 10080 B
 * weight memory: 6048 B
 * predicted: 17729 cycles */
int32_t net_conv(const int8_t *in, int8_t *out)
{
    enum {
        L1_IN = 0, L1_OUT = 22400, /* byte offsets in L1 */
    };
    int32_t code;

    static const diana_block_t in_block = {
        .channels = 140,
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
        .c = 140,
        .iy = 10,
        .ix = 9,
        .oy = 10,
        .ox = 9,
        .fy = 3,
        .fx = 3,
        .stride = 1,
        .pad_top = 1,
        .pad_left = 1,
        .gain = 7,
        .shift = 6,
        .clip = DIANA_ANALOG_CLIP_RELU | DIANA_ANALOG_CLIP_SHORT,
        .in = L1_IN,
        .out = L1_OUT,
        .mode = 1,
        .c_pass = 128,
        .partial = L1_OUT + 3360,
        .pass_bytes = 36864,
    };
    code = diana_analog_passes(&tile, net_conv_weights);
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

/* ==== published, 9000 B of L1 ==== */

/* conv: conv2d C=140 10x9 -> K=21 10x9, kernel 3x3, stride 1x1
 * tile k=21, c=140, y=1, x=9 (10 in all); L1: input 6720 B, output 1008 B
 * weight memory: 6048 B
 * predicted: 190590 cycles */
int32_t net_conv(const int8_t *in, int8_t *out)
{
    enum {
        L1_IN = 0, L1_OUT = 6720, /* byte offsets in L1 */
        IN_ROW = 16, IN_MAP = 160, /* bytes of a row and of a channel */
        OUT_ROW = 16, OUT_MAP = 160,
        WEIGHT_BYTES = 46164, /* weights and biases of a full channel tile */
    };
    /* rows of each tile: first and number of outputs, first and number of inputs,
     * zero rows above (negative: rows to skip) */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int8_t pad;
    } y_tiles[10] = {
        {0, 1, 0, 2, 1},
        {1, 1, 0, 3, 0},
        {2, 1, 1, 3, 0},
        {3, 1, 2, 3, 0},
        {4, 1, 3, 3, 0},
        {5, 1, 4, 3, 0},
        {6, 1, 5, 3, 0},
        {7, 1, 6, 3, 0},
        {8, 1, 7, 3, 0},
        {9, 1, 8, 2, 0},
    };
    int32_t code;

    for (uint32_t y = 0; y < 10; ++y) { /* rows */
        const diana_block_t in_block = {
            .channels = 140,
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
            .c = 140,
            .iy = y_tiles[y].in_size,
            .ix = 9,
            .oy = 1,
            .ox = 9,
            .fy = 3,
            .fx = 3,
            .stride = 1,
            .pad_top = y_tiles[y].pad,
            .pad_left = 1,
            .gain = 7,
            .shift = 6,
            .clip = DIANA_ANALOG_CLIP_RELU | DIANA_ANALOG_CLIP_SHORT,
            .in = L1_IN,
            .out = L1_OUT,
            .mode = 1,
            .c_pass = 128,
            .partial = L1_OUT + 336,
            .pass_bytes = 36864,
        };
        code = diana_analog_passes(&tile, net_conv_weights);
        if (code != 0) {
            return code;
        }
        static const diana_block_t out_block = {
            .channels = 21,
            .rows = 1,
            .bytes = 16,
            .l2_channel_stride = 160,
            .l2_row_stride = 16,
            .l1_channel_stride = 16,
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

/* conv: conv2d C=140 10x9 -> K=21 10x9, kernel 3x3, stride 1x1
 * tile k=21, c=140, y=10, x=9 (1 in all); L1: input 22400 B, output 10080 B
 * weight memory: 6048 B
 * predicted: 17729 cycles */
int32_t net_conv(const int8_t *in, int8_t *out)
{
    enum {
        L1_IN = 0, L1_OUT = 22400, /* byte offsets in L1 */
    };
    int32_t code;

    static const diana_block_t in_block = {
        .channels = 140,
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
        .c = 140,
        .iy = 10,
        .ix = 9,
        .oy = 10,
        .ox = 9,
        .fy = 3,
        .fx = 3,
        .stride = 1,
        .pad_top = 1,
        .pad_left = 1,
        .gain = 7,
        .shift = 6,
        .clip = DIANA_ANALOG_CLIP_RELU | DIANA_ANALOG_CLIP_SHORT,
        .in = L1_IN,
        .out = L1_OUT,
        .mode = 1,
        .c_pass = 128,
        .partial = L1_OUT + 3360,
        .pass_bytes = 36864,
    };
    diana_analog_passes_prepare(&tile, net_conv_weights);
    code = diana_dma_wait();
    if (code != 0) {
        return code;
    }
    diana_analog_passes_start();
    code = diana_analog_passes_finish(&tile, net_conv_weights);
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

/* ==== overlapped, 9000 B of L1 ==== */

/* conv: conv2d C=140 10x9 -> K=21 10x9, kernel 3x3, stride 1x1
 * tile k=21, c=140, y=1, x=9 (10 in all); L1: input 6720 B, output 1008 B
 * weight memory: 6048 B
 * predicted: 163560 cycles */
int32_t net_conv(const int8_t *in, int8_t *out)
{
    enum {
        L1_IN = 0, L1_OUT = 6720, /* byte offsets in L1 */
        IN_ROW = 16, IN_MAP = 160, /* bytes of a row and of a channel */
        OUT_ROW = 16, OUT_MAP = 160,
        WEIGHT_BYTES = 46164, /* weights and biases of a full channel tile */
    };
    /* rows of each tile: first and number of outputs, first and number of inputs,
     * zero rows above (negative: rows to skip) */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int8_t pad;
    } y_tiles[10] = {
        {0, 1, 0, 2, 1},
        {1, 1, 0, 3, 0},
        {2, 1, 1, 3, 0},
        {3, 1, 2, 3, 0},
        {4, 1, 3, 3, 0},
        {5, 1, 4, 3, 0},
        {6, 1, 5, 3, 0},
        {7, 1, 6, 3, 0},
        {8, 1, 7, 3, 0},
        {9, 1, 8, 2, 0},
    };
    int32_t code;

    for (uint32_t y = 0; y < 10; ++y) { /* rows */
        const diana_block_t in_block = {
            .channels = 140,
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
            .c = 140,
            .iy = y_tiles[y].in_size,
            .ix = 9,
            .oy = 1,
            .ox = 9,
            .fy = 3,
            .fx = 3,
            .stride = 1,
            .pad_top = y_tiles[y].pad,
            .pad_left = 1,
            .gain = 7,
            .shift = 6,
            .clip = DIANA_ANALOG_CLIP_RELU | DIANA_ANALOG_CLIP_SHORT,
            .in = L1_IN,
            .out = L1_OUT,
            .mode = 1,
            .c_pass = 128,
            .partial = L1_OUT + 336,
            .pass_bytes = 36864,
        };
        diana_analog_passes_prepare(&tile, net_conv_weights);
        code = diana_dma_wait();
        if (code != 0) {
            return code;
        }
        diana_analog_passes_start();
        code = diana_analog_passes_finish(&tile, net_conv_weights);
        if (code != 0) {
            return code;
        }
        static const diana_block_t out_block = {
            .channels = 21,
            .rows = 1,
            .bytes = 16,
            .l2_channel_stride = 160,
            .l2_row_stride = 16,
            .l1_channel_stride = 16,
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
