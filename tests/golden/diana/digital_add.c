/* ==== published, all of L1 ==== */

/* add: add 20x10x9
 * tile k=20, c=1, y=10, x=9 (1 in all); L1: input 6400 B, output 3200 B
 * predicted: 16235 cycles */
int32_t net_add(const int8_t *in0, const int8_t *in1, int8_t *out)
{
    enum {
        L1_A = 0, L1_B = 3200, L1_OUT = 6400, /* byte offsets in L1 */
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
    code = diana_dma_in_rows(L1_A, in0, &in_block);
    if (code != 0) {
        return code;
    }
    code = diana_dma_in_rows(L1_B, in1, &in_block);
    if (code != 0) {
        return code;
    }
    static const diana_add_t tile = {
        .elements = 3200,
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

/* add: add 20x10x9
 * tile k=4, c=1, y=10, x=9 (5 in all); L1: input 1280 B, output 640 B
 * predicted: 18775 cycles */
int32_t net_add(const int8_t *in0, const int8_t *in1, int8_t *out)
{
    enum {
        L1_A = 0, L1_B = 640, L1_OUT = 1280, /* byte offsets in L1 */
        IN_ROW = 16, IN_MAP = 160, /* bytes of a row and of a channel */
        OUT_ROW = 16, OUT_MAP = 160,
    };
    int32_t code;

    for (uint32_t k = 0; k < 5; ++k) { /* output channels */
        static const diana_block_t in_block = {
            .channels = 4,
            .rows = 10,
            .bytes = 16,
            .l2_channel_stride = 160,
            .l2_row_stride = 16,
            .l1_channel_stride = 160,
            .l1_row_stride = 16,
        };
        code = diana_dma_in_rows(L1_A, in0 + (k * 4) * IN_MAP, &in_block);
        if (code != 0) {
            return code;
        }
        code = diana_dma_in_rows(L1_B, in1 + (k * 4) * IN_MAP, &in_block);
        if (code != 0) {
            return code;
        }
        static const diana_add_t tile = {
            .elements = 640,
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
        static const diana_block_t out_block = {
            .channels = 4,
            .rows = 10,
            .bytes = 16,
            .l2_channel_stride = 160,
            .l2_row_stride = 16,
            .l1_channel_stride = 160,
            .l1_row_stride = 16,
        };
        code = diana_dma_out(out + (k * 4) * OUT_MAP, L1_OUT, &out_block);
        if (code != 0) {
            return code;
        }
    }

    return 0;
}

/* ==== published, 8000 B of L1 ==== */

/* add: add 20x10x9
 * tile k=16, c=1, y=10, x=9 (2 in all); L1: input 5120 B, output 2560 B
 * predicted: 16870 cycles */
int32_t net_add(const int8_t *in0, const int8_t *in1, int8_t *out)
{
    enum {
        L1_A = 0, L1_B = 2560, L1_OUT = 5120, /* byte offsets in L1 */
        IN_ROW = 16, IN_MAP = 160, /* bytes of a row and of a channel */
        OUT_ROW = 16, OUT_MAP = 160,
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
        code = diana_dma_in_rows(L1_A, in0 + (k * 16) * IN_MAP, &in_block);
        if (code != 0) {
            return code;
        }
        code = diana_dma_in_rows(L1_B, in1 + (k * 16) * IN_MAP, &in_block);
        if (code != 0) {
            return code;
        }
        const diana_add_t tile = {
            .elements = (((k + 1 < 2 ? 16 : 4)) * 10) * 16,
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
            .channels = (k + 1 < 2 ? 16 : 4),
            .rows = 10,
            .bytes = 16,
            .l2_channel_stride = 160,
            .l2_row_stride = 16,
            .l1_channel_stride = 160,
            .l1_row_stride = 16,
        };
        code = diana_dma_out(out + (k * 16) * OUT_MAP, L1_OUT, &out_block);
        if (code != 0) {
            return code;
        }
    }

    return 0;
}

/* ==== overlapped, all of L1 ==== */

/* add: add 20x10x9
 * tile k=20, c=1, y=10, x=9 (1 in all); L1: input 6400 B, output 3200 B
 * predicted: 1435 cycles */
int32_t net_add(const int8_t *in0, const int8_t *in1, int8_t *out)
{
    enum {
        L1_A = 0, L1_B = 3200, L1_OUT = 6400, /* byte offsets in L1 */
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
    diana_dma_in_start(L1_A, in0, &in_block);
    diana_dma_in_start(L1_B, in1, &in_block);
    static const diana_add_t tile = {
        .elements = 3200,
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

/* ==== overlapped, 2000 B of L1 ==== */

/* add: add 20x10x9
 * tile k=4, c=1, y=10, x=9 (5 in all); L1: input 1280 B, output 640 B
 * predicted: 3975 cycles */
int32_t net_add(const int8_t *in0, const int8_t *in1, int8_t *out)
{
    enum {
        L1_A = 0, L1_B = 640, L1_OUT = 1280, /* byte offsets in L1 */
        IN_ROW = 16, IN_MAP = 160, /* bytes of a row and of a channel */
        OUT_ROW = 16, OUT_MAP = 160,
    };
    int32_t code;

    for (uint32_t k = 0; k < 5; ++k) { /* output channels */
        static const diana_block_t in_block = {
            .channels = 4,
            .rows = 10,
            .bytes = 16,
            .l2_channel_stride = 160,
            .l2_row_stride = 16,
            .l1_channel_stride = 160,
            .l1_row_stride = 16,
        };
        diana_dma_in_start(L1_A, in0 + (k * 4) * IN_MAP, &in_block);
        diana_dma_in_start(L1_B, in1 + (k * 4) * IN_MAP, &in_block);
        static const diana_add_t tile = {
            .elements = 640,
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
            .channels = 4,
            .rows = 10,
            .bytes = 16,
            .l2_channel_stride = 160,
            .l2_row_stride = 16,
            .l1_channel_stride = 160,
            .l1_row_stride = 16,
        };
        diana_dma_out_start(out + (k * 4) * OUT_MAP, L1_OUT, &out_block);
        code = diana_dma_wait();
        if (code != 0) {
            return code;
        }
    }

    return 0;
}

/* ==== overlapped, 8000 B of L1 ==== */

/* add: add 20x10x9
 * tile k=7, c=1, y=10, x=9 (3 in all); L1: 2 x input 2240 B, output 1120 B
 * predicted: 2005 cycles */
int32_t net_add(const int8_t *in0, const int8_t *in1, int8_t *out)
{
    enum {
        L1_A = 0, L1_B = 2240, L1_OUT = 4480, /* byte offsets in L1 */
        IN_TILE = 1120, OUT_TILE = 1120, /* bytes of a buffer; the second follows the first */
        IN_ROW = 16, IN_MAP = 160, /* bytes of a row and of a channel */
        OUT_ROW = 16, OUT_MAP = 160,
    };
    int32_t code;
    /* While the core computes a tile, the DMA stores the one before and loads the next. */
    int8_t *to = out; /* where to store the result of the tile before */
    diana_block_t out_block = {0};
    uint32_t tiles = 0; /* number of tiles so far; even ones use the first output buffer */
    uint32_t loads = 0; /* number of inputs loaded so far; even ones use the first input buffer */

    for (uint32_t k = 0; k < 3; ++k) { /* output channels */
        const diana_block_t in_block = {
            .channels = (k + 1 < 3 ? 7 : 6),
            .rows = 10,
            .bytes = 16,
            .l2_channel_stride = 160,
            .l2_row_stride = 16,
            .l1_channel_stride = 160,
            .l1_row_stride = 16,
        };
        const uint32_t in_buffer = loads++ % 2 * IN_TILE;
        diana_dma_in_start(L1_A + in_buffer, in0 + (k * 7) * IN_MAP, &in_block);
        diana_dma_in_start(L1_B + in_buffer, in1 + (k * 7) * IN_MAP, &in_block);
        const diana_add_t tile = {
            .elements = (((k + 1 < 3 ? 7 : 6)) * 10) * 16,
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
        to = out + (k * 7) * OUT_MAP;
        out_block = (diana_block_t){
            .channels = (k + 1 < 3 ? 7 : 6),
            .rows = 10,
            .bytes = 16,
            .l2_channel_stride = 160,
            .l2_row_stride = 16,
            .l1_channel_stride = 160,
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
