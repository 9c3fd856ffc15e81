/* ==== published, all of L1 ==== */

/* depthwise: depthwise C=20 10x9 -> K=20 10x9, kernel 3x3, stride 1x1
 * tile k=20, c=1, y=10, x=9 (1 in all); L1: input 3200 B, output 5600 B
 * weight memory: 208 B
 * predicted: 18560 cycles */
int32_t net_depthwise(const int8_t *in, int8_t *out)
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
        .k = 20,
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
        .shift = 8,
        .relu = 1,
        .in = L1_IN,
        .out = L1_OUT,
    };
    code = diana_digital_depthwise(&tile, net_depthwise_weights);
    if (code != 0) {
        return code;
    }
    static const diana_block_t out_block = {
        .channels = 20,
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

/* ==== published, 2000 B of L1 ==== */

/* depthwise: depthwise C=20 10x9 -> K=20 10x9, kernel 3x3, stride 1x1
 * tile k=1, c=1, y=7, x=9 (40 in all); L1: input 144 B, output 1792 B
 * weight memory: 208 B
 * predicted: 33160 cycles */
int32_t net_depthwise(const int8_t *in, int8_t *out)
{
    enum {
        L1_IN = 0, L1_OUT = 144, /* byte offsets in L1 */
        IN_ROW = 16, IN_MAP = 160, /* bytes of a row and of a channel */
        OUT_ROW = 16, OUT_MAP = 160,
        WEIGHT_BYTES = 208, /* weights and biases of a full channel tile */
    };
    /* rows of each tile: first and number of outputs, first and number of inputs,
     * zero rows above (negative: rows to skip) */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int8_t pad;
    } y_tiles[2] = {
        {0, 7, 0, 8, 1},
        {7, 3, 6, 4, 0},
    };
    int32_t code;

    for (uint32_t k = 0; k < 20; ++k) { /* output channels */
        for (uint32_t y = 0; y < 2; ++y) { /* rows */
            const diana_block_t in_block = {
                .channels = 1,
                .rows = y_tiles[y].in_size,
                .bytes = 16,
                .l2_channel_stride = 160,
                .l2_row_stride = 16,
                .l1_channel_stride = y_tiles[y].in_size * 16,
                .l1_row_stride = 16,
            };
            code = diana_dma_in(L1_IN, in + k * IN_MAP + y_tiles[y].in_start * IN_ROW, &in_block);
            if (code != 0) {
                return code;
            }
            const diana_conv_t tile = {
                .k = 1,
                .c = 1,
                .iy = y_tiles[y].in_size,
                .ix = 9,
                .oy = y_tiles[y].out_size,
                .ox = 9,
                .fy = 3,
                .fx = 3,
                .stride = 1,
                .pad_top = y_tiles[y].pad,
                .pad_left = 1,
                .shift = 8,
                .relu = 1,
                .in = L1_IN,
                .out = L1_OUT,
            };
            code = diana_digital_depthwise(&tile, net_depthwise_weights + k * WEIGHT_BYTES);
            if (code != 0) {
                return code;
            }
            const diana_block_t out_block = {
                .channels = 1,
                .rows = y_tiles[y].out_size,
                .bytes = 16,
                .l2_channel_stride = 160,
                .l2_row_stride = 16,
                .l1_channel_stride = y_tiles[y].out_size * 16,
                .l1_row_stride = 16,
            };
            code = diana_dma_out(out + k * OUT_MAP + y_tiles[y].out_start * OUT_ROW, L1_OUT, &out_block);
            if (code != 0) {
                return code;
            }
        }
    }

    return 0;
}

/* ==== published, 8000 B of L1 ==== */

/* depthwise: depthwise C=20 10x9 -> K=20 10x9, kernel 3x3, stride 1x1
 * tile k=17, c=1, y=10, x=9 (2 in all); L1: input 2720 B, output 5120 B
 * weight memory: 208 B
 * predicted: 18660 cycles */
int32_t net_depthwise(const int8_t *in, int8_t *out)
{
    enum {
        L1_IN = 0, L1_OUT = 2720, /* byte offsets in L1 */
        IN_ROW = 16, IN_MAP = 160, /* bytes of a row and of a channel */
        OUT_ROW = 16, OUT_MAP = 160,
        WEIGHT_BYTES = 1040, /* weights and biases of a full channel tile */
    };
    int32_t code;

    for (uint32_t k = 0; k < 2; ++k) { /* output channels */
        const diana_block_t in_block = {
            .channels = (k + 1 < 2 ? 17 : 3),
            .rows = 10,
            .bytes = 16,
            .l2_channel_stride = 160,
            .l2_row_stride = 16,
            .l1_channel_stride = 160,
            .l1_row_stride = 16,
        };
        code = diana_dma_in(L1_IN, in + (k * 17) * IN_MAP, &in_block);
        if (code != 0) {
            return code;
        }
        const diana_conv_t tile = {
            .k = (k + 1 < 2 ? 17 : 3),
            .c = (k + 1 < 2 ? 17 : 3),
            .iy = 10,
            .ix = 9,
            .oy = 10,
            .ox = 9,
            .fy = 3,
            .fx = 3,
            .stride = 1,
            .pad_top = 1,
            .pad_left = 1,
            .shift = 8,
            .relu = 1,
            .in = L1_IN,
            .out = L1_OUT,
        };
        code = diana_digital_depthwise(&tile, net_depthwise_weights + k * WEIGHT_BYTES);
        if (code != 0) {
            return code;
        }
        const diana_block_t out_block = {
            .channels = (k + 1 < 2 ? 17 : 3),
            .rows = 10,
            .bytes = 16,
            .l2_channel_stride = 160,
            .l2_row_stride = 16,
            .l1_channel_stride = 160,
            .l1_row_stride = 16,
        };
        code = diana_dma_out(out + (k * 17) * OUT_MAP, L1_OUT, &out_block);
        if (code != 0) {
            return code;
        }
    }

    return 0;
}

/* ==== overlapped, all of L1 ==== */

/* depthwise: depthwise C=20 10x9 -> K=20 10x9, kernel 3x3, stride 1x1
 * tile k=16, c=1, y=10, x=9 (2 in all); L1: 2 x input 2560 B, output 4960 B
 * weight memory: 2368 B
 * predicted: 4218 cycles */
int32_t net_depthwise(const int8_t *in, int8_t *out)
{
    enum {
        L1_IN = 9920, L1_OUT = 0, /* byte offsets in L1 */
        IN_TILE = 2560, OUT_TILE = 4960, /* bytes of a buffer; the second follows the first */
        IN_ROW = 16, IN_MAP = 160, /* bytes of a row and of a channel */
        OUT_ROW = 16, OUT_MAP = 160,
        WEIGHT_BYTES = 2368, /* weights and biases of a full channel tile */
    };
    int32_t code;
    /* While the core computes a tile, the DMA stores the one before and loads the next. */
    diana_conv_t tile = {0}; /* the tile that the core is computing */
    const uint8_t *packed = net_depthwise_weights; /* the weights of this tile */
    int8_t *to = out; /* where to store the result of the tile before */
    diana_block_t out_block = {0};
    uint32_t tiles = 0; /* number of tiles so far; even ones use the first output buffer */
    uint32_t loads = 0; /* number of inputs loaded so far; even ones use the first input buffer */

    for (uint32_t k = 0; k < 2; ++k) { /* output channels */
        const diana_block_t in_block = {
            .channels = (k + 1 < 2 ? 16 : 4),
            .rows = 10,
            .bytes = 16,
            .l2_channel_stride = 160,
            .l2_row_stride = 16,
            .l1_channel_stride = 160,
            .l1_row_stride = 16,
        };
        const uint32_t in_buffer = loads++ % 2 * IN_TILE;
        diana_dma_in_start(L1_IN + in_buffer, in + (k * 16) * IN_MAP, &in_block);
        if (tiles != 0) {
            code = diana_digital_depthwise_blocks_finish(&tile, packed);
            if (code != 0) {
                return code;
            }
        }
        tile = (diana_conv_t){
            .k = (k + 1 < 2 ? 16 : 4),
            .c = 16,
            .iy = 10,
            .ix = 9,
            .oy = 10,
            .ox = 9,
            .fy = 3,
            .fx = 3,
            .stride = 1,
            .pad_top = 1,
            .pad_left = 1,
            .shift = 8,
            .relu = 1,
            .in = L1_IN + in_buffer,
            .out = L1_OUT + tiles % 2 * OUT_TILE,
        };
        packed = net_depthwise_weights + k * WEIGHT_BYTES;
        diana_digital_depthwise_blocks_prepare(&tile, packed);
        code = diana_dma_wait();
        if (code != 0) {
            return code;
        }
        diana_digital_depthwise_blocks_start();
        if (tiles != 0) {
            diana_dma_out_start(to, L1_OUT + (tiles - 1) % 2 * OUT_TILE, &out_block);
        }
        to = out + (k * 16) * OUT_MAP;
        out_block = (diana_block_t){
            .channels = (k + 1 < 2 ? 16 : 4),
            .rows = 10,
            .bytes = 16,
            .l2_channel_stride = 160,
            .l2_row_stride = 16,
            .l1_channel_stride = 160,
            .l1_row_stride = 16,
        };
        ++tiles;
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

/* ==== overlapped, 2000 B of L1 ==== */

/* depthwise: depthwise C=20 10x9 -> K=20 10x9, kernel 3x3, stride 1x1
 * tile k=4, c=1, y=5, x=9 (10 in all); L1: input 448 B, output 1520 B
 * weight memory: 2368 B
 * predicted: 12130 cycles */
int32_t net_depthwise(const int8_t *in, int8_t *out)
{
    enum {
        L1_IN = 1520, L1_OUT = 0, /* byte offsets in L1 */
        IN_ROW = 16, IN_MAP = 160, /* bytes of a row and of a channel */
        OUT_ROW = 16, OUT_MAP = 160,
        WEIGHT_BYTES = 640, /* weights and biases of a full channel tile */
    };
    /* rows of each tile: first and number of outputs, first and number of inputs,
     * zero rows above (negative: rows to skip) */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int8_t pad;
    } y_tiles[2] = {
        {0, 5, 0, 6, 1},
        {5, 5, 4, 6, 0},
    };
    int32_t code;

    for (uint32_t y = 0; y < 2; ++y) { /* rows */
        for (uint32_t k = 0; k < 5; ++k) { /* output channels */
            static const diana_block_t in_block = {
                .channels = 4,
                .rows = 6,
                .bytes = 16,
                .l2_channel_stride = 160,
                .l2_row_stride = 16,
                .l1_channel_stride = 96,
                .l1_row_stride = 16,
            };
            diana_dma_in_start(L1_IN, in + (k * 4) * IN_MAP + y_tiles[y].in_start * IN_ROW, &in_block);
            const diana_conv_t tile = {
                .k = 4,
                .c = 16,
                .iy = 6,
                .ix = 9,
                .oy = 5,
                .ox = 9,
                .fy = 3,
                .fx = 3,
                .stride = 1,
                .pad_top = y_tiles[y].pad,
                .pad_left = 1,
                .shift = 8,
                .relu = 1,
                .in = L1_IN,
                .out = L1_OUT,
            };
            diana_digital_depthwise_blocks_prepare(&tile, net_depthwise_weights + k * WEIGHT_BYTES);
            code = diana_dma_wait();
            if (code != 0) {
                return code;
            }
            diana_digital_depthwise_blocks_start();
            code = diana_digital_depthwise_blocks_finish(&tile, net_depthwise_weights + k * WEIGHT_BYTES);
            if (code != 0) {
                return code;
            }
            static const diana_block_t out_block = {
                .channels = 4,
                .rows = 5,
                .bytes = 16,
                .l2_channel_stride = 160,
                .l2_row_stride = 16,
                .l1_channel_stride = 80,
                .l1_row_stride = 16,
            };
            diana_dma_out_start(out + (k * 4) * OUT_MAP + y_tiles[y].out_start * OUT_ROW, L1_OUT, &out_block);
            code = diana_dma_wait();
            if (code != 0) {
                return code;
            }
        }
    }

    return 0;
}

/* ==== overlapped, 8000 B of L1 ==== */

/* depthwise: depthwise C=20 10x9 -> K=20 10x9, kernel 3x3, stride 1x1
 * tile k=16, c=1, y=10, x=9 (2 in all); L1: input 2560 B, output 4960 B
 * weight memory: 2368 B
 * predicted: 4518 cycles */
int32_t net_depthwise(const int8_t *in, int8_t *out)
{
    enum {
        L1_IN = 4960, L1_OUT = 0, /* byte offsets in L1 */
        IN_ROW = 16, IN_MAP = 160, /* bytes of a row and of a channel */
        OUT_ROW = 16, OUT_MAP = 160,
        WEIGHT_BYTES = 2368, /* weights and biases of a full channel tile */
    };
    int32_t code;

    for (uint32_t k = 0; k < 2; ++k) { /* output channels */
        const diana_block_t in_block = {
            .channels = (k + 1 < 2 ? 16 : 4),
            .rows = 10,
            .bytes = 16,
            .l2_channel_stride = 160,
            .l2_row_stride = 16,
            .l1_channel_stride = 160,
            .l1_row_stride = 16,
        };
        diana_dma_in_start(L1_IN, in + (k * 16) * IN_MAP, &in_block);
        const diana_conv_t tile = {
            .k = (k + 1 < 2 ? 16 : 4),
            .c = 16,
            .iy = 10,
            .ix = 9,
            .oy = 10,
            .ox = 9,
            .fy = 3,
            .fx = 3,
            .stride = 1,
            .pad_top = 1,
            .pad_left = 1,
            .shift = 8,
            .relu = 1,
            .in = L1_IN,
            .out = L1_OUT,
        };
        diana_digital_depthwise_blocks_prepare(&tile, net_depthwise_weights + k * WEIGHT_BYTES);
        code = diana_dma_wait();
        if (code != 0) {
            return code;
        }
        diana_digital_depthwise_blocks_start();
        code = diana_digital_depthwise_blocks_finish(&tile, net_depthwise_weights + k * WEIGHT_BYTES);
        if (code != 0) {
            return code;
        }
        const diana_block_t out_block = {
            .channels = (k + 1 < 2 ? 16 : 4),
            .rows = 10,
            .bytes = 16,
            .l2_channel_stride = 160,
            .l2_row_stride = 16,
            .l1_channel_stride = 160,
            .l1_row_stride = 16,
        };
        diana_dma_out_start(out + (k * 16) * OUT_MAP, L1_OUT, &out_block);
        code = diana_dma_wait();
        if (code != 0) {
            return code;
        }
    }

    return 0;
}
