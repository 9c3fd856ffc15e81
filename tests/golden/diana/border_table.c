/* constant: net_mapped_mapped_to_core_table[256], uint8, aligned to 16: mapped: what each byte of x becomes */
/* mapped: NHWC to the accelerator's layout, shape (3, 4, 6), 192 B.
 * Four columns make a word, the first in its highest byte; rows are padded with zeros.
 * The bytes of x are requantized by a table on the way. */
int32_t net_mapped_mapped_to_core(const int8_t *in, int8_t *out)
{
    const uint8_t *table = net_mapped_mapped_to_core_table;
    uint8_t *q = (uint8_t *)out;
    for (uint32_t c = 0; c < 3; ++c) {
        const uint8_t *p = (const uint8_t *)in + c;
        for (uint32_t y = 0; y < 4; ++y) {
            diana_put_word(q, table[p[0]], table[p[3]], table[p[6]], table[p[9]]);
            p += 12;
            q += 4;
            diana_put_word(q, table[p[0]], table[p[3]], 0, 0);
            p += 6;
            q += 4;
            __builtin_memset(__builtin_assume_aligned(q, 4), 0, 8); /* padding of the row */
            q += 8;
        }
    }
    return 0;
}

/* constant: net_conv_weights[112], uint8, aligned to 16: weights and biases of conv */
/* conv: conv2d C=3 4x6 -> K=4 4x6, kernel 1x1, stride 1x1
 * tile k=4, c=3, y=4, x=6 (1 in all); L1: input 192 B, output 1024 B
 * weight memory: 112 B
 * predicted: 748 cycles */
int32_t net_conv(const int8_t *in, int8_t *out)
{
    enum {
        L1_IN = 1024, L1_OUT = 0, /* byte offsets in L1 */
    };
    int32_t code;

    static const diana_block_t in_block = {
        .channels = 3,
        .rows = 4,
        .bytes = 16,
        .l2_channel_stride = 64,
        .l2_row_stride = 16,
        .l1_channel_stride = 64,
        .l1_row_stride = 16,
    };
    diana_dma_in_start(L1_IN, in, &in_block);
    static const diana_conv_t tile = {
        .k = 4,
        .c = 3,
        .iy = 4,
        .ix = 6,
        .oy = 4,
        .ox = 6,
        .fy = 1,
        .fx = 1,
        .stride = 1,
        .pad_top = 0,
        .pad_left = 0,
        .shift = 7,
        .relu = 0,
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
        .channels = 4,
        .rows = 4,
        .bytes = 16,
        .l2_channel_stride = 64,
        .l2_row_stride = 16,
        .l1_channel_stride = 64,
        .l1_row_stride = 16,
    };
    diana_dma_out_start(out, L1_OUT, &out_block);
    code = diana_dma_wait();
    if (code != 0) {
        return code;
    }

    return 0;
}

/* y: from the accelerator's layout to NHWC, shape (4, 4, 6), 256 B.
 * A word holds four columns, the first in its highest byte. */
int32_t net_y_from_core(const int8_t *in, int8_t *out)
{
    const uint8_t *q = (const uint8_t *)in;
    for (uint32_t c = 0; c < 4; ++c) {
        uint8_t *p = (uint8_t *)out + c;
        for (uint32_t y = 0; y < 4; ++y) {
            diana_get_word(q, p, 4, 4);
            p += 16;
            q += 4;
            diana_get_word(q, p, 4, 2);
            p += 8;
            q += 4;
            q += 8; /* padding of the row */
        }
    }
    return 0;
}
