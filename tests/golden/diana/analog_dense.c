/* ==== published, all of L1 ==== */

/* dense: dense C=70 -> K=37
 * tile k=37, c=70, y=1, x=1 (1 in all); L1: input 80 B, output 48 B
 * weight memory: 3456 B
 * predicted: 3395 cycles */
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
    code = diana_dma_in(L1_IN, in, &in_block);
    if (code != 0) {
        return code;
    }
    static const diana_analog_conv_t tile = {
        .k = 37,
        .c = 70,
        .iy = 1,
        .ix = 1,
        .oy = 1,
        .ox = 1,
        .fy = 1,
        .fx = 1,
        .stride = 1,
        .pad_top = 0,
        .pad_left = 0,
        .gain = 5,
        .shift = 4,
        .clip = 0,
        .in = L1_IN,
        .out = L1_OUT,
        .mode = 1 | DIANA_ANALOG_VECTOR,
        .c_pass = 70,
    };
    code = diana_analog_dense(&tile, net_dense_weights);
    if (code != 0) {
        return code;
    }
    static const diana_block_t out_block = {
        .channels = 1,
        .rows = 1,
        .bytes = 48,
    };
    code = diana_dma_out(out, L1_OUT, &out_block);
    if (code != 0) {
        return code;
    }

    return 0;
}

/* ==== overlapped, all of L1 ==== */

/* dense: dense C=70 -> K=37
 * tile k=37, c=70, y=1, x=1 (1 in all); L1: input 80 B, output 48 B
 * weight memory: 3456 B
 * predicted: 3395 cycles */
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
    static const diana_analog_conv_t tile = {
        .k = 37,
        .c = 70,
        .iy = 1,
        .ix = 1,
        .oy = 1,
        .ox = 1,
        .fy = 1,
        .fx = 1,
        .stride = 1,
        .pad_top = 0,
        .pad_left = 0,
        .gain = 5,
        .shift = 4,
        .clip = 0,
        .in = L1_IN,
        .out = L1_OUT,
        .mode = 1 | DIANA_ANALOG_VECTOR,
        .c_pass = 70,
    };
    diana_analog_dense_prepare(&tile, net_dense_weights);
    code = diana_dma_wait();
    if (code != 0) {
        return code;
    }
    diana_analog_dense_start();
    code = diana_analog_dense_finish(&tile, net_dense_weights);
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
