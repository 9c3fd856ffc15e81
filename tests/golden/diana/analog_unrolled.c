/* x: NHWC to the accelerator's layout, shape (20, 10, 9), 3200 B.
 * Four columns make a word, the first in its highest byte; rows are padded with zeros. */
int32_t net_x_to_core(const int8_t *in, int8_t *out)
{
    uint8_t *q = (uint8_t *)out;
    for (uint32_t c = 0; c < 20; ++c) {
        const uint8_t *p = (const uint8_t *)in + c;
        for (uint32_t y = 0; y < 10; ++y) {
            diana_put_word(q, p[0], p[20], p[40], p[60]);
            diana_put_word(q + 4, p[80], p[100], p[120], p[140]);
            p += 160;
            q += 8;
            diana_put_word(q, p[0], 0, 0, 0);
            p += 20;
            q += 4;
            __builtin_memset(__builtin_assume_aligned(q, 4), 0, 4); /* padding of the row */
            q += 4;
        }
    }
    return 0;
}

/* constant: net_conv_weights[18516], uint8, aligned to 16: array images and factors of conv */
/* conv: conv2d C=20 10x9 -> K=21 10x9, kernel 3x3, stride 1x1
 * tile k=21, c=20, y=10, x=9 (1 in all); L1: input 3200 B, output 3360 B
 * weight memory: 1512 B
 * predicted: 4846 cycles */
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
        .mode = 4,
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
