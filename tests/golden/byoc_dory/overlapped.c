/* first: conv2d C=3 18x18 -> K=20 18x18, kernel 4x3, stride 1x1
 * tile k=20, c=3, y=18, x=18 (1 in all); L1: input 1728 B, output 18432 B
 * weight memory: 1568 B
 * predicted: 7367 cycles */
int32_t net_0_whole(const int8_t *in, int8_t *out)
{
    enum {
        L1_IN = 32, L1_OUT = 1792, /* byte offsets in L1 */
    };
    int32_t code;

    static const diana_block_t in_block = {
        .channels = 3,
        .rows = 18,
        .bytes = 32,
        .l2_channel_stride = 576,
        .l2_row_stride = 32,
        .l1_channel_stride = 576,
        .l1_row_stride = 32,
    };
    diana_dma_in_start(L1_IN, in, &in_block);
    static const diana_conv_t tile = {
        .k = 20,
        .c = 3,
        .iy = 18,
        .ix = 18,
        .oy = 18,
        .ox = 18,
        .fy = 5,
        .fx = 3,
        .stride = 1,
        .pad_top = 1,
        .pad_left = 1,
        .shift = 8,
        .relu = 1,
        .in = L1_IN,
        .out = L1_OUT,
    };
    diana_digital_conv2d_prepare(&tile, net_0_whole_weights);
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
        .channels = 20,
        .rows = 18,
        .bytes = 32,
        .l2_channel_stride = 576,
        .l2_row_stride = 32,
        .l1_channel_stride = 576,
        .l1_row_stride = 32,
    };
    diana_dma_out_start(out, L1_OUT, &out_block);
    code = diana_dma_wait();
    if (code != 0) {
        return code;
    }

    return 0;
}

/* first: conv2d C=3 18x18 -> K=20 18x18, kernel 4x3, stride 1x1
 * tile k=16, c=3, y=3, x=18 (12 in all); L1: input 672 B, output 1536 B
 * weight memory: 784 B
 * predicted: 17040 cycles */
int32_t net_0_1(const int8_t *in, int8_t *out)
{
    enum {
        L1_IN = 32, L1_OUT = 736, /* byte offsets in L1 */
        IN_ROW = 32, IN_MAP = 576, /* bytes of a row and of a channel */
        OUT_ROW = 32, OUT_MAP = 576,
        WEIGHT_BYTES = 784, /* weights and biases of a full channel tile */
    };
    /* rows of each tile: first and number of outputs, first and number of inputs,
     * zero rows above (negative: rows to skip) */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int8_t pad;
    } y_tiles[6] = {
        {0, 3, 0, 6, 1},
        {3, 3, 2, 7, 0},
        {6, 3, 5, 7, 0},
        {9, 3, 8, 7, 0},
        {12, 3, 11, 7, 0},
        {15, 3, 14, 4, 0},
    };
    int32_t code;

    for (uint32_t y = 0; y < 6; ++y) { /* rows */
        const diana_block_t in_block = {
            .channels = 3,
            .rows = y_tiles[y].in_size,
            .bytes = 32,
            .l2_channel_stride = 576,
            .l2_row_stride = 32,
            .l1_channel_stride = y_tiles[y].in_size * 32,
            .l1_row_stride = 32,
        };
        diana_dma_in_start(L1_IN, in + y_tiles[y].in_start * IN_ROW, &in_block);
        for (uint32_t k = 0; k < 2; ++k) { /* output channels */
            const diana_conv_t tile = {
                .k = (k + 1 < 2 ? 16 : 4),
                .c = 3,
                .iy = y_tiles[y].in_size,
                .ix = 18,
                .oy = 3,
                .ox = 18,
                .fy = 5,
                .fx = 3,
                .stride = 1,
                .pad_top = y_tiles[y].pad,
                .pad_left = 1,
                .shift = 8,
                .relu = 1,
                .in = L1_IN,
                .out = L1_OUT,
            };
            diana_digital_conv2d_prepare(&tile, net_0_1_weights + k * WEIGHT_BYTES);
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
                .channels = (k + 1 < 2 ? 16 : 4),
                .rows = 3,
                .bytes = 32,
                .l2_channel_stride = 576,
                .l2_row_stride = 32,
                .l1_channel_stride = 96,
                .l1_row_stride = 32,
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

/* first: conv2d C=3 18x18 -> K=20 18x18, kernel 4x3, stride 1x1
 * tile k=16, c=3, y=3, x=18 (12 in all); L1: 2 x input 672 B, output 1536 B
 * weight memory: 784 B
 * predicted: 12591 cycles */
int32_t net_0_2(const int8_t *in, int8_t *out)
{
    enum {
        L1_IN = 32, L1_OUT = 1408, /* byte offsets in L1 */
        IN_TILE = 672, OUT_TILE = 1536, /* bytes of a buffer; the second follows the first */
        IN_ROW = 32, IN_MAP = 576, /* bytes of a row and of a channel */
        OUT_ROW = 32, OUT_MAP = 576,
        WEIGHT_BYTES = 784, /* weights and biases of a full channel tile */
    };
    /* rows of each tile: first and number of outputs, first and number of inputs,
     * zero rows above (negative: rows to skip) */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int8_t pad;
    } y_tiles[6] = {
        {0, 3, 0, 6, 1},
        {3, 3, 2, 7, 0},
        {6, 3, 5, 7, 0},
        {9, 3, 8, 7, 0},
        {12, 3, 11, 7, 0},
        {15, 3, 14, 4, 0},
    };
    int32_t code;
    /* While the core computes a tile, the DMA stores the one before and loads the next. */
    int8_t *to = out; /* where to store the result of the tile before */
    diana_block_t out_block = {0};
    uint32_t tiles = 0; /* number of tiles so far; even ones use the first output buffer */
    uint32_t loads = 0; /* number of inputs loaded so far; even ones use the first input buffer */

    for (uint32_t y = 0; y < 6; ++y) { /* rows */
        const diana_block_t in_block = {
            .channels = 3,
            .rows = y_tiles[y].in_size,
            .bytes = 32,
            .l2_channel_stride = 576,
            .l2_row_stride = 32,
            .l1_channel_stride = y_tiles[y].in_size * 32,
            .l1_row_stride = 32,
        };
        const uint32_t in_buffer = loads++ % 2 * IN_TILE;
        diana_dma_in_start(L1_IN + in_buffer, in + y_tiles[y].in_start * IN_ROW, &in_block);
        for (uint32_t k = 0; k < 2; ++k) { /* output channels */
            const diana_conv_t tile = {
                .k = (k + 1 < 2 ? 16 : 4),
                .c = 3,
                .iy = y_tiles[y].in_size,
                .ix = 18,
                .oy = 3,
                .ox = 18,
                .fy = 5,
                .fx = 3,
                .stride = 1,
                .pad_top = y_tiles[y].pad,
                .pad_left = 1,
                .shift = 8,
                .relu = 1,
                .in = L1_IN + in_buffer,
                .out = L1_OUT + tiles % 2 * OUT_TILE,
            };
            diana_digital_conv2d_prepare(&tile, net_0_2_weights + k * WEIGHT_BYTES);
            if (tiles != 0) {
                code = diana_digital_conv2d_finish();
                if (code != 0) {
                    return code;
                }
            }
            code = diana_dma_wait();
            if (code != 0) {
                return code;
            }
            diana_digital_conv2d_start();
            if (tiles != 0) {
                diana_dma_out_start(to, L1_OUT + (tiles - 1) % 2 * OUT_TILE, &out_block);
            }
            to = out + (k * 16) * OUT_MAP + y_tiles[y].out_start * OUT_ROW;
            out_block = (diana_block_t){
                .channels = (k + 1 < 2 ? 16 : 4),
                .rows = 3,
                .bytes = 32,
                .l2_channel_stride = 576,
                .l2_row_stride = 32,
                .l1_channel_stride = 96,
                .l1_row_stride = 32,
            };
            ++tiles;
        }
    }

    code = diana_digital_conv2d_finish();
    if (code != 0) {
        return code;
    }
    diana_dma_out_start(to, L1_OUT + (tiles - 1) % 2 * OUT_TILE, &out_block);
    code = diana_dma_wait();
    if (code != 0) {
        return code;
    }
    return 0;
}

/* dw/down: depthwise C=20 18x18 -> K=20 9x9, kernel 3x3, stride 2x2
 * tile k=20, c=1, y=9, x=9 (1 in all); L1: input 11520 B, output 5040 B
 * weight memory: 2368 B
 * predicted: 4691 cycles */
int32_t net_1_whole(const int8_t *in, int8_t *out)
{
    enum {
        L1_IN = 32, L1_OUT = 11584, /* byte offsets in L1 */
    };
    int32_t code;

    static const diana_block_t in_block = {
        .channels = 20,
        .rows = 18,
        .bytes = 32,
        .l2_channel_stride = 576,
        .l2_row_stride = 32,
        .l1_channel_stride = 576,
        .l1_row_stride = 32,
    };
    diana_dma_in_start(L1_IN, in, &in_block);
    static const diana_conv_t tile = {
        .k = 20,
        .c = 16,
        .iy = 18,
        .ix = 18,
        .oy = 9,
        .ox = 9,
        .fy = 3,
        .fx = 3,
        .stride = 2,
        .pad_top = 0,
        .pad_left = 0,
        .shift = 8,
        .relu = 0,
        .in = L1_IN,
        .out = L1_OUT,
    };
    diana_digital_depthwise_blocks_prepare(&tile, net_1_whole_weights);
    code = diana_dma_wait();
    if (code != 0) {
        return code;
    }
    diana_digital_depthwise_blocks_start();
    code = diana_digital_depthwise_blocks_finish(&tile, net_1_whole_weights);
    if (code != 0) {
        return code;
    }
    static const diana_block_t out_block = {
        .channels = 20,
        .rows = 9,
        .bytes = 16,
        .l2_channel_stride = 144,
        .l2_row_stride = 16,
        .l1_channel_stride = 144,
        .l1_row_stride = 16,
    };
    diana_dma_out_start(out, L1_OUT, &out_block);
    code = diana_dma_wait();
    if (code != 0) {
        return code;
    }

    return 0;
}

/* dw/down: depthwise C=20 18x18 -> K=20 9x9, kernel 3x3, stride 2x2
 * tile k=6, c=1, y=3, x=9 (12 in all); L1: input 1344 B, output 1008 B
 * weight memory: 2368 B
 * predicted: 14352 cycles */
int32_t net_1_1(const int8_t *in, int8_t *out)
{
    enum {
        L1_IN = 32, L1_OUT = 1408, /* byte offsets in L1 */
        IN_ROW = 32, IN_MAP = 576, /* bytes of a row and of a channel */
        OUT_ROW = 16, OUT_MAP = 144,
        WEIGHT_BYTES = 928, /* weights and biases of a full channel tile */
    };
    /* rows of each tile: first and number of outputs, first and number of inputs,
     * zero rows above (negative: rows to skip) */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int8_t pad;
    } y_tiles[3] = {
        {0, 3, 0, 7, 0},
        {3, 3, 6, 7, 0},
        {6, 3, 12, 6, 0},
    };
    int32_t code;

    for (uint32_t y = 0; y < 3; ++y) { /* rows */
        for (uint32_t k = 0; k < 4; ++k) { /* output channels */
            const diana_block_t in_block = {
                .channels = (k + 1 < 4 ? 6 : 2),
                .rows = y_tiles[y].in_size,
                .bytes = 32,
                .l2_channel_stride = 576,
                .l2_row_stride = 32,
                .l1_channel_stride = y_tiles[y].in_size * 32,
                .l1_row_stride = 32,
            };
            diana_dma_in_start(L1_IN, in + (k * 6) * IN_MAP + y_tiles[y].in_start * IN_ROW, &in_block);
            const diana_conv_t tile = {
                .k = (k + 1 < 4 ? 6 : 2),
                .c = 16,
                .iy = y_tiles[y].in_size,
                .ix = 18,
                .oy = 3,
                .ox = 9,
                .fy = 3,
                .fx = 3,
                .stride = 2,
                .pad_top = 0,
                .pad_left = 0,
                .shift = 8,
                .relu = 0,
                .in = L1_IN,
                .out = L1_OUT,
            };
            diana_digital_depthwise_blocks_prepare(&tile, net_1_1_weights + k * WEIGHT_BYTES);
            code = diana_dma_wait();
            if (code != 0) {
                return code;
            }
            diana_digital_depthwise_blocks_start();
            code = diana_digital_depthwise_blocks_finish(&tile, net_1_1_weights + k * WEIGHT_BYTES);
            if (code != 0) {
                return code;
            }
            const diana_block_t out_block = {
                .channels = (k + 1 < 4 ? 6 : 2),
                .rows = 3,
                .bytes = 16,
                .l2_channel_stride = 144,
                .l2_row_stride = 16,
                .l1_channel_stride = 48,
                .l1_row_stride = 16,
            };
            diana_dma_out_start(out + (k * 6) * OUT_MAP + y_tiles[y].out_start * OUT_ROW, L1_OUT, &out_block);
            code = diana_dma_wait();
            if (code != 0) {
                return code;
            }
        }
    }

    return 0;
}

/* dw/down: depthwise C=20 18x18 -> K=20 9x9, kernel 3x3, stride 2x2
 * tile k=6, c=1, y=3, x=9 (12 in all); L1: 2 x input 1344 B, output 1008 B
 * weight memory: 2368 B
 * predicted: 9802 cycles */
int32_t net_1_2(const int8_t *in, int8_t *out)
{
    enum {
        L1_IN = 32, L1_OUT = 2752, /* byte offsets in L1 */
        IN_TILE = 1344, OUT_TILE = 1008, /* bytes of a buffer; the second follows the first */
        IN_ROW = 32, IN_MAP = 576, /* bytes of a row and of a channel */
        OUT_ROW = 16, OUT_MAP = 144,
        WEIGHT_BYTES = 928, /* weights and biases of a full channel tile */
    };
    /* rows of each tile: first and number of outputs, first and number of inputs,
     * zero rows above (negative: rows to skip) */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int8_t pad;
    } y_tiles[3] = {
        {0, 3, 0, 7, 0},
        {3, 3, 6, 7, 0},
        {6, 3, 12, 6, 0},
    };
    int32_t code;
    /* While the core computes a tile, the DMA stores the one before and loads the next. */
    diana_conv_t tile = {0}; /* the tile that the core is computing */
    const uint8_t *packed = net_1_2_weights; /* the weights of this tile */
    int8_t *to = out; /* where to store the result of the tile before */
    diana_block_t out_block = {0};
    uint32_t tiles = 0; /* number of tiles so far; even ones use the first output buffer */
    uint32_t loads = 0; /* number of inputs loaded so far; even ones use the first input buffer */

    for (uint32_t y = 0; y < 3; ++y) { /* rows */
        for (uint32_t k = 0; k < 4; ++k) { /* output channels */
            const diana_block_t in_block = {
                .channels = (k + 1 < 4 ? 6 : 2),
                .rows = y_tiles[y].in_size,
                .bytes = 32,
                .l2_channel_stride = 576,
                .l2_row_stride = 32,
                .l1_channel_stride = y_tiles[y].in_size * 32,
                .l1_row_stride = 32,
            };
            const uint32_t in_buffer = loads++ % 2 * IN_TILE;
            diana_dma_in_start(L1_IN + in_buffer, in + (k * 6) * IN_MAP + y_tiles[y].in_start * IN_ROW, &in_block);
            if (tiles != 0) {
                code = diana_digital_depthwise_blocks_finish(&tile, packed);
                if (code != 0) {
                    return code;
                }
            }
            tile = (diana_conv_t){
                .k = (k + 1 < 4 ? 6 : 2),
                .c = 16,
                .iy = y_tiles[y].in_size,
                .ix = 18,
                .oy = 3,
                .ox = 9,
                .fy = 3,
                .fx = 3,
                .stride = 2,
                .pad_top = 0,
                .pad_left = 0,
                .shift = 8,
                .relu = 0,
                .in = L1_IN + in_buffer,
                .out = L1_OUT + tiles % 2 * OUT_TILE,
            };
            packed = net_1_2_weights + k * WEIGHT_BYTES;
            diana_digital_depthwise_blocks_prepare(&tile, packed);
            code = diana_dma_wait();
            if (code != 0) {
                return code;
            }
            diana_digital_depthwise_blocks_start();
            if (tiles != 0) {
                diana_dma_out_start(to, L1_OUT + (tiles - 1) % 2 * OUT_TILE, &out_block);
            }
            to = out + (k * 6) * OUT_MAP + y_tiles[y].out_start * OUT_ROW;
            out_block = (diana_block_t){
                .channels = (k + 1 < 4 ? 6 : 2),
                .rows = 3,
                .bytes = 16,
                .l2_channel_stride = 144,
                .l2_row_stride = 16,
                .l1_channel_stride = 48,
                .l1_row_stride = 16,
            };
            ++tiles;
        }
    }

    code = diana_digital_depthwise_blocks_finish(&tile, packed);
    if (code != 0) {
        return code;
    }
    diana_dma_out_start(to, L1_OUT + (tiles - 1) % 2 * OUT_TILE, &out_block);
    code = diana_dma_wait();
    if (code != 0) {
        return code;
    }
    return 0;
}

/* pw: conv2d C=20 9x9 -> K=20 9x9, kernel 1x1, stride 1x1
 * tile k=20, c=20, y=9, x=9 (1 in all); L1: input 2880 B, output 4608 B
 * weight memory: 768 B
 * predicted: 2181 cycles */
int32_t net_2_whole(const int8_t *in, int8_t *out)
{
    enum {
        L1_IN = 32, L1_OUT = 2944, /* byte offsets in L1 */
    };
    int32_t code;

    static const diana_block_t in_block = {
        .channels = 20,
        .rows = 9,
        .bytes = 16,
        .l2_channel_stride = 144,
        .l2_row_stride = 16,
        .l1_channel_stride = 144,
        .l1_row_stride = 16,
    };
    diana_dma_in_start(L1_IN, in, &in_block);
    static const diana_conv_t tile = {
        .k = 20,
        .c = 20,
        .iy = 9,
        .ix = 9,
        .oy = 9,
        .ox = 9,
        .fy = 1,
        .fx = 1,
        .stride = 1,
        .pad_top = 0,
        .pad_left = 0,
        .shift = 8,
        .relu = 0,
        .in = L1_IN,
        .out = L1_OUT,
    };
    diana_digital_conv2d_prepare(&tile, net_2_whole_weights);
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
        .channels = 20,
        .rows = 9,
        .bytes = 16,
        .l2_channel_stride = 144,
        .l2_row_stride = 16,
        .l1_channel_stride = 144,
        .l1_row_stride = 16,
    };
    diana_dma_out_start(out, L1_OUT, &out_block);
    code = diana_dma_wait();
    if (code != 0) {
        return code;
    }

    return 0;
}

/* pw: conv2d C=20 9x9 -> K=20 9x9, kernel 1x1, stride 1x1
 * tile k=20, c=20, y=3, x=9 (3 in all); L1: input 960 B, output 1536 B
 * weight memory: 768 B
 * predicted: 5949 cycles */
int32_t net_2_1(const int8_t *in, int8_t *out)
{
    enum {
        L1_IN = 32, L1_OUT = 1024, /* byte offsets in L1 */
        IN_ROW = 16, IN_MAP = 144, /* bytes of a row and of a channel */
        OUT_ROW = 16, OUT_MAP = 144,
        WEIGHT_BYTES = 768, /* weights and biases of a full channel tile */
    };
    /* rows of each tile: first and number of outputs, first and number of inputs,
     * zero rows above (negative: rows to skip) */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int8_t pad;
    } y_tiles[3] = {
        {0, 3, 0, 3, 0},
        {3, 3, 3, 3, 0},
        {6, 3, 6, 3, 0},
    };
    int32_t code;

    for (uint32_t y = 0; y < 3; ++y) { /* rows */
        static const diana_block_t in_block = {
            .channels = 20,
            .rows = 3,
            .bytes = 16,
            .l2_channel_stride = 144,
            .l2_row_stride = 16,
            .l1_channel_stride = 48,
            .l1_row_stride = 16,
        };
        diana_dma_in_start(L1_IN, in + y_tiles[y].in_start * IN_ROW, &in_block);
        static const diana_conv_t tile = {
            .k = 20,
            .c = 20,
            .iy = 3,
            .ix = 9,
            .oy = 3,
            .ox = 9,
            .fy = 1,
            .fx = 1,
            .stride = 1,
            .pad_top = 0,
            .pad_left = 0,
            .shift = 8,
            .relu = 0,
            .in = L1_IN,
            .out = L1_OUT,
        };
        diana_digital_conv2d_prepare(&tile, net_2_1_weights);
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
            .channels = 20,
            .rows = 3,
            .bytes = 16,
            .l2_channel_stride = 144,
            .l2_row_stride = 16,
            .l1_channel_stride = 48,
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

/* pw: conv2d C=20 9x9 -> K=20 9x9, kernel 1x1, stride 1x1
 * tile k=20, c=20, y=3, x=9 (3 in all); L1: 2 x input 960 B, output 1536 B
 * weight memory: 768 B
 * predicted: 3966 cycles */
int32_t net_2_2(const int8_t *in, int8_t *out)
{
    enum {
        L1_IN = 32, L1_OUT = 1984, /* byte offsets in L1 */
        IN_TILE = 960, OUT_TILE = 1536, /* bytes of a buffer; the second follows the first */
        IN_ROW = 16, IN_MAP = 144, /* bytes of a row and of a channel */
        OUT_ROW = 16, OUT_MAP = 144,
        WEIGHT_BYTES = 768, /* weights and biases of a full channel tile */
    };
    /* rows of each tile: first and number of outputs, first and number of inputs,
     * zero rows above (negative: rows to skip) */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int8_t pad;
    } y_tiles[3] = {
        {0, 3, 0, 3, 0},
        {3, 3, 3, 3, 0},
        {6, 3, 6, 3, 0},
    };
    int32_t code;
    /* While the core computes a tile, the DMA stores the one before and loads the next. */
    int8_t *to = out; /* where to store the result of the tile before */
    static const diana_block_t out_block = {
        .channels = 20,
        .rows = 3,
        .bytes = 16,
        .l2_channel_stride = 144,
        .l2_row_stride = 16,
        .l1_channel_stride = 48,
        .l1_row_stride = 16,
    };
    uint32_t tiles = 0; /* number of tiles so far; even ones use the first output buffer */
    uint32_t loads = 0; /* number of inputs loaded so far; even ones use the first input buffer */

    for (uint32_t y = 0; y < 3; ++y) { /* rows */
        static const diana_block_t in_block = {
            .channels = 20,
            .rows = 3,
            .bytes = 16,
            .l2_channel_stride = 144,
            .l2_row_stride = 16,
            .l1_channel_stride = 48,
            .l1_row_stride = 16,
        };
        const uint32_t in_buffer = loads++ % 2 * IN_TILE;
        diana_dma_in_start(L1_IN + in_buffer, in + y_tiles[y].in_start * IN_ROW, &in_block);
        const diana_conv_t tile = {
            .k = 20,
            .c = 20,
            .iy = 3,
            .ix = 9,
            .oy = 3,
            .ox = 9,
            .fy = 1,
            .fx = 1,
            .stride = 1,
            .pad_top = 0,
            .pad_left = 0,
            .shift = 8,
            .relu = 0,
            .in = L1_IN + in_buffer,
            .out = L1_OUT + tiles % 2 * OUT_TILE,
        };
        diana_digital_conv2d_prepare(&tile, net_2_2_weights);
        if (tiles != 0) {
            code = diana_digital_conv2d_finish();
            if (code != 0) {
                return code;
            }
        }
        code = diana_dma_wait();
        if (code != 0) {
            return code;
        }
        diana_digital_conv2d_start();
        if (tiles != 0) {
            diana_dma_out_start(to, L1_OUT + (tiles - 1) % 2 * OUT_TILE, &out_block);
        }
        to = out + y_tiles[y].out_start * OUT_ROW;
        ++tiles;
    }

    code = diana_digital_conv2d_finish();
    if (code != 0) {
        return code;
    }
    diana_dma_out_start(to, L1_OUT + (tiles - 1) % 2 * OUT_TILE, &out_block);
    code = diana_dma_wait();
    if (code != 0) {
        return code;
    }
    return 0;
}

/* dw:down: add 20x9x9
 * tile k=20, c=1, y=9, x=9 (1 in all); L1: input 5760 B, output 2880 B
 * predicted: 1355 cycles */
int32_t net_3_whole(const int8_t *in0, const int8_t *in1, int8_t *out)
{
    enum {
        L1_A = 32, L1_B = 2944, L1_OUT = 5856, /* byte offsets in L1 */
    };
    int32_t code;

    static const diana_block_t in_block = {
        .channels = 20,
        .rows = 9,
        .bytes = 16,
        .l2_channel_stride = 144,
        .l2_row_stride = 16,
        .l1_channel_stride = 144,
        .l1_row_stride = 16,
    };
    diana_dma_in_start(L1_A, in0, &in_block);
    diana_dma_in_start(L1_B, in1, &in_block);
    static const diana_add_t tile = {
        .elements = 2880,
        .shift = 1,
        .relu = 0,
        .a = L1_A,
        .b = L1_B,
        .out = L1_OUT,
    };
    diana_digital_add_prepare(&tile);
    code = diana_dma_wait();
    if (code != 0) {
        return code;
    }
    diana_digital_add_start();
    code = diana_digital_add_finish();
    if (code != 0) {
        return code;
    }
    static const diana_block_t out_block = {
        .channels = 20,
        .rows = 9,
        .bytes = 16,
        .l2_channel_stride = 144,
        .l2_row_stride = 16,
        .l1_channel_stride = 144,
        .l1_row_stride = 16,
    };
    diana_dma_out_start(out, L1_OUT, &out_block);
    code = diana_dma_wait();
    if (code != 0) {
        return code;
    }

    return 0;
}

/* dw:down: add 20x9x9
 * tile k=6, c=1, y=9, x=9 (4 in all); L1: input 1728 B, output 864 B
 * predicted: 3260 cycles */
int32_t net_3_1(const int8_t *in0, const int8_t *in1, int8_t *out)
{
    enum {
        L1_A = 32, L1_B = 928, L1_OUT = 1824, /* byte offsets in L1 */
        IN_ROW = 16, IN_MAP = 144, /* bytes of a row and of a channel */
        OUT_ROW = 16, OUT_MAP = 144,
    };
    int32_t code;

    for (uint32_t k = 0; k < 4; ++k) { /* output channels */
        const diana_block_t in_block = {
            .channels = (k + 1 < 4 ? 6 : 2),
            .rows = 9,
            .bytes = 16,
            .l2_channel_stride = 144,
            .l2_row_stride = 16,
            .l1_channel_stride = 144,
            .l1_row_stride = 16,
        };
        diana_dma_in_start(L1_A, in0 + (k * 6) * IN_MAP, &in_block);
        diana_dma_in_start(L1_B, in1 + (k * 6) * IN_MAP, &in_block);
        const diana_add_t tile = {
            .elements = (((k + 1 < 4 ? 6 : 2)) * 9) * 16,
            .shift = 1,
            .relu = 0,
            .a = L1_A,
            .b = L1_B,
            .out = L1_OUT,
        };
        diana_digital_add_prepare(&tile);
        code = diana_dma_wait();
        if (code != 0) {
            return code;
        }
        diana_digital_add_start();
        code = diana_digital_add_finish();
        if (code != 0) {
            return code;
        }
        const diana_block_t out_block = {
            .channels = (k + 1 < 4 ? 6 : 2),
            .rows = 9,
            .bytes = 16,
            .l2_channel_stride = 144,
            .l2_row_stride = 16,
            .l1_channel_stride = 144,
            .l1_row_stride = 16,
        };
        diana_dma_out_start(out + (k * 6) * OUT_MAP, L1_OUT, &out_block);
        code = diana_dma_wait();
        if (code != 0) {
            return code;
        }
    }

    return 0;
}

/* dw:down: add 20x9x9
 * tile k=6, c=1, y=9, x=9 (4 in all); L1: 2 x input 1728 B, output 864 B
 * predicted: 2396 cycles */
int32_t net_3_2(const int8_t *in0, const int8_t *in1, int8_t *out)
{
    enum {
        L1_A = 32, L1_B = 1792, L1_OUT = 3552, /* byte offsets in L1 */
        IN_TILE = 864, OUT_TILE = 864, /* bytes of a buffer; the second follows the first */
        IN_ROW = 16, IN_MAP = 144, /* bytes of a row and of a channel */
        OUT_ROW = 16, OUT_MAP = 144,
    };
    int32_t code;
    /* While the core computes a tile, the DMA stores the one before and loads the next. */
    int8_t *to = out; /* where to store the result of the tile before */
    diana_block_t out_block = {0};
    uint32_t tiles = 0; /* number of tiles so far; even ones use the first output buffer */
    uint32_t loads = 0; /* number of inputs loaded so far; even ones use the first input buffer */

    for (uint32_t k = 0; k < 4; ++k) { /* output channels */
        const diana_block_t in_block = {
            .channels = (k + 1 < 4 ? 6 : 2),
            .rows = 9,
            .bytes = 16,
            .l2_channel_stride = 144,
            .l2_row_stride = 16,
            .l1_channel_stride = 144,
            .l1_row_stride = 16,
        };
        const uint32_t in_buffer = loads++ % 2 * IN_TILE;
        diana_dma_in_start(L1_A + in_buffer, in0 + (k * 6) * IN_MAP, &in_block);
        diana_dma_in_start(L1_B + in_buffer, in1 + (k * 6) * IN_MAP, &in_block);
        const diana_add_t tile = {
            .elements = (((k + 1 < 4 ? 6 : 2)) * 9) * 16,
            .shift = 1,
            .relu = 0,
            .a = L1_A + in_buffer,
            .b = L1_B + in_buffer,
            .out = L1_OUT + tiles % 2 * OUT_TILE,
        };
        diana_digital_add_prepare(&tile);
        if (tiles != 0) {
            code = diana_digital_add_finish();
            if (code != 0) {
                return code;
            }
        }
        code = diana_dma_wait();
        if (code != 0) {
            return code;
        }
        diana_digital_add_start();
        if (tiles != 0) {
            diana_dma_out_start(to, L1_OUT + (tiles - 1) % 2 * OUT_TILE, &out_block);
        }
        to = out + (k * 6) * OUT_MAP;
        out_block = (diana_block_t){
            .channels = (k + 1 < 4 ? 6 : 2),
            .rows = 9,
            .bytes = 16,
            .l2_channel_stride = 144,
            .l2_row_stride = 16,
            .l1_channel_stride = 144,
            .l1_row_stride = 16,
        };
        ++tiles;
    }

    code = diana_digital_add_finish();
    if (code != 0) {
        return code;
    }
    diana_dma_out_start(to, L1_OUT + (tiles - 1) % 2 * OUT_TILE, &out_block);
    code = diana_dma_wait();
    if (code != 0) {
        return code;
    }
    return 0;
}

/* twice: add 20x9x9
 * tile k=20, c=1, y=9, x=9 (1 in all); L1: input 5760 B, output 2880 B
 * predicted: 1355 cycles */
int32_t net_4_whole(const int8_t *in0, const int8_t *in1, int8_t *out)
{
    enum {
        L1_A = 32, L1_B = 2944, L1_OUT = 5856, /* byte offsets in L1 */
    };
    int32_t code;

    static const diana_block_t in_block = {
        .channels = 20,
        .rows = 9,
        .bytes = 16,
        .l2_channel_stride = 144,
        .l2_row_stride = 16,
        .l1_channel_stride = 144,
        .l1_row_stride = 16,
    };
    diana_dma_in_start(L1_A, in0, &in_block);
    diana_dma_in_start(L1_B, in1, &in_block);
    static const diana_add_t tile = {
        .elements = 2880,
        .shift = 0,
        .relu = 1,
        .a = L1_A,
        .b = L1_B,
        .out = L1_OUT,
    };
    diana_digital_add_prepare(&tile);
    code = diana_dma_wait();
    if (code != 0) {
        return code;
    }
    diana_digital_add_start();
    code = diana_digital_add_finish();
    if (code != 0) {
        return code;
    }
    static const diana_block_t out_block = {
        .channels = 20,
        .rows = 9,
        .bytes = 16,
        .l2_channel_stride = 144,
        .l2_row_stride = 16,
        .l1_channel_stride = 144,
        .l1_row_stride = 16,
    };
    diana_dma_out_start(out, L1_OUT, &out_block);
    code = diana_dma_wait();
    if (code != 0) {
        return code;
    }

    return 0;
}

/* twice: add 20x9x9
 * tile k=6, c=1, y=9, x=9 (4 in all); L1: input 1728 B, output 864 B
 * predicted: 3260 cycles */
int32_t net_4_1(const int8_t *in0, const int8_t *in1, int8_t *out)
{
    enum {
        L1_A = 32, L1_B = 928, L1_OUT = 1824, /* byte offsets in L1 */
        IN_ROW = 16, IN_MAP = 144, /* bytes of a row and of a channel */
        OUT_ROW = 16, OUT_MAP = 144,
    };
    int32_t code;

    for (uint32_t k = 0; k < 4; ++k) { /* output channels */
        const diana_block_t in_block = {
            .channels = (k + 1 < 4 ? 6 : 2),
            .rows = 9,
            .bytes = 16,
            .l2_channel_stride = 144,
            .l2_row_stride = 16,
            .l1_channel_stride = 144,
            .l1_row_stride = 16,
        };
        diana_dma_in_start(L1_A, in0 + (k * 6) * IN_MAP, &in_block);
        diana_dma_in_start(L1_B, in1 + (k * 6) * IN_MAP, &in_block);
        const diana_add_t tile = {
            .elements = (((k + 1 < 4 ? 6 : 2)) * 9) * 16,
            .shift = 0,
            .relu = 1,
            .a = L1_A,
            .b = L1_B,
            .out = L1_OUT,
        };
        diana_digital_add_prepare(&tile);
        code = diana_dma_wait();
        if (code != 0) {
            return code;
        }
        diana_digital_add_start();
        code = diana_digital_add_finish();
        if (code != 0) {
            return code;
        }
        const diana_block_t out_block = {
            .channels = (k + 1 < 4 ? 6 : 2),
            .rows = 9,
            .bytes = 16,
            .l2_channel_stride = 144,
            .l2_row_stride = 16,
            .l1_channel_stride = 144,
            .l1_row_stride = 16,
        };
        diana_dma_out_start(out + (k * 6) * OUT_MAP, L1_OUT, &out_block);
        code = diana_dma_wait();
        if (code != 0) {
            return code;
        }
    }

    return 0;
}

/* twice: add 20x9x9
 * tile k=6, c=1, y=9, x=9 (4 in all); L1: 2 x input 1728 B, output 864 B
 * predicted: 2396 cycles */
int32_t net_4_2(const int8_t *in0, const int8_t *in1, int8_t *out)
{
    enum {
        L1_A = 32, L1_B = 1792, L1_OUT = 3552, /* byte offsets in L1 */
        IN_TILE = 864, OUT_TILE = 864, /* bytes of a buffer; the second follows the first */
        IN_ROW = 16, IN_MAP = 144, /* bytes of a row and of a channel */
        OUT_ROW = 16, OUT_MAP = 144,
    };
    int32_t code;
    /* While the core computes a tile, the DMA stores the one before and loads the next. */
    int8_t *to = out; /* where to store the result of the tile before */
    diana_block_t out_block = {0};
    uint32_t tiles = 0; /* number of tiles so far; even ones use the first output buffer */
    uint32_t loads = 0; /* number of inputs loaded so far; even ones use the first input buffer */

    for (uint32_t k = 0; k < 4; ++k) { /* output channels */
        const diana_block_t in_block = {
            .channels = (k + 1 < 4 ? 6 : 2),
            .rows = 9,
            .bytes = 16,
            .l2_channel_stride = 144,
            .l2_row_stride = 16,
            .l1_channel_stride = 144,
            .l1_row_stride = 16,
        };
        const uint32_t in_buffer = loads++ % 2 * IN_TILE;
        diana_dma_in_start(L1_A + in_buffer, in0 + (k * 6) * IN_MAP, &in_block);
        diana_dma_in_start(L1_B + in_buffer, in1 + (k * 6) * IN_MAP, &in_block);
        const diana_add_t tile = {
            .elements = (((k + 1 < 4 ? 6 : 2)) * 9) * 16,
            .shift = 0,
            .relu = 1,
            .a = L1_A + in_buffer,
            .b = L1_B + in_buffer,
            .out = L1_OUT + tiles % 2 * OUT_TILE,
        };
        diana_digital_add_prepare(&tile);
        if (tiles != 0) {
            code = diana_digital_add_finish();
            if (code != 0) {
                return code;
            }
        }
        code = diana_dma_wait();
        if (code != 0) {
            return code;
        }
        diana_digital_add_start();
        if (tiles != 0) {
            diana_dma_out_start(to, L1_OUT + (tiles - 1) % 2 * OUT_TILE, &out_block);
        }
        to = out + (k * 6) * OUT_MAP;
        out_block = (diana_block_t){
            .channels = (k + 1 < 4 ? 6 : 2),
            .rows = 9,
            .bytes = 16,
            .l2_channel_stride = 144,
            .l2_row_stride = 16,
            .l1_channel_stride = 144,
            .l1_row_stride = 16,
        };
        ++tiles;
    }

    code = diana_digital_add_finish();
    if (code != 0) {
        return code;
    }
    diana_dma_out_start(to, L1_OUT + (tiles - 1) % 2 * OUT_TILE, &out_block);
    code = diana_dma_wait();
    if (code != 0) {
        return code;
    }
    return 0;
}

/* fc: dense C=70 -> K=37
 * tile k=37, c=70, y=1, x=1 (1 in all); L1: input 80 B, output 48 B
 * weight memory: 1536 B
 * predicted: 1838 cycles */
int32_t net_5_whole(const int8_t *in, int8_t *out)
{
    enum {
        L1_IN = 32, L1_OUT = 144, /* byte offsets in L1 */
    };
    int32_t code;

    static const diana_block_t in_block = {
        .channels = 1,
        .rows = 1,
        .bytes = 80,
    };
    diana_dma_in_start(L1_IN, in, &in_block);
    static const diana_dense_t tile = {
        .k = 37,
        .c = 70,
        .shift = 9,
        .relu = 0,
        .in = L1_IN,
        .out = L1_OUT,
    };
    diana_digital_dense_prepare(&tile, net_5_whole_weights);
    code = diana_dma_wait();
    if (code != 0) {
        return code;
    }
    diana_digital_dense_start();
    code = diana_digital_dense_finish(&tile, net_5_whole_weights);
    if (code != 0) {
        return code;
    }
    static const diana_block_t out_block = {
        .channels = 1,
        .rows = 1,
        .bytes = 48,
    };
    diana_dma_out_start(out, L1_OUT, &out_block);
    code = diana_dma_wait();
    if (code != 0) {
        return code;
    }

    return 0;
}

/* fc: dense C=70 -> K=37
 * tile k=37, c=70, y=1, x=1 (1 in all); L1: input 80 B, output 48 B
 * weight memory: 1536 B
 * predicted: 1838 cycles */
int32_t net_5_1(const int8_t *in, int8_t *out)
{
    enum {
        L1_IN = 32, L1_OUT = 144, /* byte offsets in L1 */
    };
    int32_t code;

    static const diana_block_t in_block = {
        .channels = 1,
        .rows = 1,
        .bytes = 80,
    };
    diana_dma_in_start(L1_IN, in, &in_block);
    static const diana_dense_t tile = {
        .k = 37,
        .c = 70,
        .shift = 9,
        .relu = 0,
        .in = L1_IN,
        .out = L1_OUT,
    };
    diana_digital_dense_prepare(&tile, net_5_1_weights);
    code = diana_dma_wait();
    if (code != 0) {
        return code;
    }
    diana_digital_dense_start();
    code = diana_digital_dense_finish(&tile, net_5_1_weights);
    if (code != 0) {
        return code;
    }
    static const diana_block_t out_block = {
        .channels = 1,
        .rows = 1,
        .bytes = 48,
    };
    diana_dma_out_start(out, L1_OUT, &out_block);
    code = diana_dma_wait();
    if (code != 0) {
        return code;
    }

    return 0;
}

/* fc: dense C=70 -> K=37
 * tile k=37, c=70, y=1, x=1 (1 in all); L1: input 80 B, output 48 B
 * weight memory: 1536 B
 * predicted: 1838 cycles */
int32_t net_5_2(const int8_t *in, int8_t *out)
{
    enum {
        L1_IN = 32, L1_OUT = 224, /* byte offsets in L1 */
    };
    int32_t code;

    static const diana_block_t in_block = {
        .channels = 1,
        .rows = 1,
        .bytes = 80,
    };
    diana_dma_in_start(L1_IN, in, &in_block);
    static const diana_dense_t tile = {
        .k = 37,
        .c = 70,
        .shift = 9,
        .relu = 0,
        .in = L1_IN,
        .out = L1_OUT,
    };
    diana_digital_dense_prepare(&tile, net_5_2_weights);
    code = diana_dma_wait();
    if (code != 0) {
        return code;
    }
    diana_digital_dense_start();
    code = diana_digital_dense_finish(&tile, net_5_2_weights);
    if (code != 0) {
        return code;
    }
    static const diana_block_t out_block = {
        .channels = 1,
        .rows = 1,
        .bytes = 48,
    };
    diana_dma_out_start(out, L1_OUT, &out_block);
    code = diana_dma_wait();
    if (code != 0) {
        return code;
    }

    return 0;
}

/* fc2: dense C=37 -> K=5
 * tile k=5, c=37, y=1, x=1 (1 in all); L1: input 48 B, output 16 B
 * weight memory: 1024 B
 * predicted: 658 cycles */
int32_t net_6_whole(const int8_t *in, int8_t *out)
{
    enum {
        L1_IN = 32, L1_OUT = 112, /* byte offsets in L1 */
    };
    int32_t code;

    static const diana_block_t in_block = {
        .channels = 1,
        .rows = 1,
        .bytes = 48,
    };
    diana_dma_in_start(L1_IN, in, &in_block);
    static const diana_dense_t tile = {
        .k = 5,
        .c = 37,
        .shift = 8,
        .relu = 0,
        .in = L1_IN,
        .out = L1_OUT,
    };
    diana_digital_dense_prepare(&tile, net_6_whole_weights);
    code = diana_dma_wait();
    if (code != 0) {
        return code;
    }
    diana_digital_dense_start();
    code = diana_digital_dense_finish(&tile, net_6_whole_weights);
    if (code != 0) {
        return code;
    }
    static const diana_block_t out_block = {
        .channels = 1,
        .rows = 1,
        .bytes = 16,
    };
    diana_dma_out_start(out, L1_OUT, &out_block);
    code = diana_dma_wait();
    if (code != 0) {
        return code;
    }

    return 0;
}

/* fc2: dense C=37 -> K=5
 * tile k=5, c=37, y=1, x=1 (1 in all); L1: input 48 B, output 16 B
 * weight memory: 1024 B
 * predicted: 658 cycles */
int32_t net_6_1(const int8_t *in, int8_t *out)
{
    enum {
        L1_IN = 32, L1_OUT = 112, /* byte offsets in L1 */
    };
    int32_t code;

    static const diana_block_t in_block = {
        .channels = 1,
        .rows = 1,
        .bytes = 48,
    };
    diana_dma_in_start(L1_IN, in, &in_block);
    static const diana_dense_t tile = {
        .k = 5,
        .c = 37,
        .shift = 8,
        .relu = 0,
        .in = L1_IN,
        .out = L1_OUT,
    };
    diana_digital_dense_prepare(&tile, net_6_1_weights);
    code = diana_dma_wait();
    if (code != 0) {
        return code;
    }
    diana_digital_dense_start();
    code = diana_digital_dense_finish(&tile, net_6_1_weights);
    if (code != 0) {
        return code;
    }
    static const diana_block_t out_block = {
        .channels = 1,
        .rows = 1,
        .bytes = 16,
    };
    diana_dma_out_start(out, L1_OUT, &out_block);
    code = diana_dma_wait();
    if (code != 0) {
        return code;
    }

    return 0;
}

/* fc2: dense C=37 -> K=5
 * tile k=5, c=37, y=1, x=1 (1 in all); L1: input 48 B, output 16 B
 * weight memory: 1024 B
 * predicted: 658 cycles */
int32_t net_6_2(const int8_t *in, int8_t *out)
{
    enum {
        L1_IN = 32, L1_OUT = 160, /* byte offsets in L1 */
    };
    int32_t code;

    static const diana_block_t in_block = {
        .channels = 1,
        .rows = 1,
        .bytes = 48,
    };
    diana_dma_in_start(L1_IN, in, &in_block);
    static const diana_dense_t tile = {
        .k = 5,
        .c = 37,
        .shift = 8,
        .relu = 0,
        .in = L1_IN,
        .out = L1_OUT,
    };
    diana_digital_dense_prepare(&tile, net_6_2_weights);
    code = diana_dma_wait();
    if (code != 0) {
        return code;
    }
    diana_digital_dense_start();
    code = diana_digital_dense_finish(&tile, net_6_2_weights);
    if (code != 0) {
        return code;
    }
    static const diana_block_t out_block = {
        .channels = 1,
        .rows = 1,
        .bytes = 16,
    };
    diana_dma_out_start(out, L1_OUT, &out_block);
    code = diana_dma_wait();
    if (code != 0) {
        return code;
    }

    return 0;
}
