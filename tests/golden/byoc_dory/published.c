/* x: NHWC to the accelerator's layout, shape (3, 18, 18), 1728 B.
 * Four columns make a word, the first in its highest byte; rows are padded with zeros. */
int32_t net_x_to_core(const int8_t *in, int8_t *out)
{
    uint8_t *q = (uint8_t *)out;
    for (uint32_t c = 0; c < 3; ++c) {
        const uint8_t *p = (const uint8_t *)in + c;
        for (uint32_t y = 0; y < 18; ++y) {
            diana_put_word(q, p[0], p[3], p[6], p[9]);
            diana_put_word(q + 4, p[12], p[15], p[18], p[21]);
            diana_put_word(q + 8, p[24], p[27], p[30], p[33]);
            diana_put_word(q + 12, p[36], p[39], p[42], p[45]);
            p += 48;
            q += 16;
            diana_put_word(q, p[0], p[3], 0, 0);
            p += 6;
            q += 4;
            __builtin_memset(__builtin_assume_aligned(q, 4), 0, 12); /* padding of the row */
            q += 12;
        }
    }
    return 0;
}

/* v: C to the accelerator's layout, shape (70,), 80 B.
 * Four columns make a word, the first in its highest byte; rows are padded with zeros. */
int32_t net_v_to_core(const int8_t *in, int8_t *out)
{
    uint8_t *q = (uint8_t *)out;
    const uint8_t *p = (const uint8_t *)in;
    for (uint32_t x = 0; x < 4; ++x) { /* 16 columns */
        diana_put_word(q, p[0], p[1], p[2], p[3]);
        diana_put_word(q + 4, p[4], p[5], p[6], p[7]);
        diana_put_word(q + 8, p[8], p[9], p[10], p[11]);
        diana_put_word(q + 12, p[12], p[13], p[14], p[15]);
        p += 16;
        q += 16;
    }
    diana_put_word(q, p[0], p[1], p[2], p[3]);
    p += 4;
    q += 4;
    diana_put_word(q, p[0], p[1], 0, 0);
    q += 4;
    __builtin_memset(__builtin_assume_aligned(q, 4), 0, 8); /* padding of the row */
    return 0;
}

/* first: conv2d C=3 18x18 -> K=20 18x18, kernel 4x3, stride 1x1
 * tile k=16, c=3, y=3, x=18 (12 in all); L1: input 672 B, output 1536 B
 * weight memory: 784 B
 * predicted: 20256 cycles */
int32_t net_first(const int8_t *in, int8_t *out)
{
    enum {
        L1_IN = 0, L1_OUT = 672, /* byte offsets in L1 */
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

    for (uint32_t k = 0; k < 2; ++k) { /* output channels */
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
            code = diana_dma_in(L1_IN, in + y_tiles[y].in_start * IN_ROW, &in_block);
            if (code != 0) {
                return code;
            }
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
            code = diana_digital_conv2d(&tile, net_first_weights + k * WEIGHT_BYTES);
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
            code = diana_dma_out(out + (k * 16) * OUT_MAP + y_tiles[y].out_start * OUT_ROW, L1_OUT, &out_block);
            if (code != 0) {
                return code;
            }
        }
    }

    return 0;
}

/* dw/down: depthwise C=20 18x18 -> K=20 9x9, kernel 3x3, stride 2x2
 * tile k=1, c=1, y=8, x=9 (40 in all); L1: input 544 B, output 2048 B
 * weight memory: 208 B
 * predicted: 32960 cycles */
int32_t net_dw_down(const int8_t *in, int8_t *out)
{
    enum {
        L1_IN = 0, L1_OUT = 544, /* byte offsets in L1 */
        IN_ROW = 32, IN_MAP = 576, /* bytes of a row and of a channel */
        OUT_ROW = 16, OUT_MAP = 144,
        WEIGHT_BYTES = 208, /* weights and biases of a full channel tile */
    };
    /* rows of each tile: first and number of outputs, first and number of inputs,
     * zero rows above (negative: rows to skip) */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int8_t pad;
    } y_tiles[2] = {
        {0, 8, 0, 17, 0},
        {8, 1, 16, 2, 0},
    };
    int32_t code;

    for (uint32_t k = 0; k < 20; ++k) { /* output channels */
        for (uint32_t y = 0; y < 2; ++y) { /* rows */
            const diana_block_t in_block = {
                .channels = 1,
                .rows = y_tiles[y].in_size,
                .bytes = 32,
                .l2_channel_stride = 576,
                .l2_row_stride = 32,
                .l1_channel_stride = y_tiles[y].in_size * 32,
                .l1_row_stride = 32,
            };
            code = diana_dma_in(L1_IN, in + k * IN_MAP + y_tiles[y].in_start * IN_ROW, &in_block);
            if (code != 0) {
                return code;
            }
            const diana_conv_t tile = {
                .k = 1,
                .c = 1,
                .iy = y_tiles[y].in_size,
                .ix = 18,
                .oy = y_tiles[y].out_size,
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
            code = diana_digital_depthwise(&tile, net_dw_down_weights + k * WEIGHT_BYTES);
            if (code != 0) {
                return code;
            }
            const diana_block_t out_block = {
                .channels = 1,
                .rows = y_tiles[y].out_size,
                .bytes = 16,
                .l2_channel_stride = 144,
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

/* pw: conv2d C=20 9x9 -> K=20 9x9, kernel 1x1, stride 1x1
 * tile k=16, c=20, y=4, x=9 (6 in all); L1: input 1280 B, output 1024 B
 * weight memory: 384 B
 * predicted: 11922 cycles */
int32_t net_pw(const int8_t *in, int8_t *out)
{
    enum {
        L1_IN = 0, L1_OUT = 1280, /* byte offsets in L1 */
        IN_ROW = 16, IN_MAP = 144, /* bytes of a row and of a channel */
        OUT_ROW = 16, OUT_MAP = 144,
        WEIGHT_BYTES = 384, /* weights and biases of a full channel tile */
    };
    /* rows of each tile: first and number of outputs, first and number of inputs,
     * zero rows above (negative: rows to skip) */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int8_t pad;
    } y_tiles[3] = {
        {0, 4, 0, 4, 0},
        {4, 4, 4, 4, 0},
        {8, 1, 8, 1, 0},
    };
    int32_t code;

    for (uint32_t k = 0; k < 2; ++k) { /* output channels */
        for (uint32_t y = 0; y < 3; ++y) { /* rows */
            const diana_block_t in_block = {
                .channels = 20,
                .rows = y_tiles[y].in_size,
                .bytes = 16,
                .l2_channel_stride = 144,
                .l2_row_stride = 16,
                .l1_channel_stride = y_tiles[y].in_size * 16,
                .l1_row_stride = 16,
            };
            code = diana_dma_in(L1_IN, in + y_tiles[y].in_start * IN_ROW, &in_block);
            if (code != 0) {
                return code;
            }
            const diana_conv_t tile = {
                .k = (k + 1 < 2 ? 16 : 4),
                .c = 20,
                .iy = y_tiles[y].in_size,
                .ix = 9,
                .oy = y_tiles[y].out_size,
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
            code = diana_digital_conv2d(&tile, net_pw_weights + k * WEIGHT_BYTES);
            if (code != 0) {
                return code;
            }
            const diana_block_t out_block = {
                .channels = (k + 1 < 2 ? 16 : 4),
                .rows = y_tiles[y].out_size,
                .bytes = 16,
                .l2_channel_stride = 144,
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

/* dw:down: add 20x9x9
 * tile k=6, c=1, y=9, x=9 (4 in all); L1: input 1728 B, output 864 B
 * predicted: 16580 cycles */
int32_t net_dw_down_2(const int8_t *in0, const int8_t *in1, int8_t *out)
{
    enum {
        L1_A = 0, L1_B = 864, L1_OUT = 1728, /* byte offsets in L1 */
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
        code = diana_dma_in_rows(L1_A, in0 + (k * 6) * IN_MAP, &in_block);
        if (code != 0) {
            return code;
        }
        code = diana_dma_in_rows(L1_B, in1 + (k * 6) * IN_MAP, &in_block);
        if (code != 0) {
            return code;
        }
        const diana_add_t tile = {
            .elements = (((k + 1 < 4 ? 6 : 2)) * 9) * 16,
            .shift = 1,
            .relu = 0,
            .a = L1_A,
            .b = L1_B,
            .out = L1_OUT,
        };
        code = diana_digital_add(&tile);
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
        code = diana_dma_out(out + (k * 6) * OUT_MAP, L1_OUT, &out_block);
        if (code != 0) {
            return code;
        }
    }

    return 0;
}

/* twice: add 20x9x9
 * tile k=6, c=1, y=9, x=9 (4 in all); L1: input 1728 B, output 864 B
 * predicted: 16580 cycles */
int32_t net_twice(const int8_t *in0, const int8_t *in1, int8_t *out)
{
    enum {
        L1_A = 0, L1_B = 864, L1_OUT = 1728, /* byte offsets in L1 */
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
        code = diana_dma_in_rows(L1_A, in0 + (k * 6) * IN_MAP, &in_block);
        if (code != 0) {
            return code;
        }
        code = diana_dma_in_rows(L1_B, in1 + (k * 6) * IN_MAP, &in_block);
        if (code != 0) {
            return code;
        }
        const diana_add_t tile = {
            .elements = (((k + 1 < 4 ? 6 : 2)) * 9) * 16,
            .shift = 0,
            .relu = 1,
            .a = L1_A,
            .b = L1_B,
            .out = L1_OUT,
        };
        code = diana_digital_add(&tile);
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
        code = diana_dma_out(out + (k * 6) * OUT_MAP, L1_OUT, &out_block);
        if (code != 0) {
            return code;
        }
    }

    return 0;
}

/* fc: dense C=70 -> K=37
 * tile k=16, c=70, y=1, x=1 (3 in all); L1: input 80 B, output 48 B
 * weight memory: 1536 B
 * predicted: 2082 cycles */
int32_t net_fc(const int8_t *in, int8_t *out)
{
    enum {
        L1_IN = 0, L1_OUT = 80, /* byte offsets in L1 */
        WEIGHT_BYTES = 1536, /* weights and biases of a full channel tile */
    };
    int32_t code;

    for (uint32_t k = 0; k < 3; ++k) { /* output channels */
        static const diana_block_t in_block = {
            .channels = 1,
            .rows = 1,
            .bytes = 80,
        };
        code = diana_dma_in(L1_IN, in, &in_block);
        if (code != 0) {
            return code;
        }
        const diana_dense_t tile = {
            .k = (k + 1 < 3 ? 16 : 5),
            .c = 70,
            .shift = 9,
            .relu = 0,
            .in = L1_IN,
            .out = L1_OUT,
        };
        code = diana_digital_dense(&tile, net_fc_weights + k * WEIGHT_BYTES);
        if (code != 0) {
            return code;
        }
        const diana_block_t out_block = {
            .channels = 1,
            .rows = 1,
            .bytes = ((k + 1 < 3 ? 16 : 5) + 15u) & ~15u,
        };
        code = diana_dma_out(out + k * 16, L1_OUT, &out_block);
        if (code != 0) {
            return code;
        }
    }

    return 0;
}

/* fc2: dense C=37 -> K=5
 * tile k=5, c=37, y=1, x=1 (1 in all); L1: input 48 B, output 16 B
 * weight memory: 1024 B
 * predicted: 658 cycles */
int32_t net_fc2(const int8_t *in, int8_t *out)
{
    enum {
        L1_IN = 0, L1_OUT = 48, /* byte offsets in L1 */
    };
    int32_t code;

    static const diana_block_t in_block = {
        .channels = 1,
        .rows = 1,
        .bytes = 48,
    };
    code = diana_dma_in(L1_IN, in, &in_block);
    if (code != 0) {
        return code;
    }
    static const diana_dense_t tile = {
        .k = 5,
        .c = 37,
        .shift = 8,
        .relu = 0,
        .in = L1_IN,
        .out = L1_OUT,
    };
    code = diana_digital_dense(&tile, net_fc2_weights);
    if (code != 0) {
        return code;
    }
    static const diana_block_t out_block = {
        .channels = 1,
        .rows = 1,
        .bytes = 16,
    };
    code = diana_dma_out(out, L1_OUT, &out_block);
    if (code != 0) {
        return code;
    }

    return 0;
}

/* t4: from the accelerator's layout to NCHW, shape (20, 9, 9), 2880 B.
 * A word holds four columns, the first in its highest byte. */
int32_t net_t4_from_core(const int8_t *in, int8_t *out)
{
    const uint8_t *q = (const uint8_t *)in;
    uint8_t *p = (uint8_t *)out;
    for (uint32_t y = 0; y < 180; ++y) {
        diana_get_word(q, p, 1, 4);
        diana_get_word(q + 4, p + 4, 1, 4);
        p += 8;
        q += 8;
        diana_get_word(q, p, 1, 1);
        p += 1;
        q += 4;
        q += 4; /* padding of the row */
    }
    return 0;
}

/* t5: from the accelerator's layout to NHWC, shape (20, 9, 9), 2880 B.
 * A word holds four columns, the first in its highest byte. */
int32_t net_t5_from_core(const int8_t *in, int8_t *out)
{
    const uint8_t *q = (const uint8_t *)in;
    for (uint32_t c = 0; c < 20; ++c) {
        uint8_t *p = (uint8_t *)out + c;
        for (uint32_t y = 0; y < 9; ++y) {
            diana_get_word(q, p, 20, 4);
            diana_get_word(q + 4, p + 80, 20, 4);
            p += 160;
            q += 8;
            diana_get_word(q, p, 20, 1);
            p += 20;
            q += 4;
            q += 4; /* padding of the row */
        }
    }
    return 0;
}

/* more: from the accelerator's layout to C, shape (5,), 16 B.
 * A word holds four columns, the first in its highest byte. */
int32_t net_more_from_core(const int8_t *in, int8_t *out)
{
    const uint8_t *q = (const uint8_t *)in;
    uint8_t *p = (uint8_t *)out;
    diana_get_word(q, p, 1, 4);
    p += 4;
    q += 4;
    diana_get_word(q, p, 1, 1);
    return 0;
}
