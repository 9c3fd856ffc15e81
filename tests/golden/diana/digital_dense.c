/* ==== published, all of L1 ==== */

/* dense: dense C=70 -> K=37
 * tile k=16, c=70, y=1, x=1 (3 in all); L1: input 80 B, output 48 B
 * weight memory: 1536 B
 * predicted: 2082 cycles */
int32_t net_dense(const int8_t *in, int8_t *out)
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
            .shift = 8,
            .relu = 1,
            .in = L1_IN,
            .out = L1_OUT,
        };
        code = diana_digital_dense(&tile, net_dense_weights + k * WEIGHT_BYTES);
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

/* ==== published, 100 B of L1 ==== */

/* dense: dense C=70 -> K=37
 * tile k=16, c=70, y=1, x=1 (3 in all); L1: input 80 B, output 16 B
 * weight memory: 1536 B
 * predicted: 2082 cycles */
int32_t net_dense(const int8_t *in, int8_t *out)
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
            .shift = 8,
            .relu = 1,
            .in = L1_IN,
            .out = L1_OUT,
        };
        code = diana_digital_dense(&tile, net_dense_weights + k * WEIGHT_BYTES);
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

/* ==== overlapped, all of L1 ==== */

/* dense: dense C=70 -> K=37
 * tile k=37, c=70, y=1, x=1 (1 in all); L1: input 80 B, output 48 B
 * weight memory: 1536 B
 * predicted: 1838 cycles */
int32_t net_dense(const int8_t *in, int8_t *out)
{
    enum {
        L1_IN = 0, L1_OUT = 80, /* byte offsets in L1 */
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
        .shift = 8,
        .relu = 1,
        .in = L1_IN,
        .out = L1_OUT,
    };
    diana_digital_dense_prepare(&tile, net_dense_weights);
    code = diana_dma_wait();
    if (code != 0) {
        return code;
    }
    diana_digital_dense_start();
    code = diana_digital_dense_finish(&tile, net_dense_weights);
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

/* ==== overlapped, 100 B of L1 ==== */

/* dense: dense C=70 -> K=37
 * tile k=16, c=70, y=1, x=1 (3 in all); L1: input 80 B, output 16 B
 * weight memory: 1536 B
 * predicted: 1970 cycles */
int32_t net_dense(const int8_t *in, int8_t *out)
{
    enum {
        L1_IN = 0, L1_OUT = 80, /* byte offsets in L1 */
        WEIGHT_BYTES = 1536, /* weights and biases of a full channel tile */
    };
    int32_t code;

    static const diana_block_t in_block = {
        .channels = 1,
        .rows = 1,
        .bytes = 80,
    };
    diana_dma_in_start(L1_IN, in, &in_block);
    for (uint32_t k = 0; k < 3; ++k) { /* output channels */
        const diana_dense_t tile = {
            .k = (k + 1 < 3 ? 16 : 5),
            .c = 70,
            .shift = 8,
            .relu = 1,
            .in = L1_IN,
            .out = L1_OUT,
        };
        diana_digital_dense_prepare(&tile, net_dense_weights + k * WEIGHT_BYTES);
        code = diana_dma_wait();
        if (code != 0) {
            return code;
        }
        diana_digital_dense_start();
        code = diana_digital_dense_finish(&tile, net_dense_weights + k * WEIGHT_BYTES);
        if (code != 0) {
            return code;
        }
        const diana_block_t out_block = {
            .channels = 1,
            .rows = 1,
            .bytes = ((k + 1 < 3 ? 16 : 5) + 15u) & ~15u,
        };
        diana_dma_out_start(out + k * 16, L1_OUT, &out_block);
        code = diana_dma_wait();
        if (code != 0) {
            return code;
        }
    }

    return 0;
}
