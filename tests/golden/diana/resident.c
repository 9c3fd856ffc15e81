/* x: NHWC to the accelerator's layout, shape (16, 8, 8), 2048 B.
 * Four columns make a word, the first in its highest byte; rows are padded with zeros. */
int32_t net_x_to_core(const int8_t *in, int8_t *out)
{
    uint8_t *q = (uint8_t *)out;
    for (uint32_t c = 0; c < 16; ++c) {
        const uint8_t *p = (const uint8_t *)in + c;
        for (uint32_t y = 0; y < 8; ++y) {
            diana_put_word(q, p[0], p[16], p[32], p[48]);
            diana_put_word(q + 4, p[64], p[80], p[96], p[112]);
            p += 128;
            q += 8;
            __builtin_memset(__builtin_assume_aligned(q, 4), 0, 8); /* padding of the row */
            q += 8;
        }
    }
    return 0;
}

/* constant: net_first_weights[2368], uint8, aligned to 16: weights and biases of first */
/* first: conv2d C=16 8x8 -> K=16 8x8, kernel 3x3, stride 1x1
 * tile k=16, c=16, y=8, x=8 (1 in all); L1: input 2048 B, output 2048 B
 * stays in L1: the output
 * weight memory: 2368 B
 * predicted: 2427 cycles */
int32_t net_first(const int8_t *in)
{
    enum {
        L1_IN = 0, L1_OUT = 2048, /* byte offsets in L1 */
    };
    int32_t code;

    static const diana_block_t in_block = {
        .channels = 16,
        .rows = 8,
        .bytes = 16,
        .l2_channel_stride = 128,
        .l2_row_stride = 16,
        .l1_channel_stride = 128,
        .l1_row_stride = 16,
    };
    diana_dma_in_start(L1_IN, in, &in_block);
    static const diana_conv_t tile = {
        .k = 16,
        .c = 16,
        .iy = 8,
        .ix = 8,
        .oy = 8,
        .ox = 8,
        .fy = 3,
        .fx = 3,
        .stride = 1,
        .pad_top = 1,
        .pad_left = 1,
        .shift = 11,
        .relu = 0,
        .in = L1_IN,
        .out = L1_OUT,
    };
    diana_digital_conv2d_prepare(&tile, net_first_weights);
    code = diana_dma_wait();
    if (code != 0) {
        return code;
    }
    diana_digital_conv2d_start();
    code = diana_digital_conv2d_finish();
    if (code != 0) {
        return code;
    }

    return 0;
}

/* constant: net_second_weights[9280], uint8, aligned to 16: array images and factors of second */
/* second: conv2d C=16 8x8 -> K=16 8x8, kernel 3x3, stride 1x1
 * tile k=16, c=16, y=8, x=8 (1 in all); L1: input 2048 B, output 2048 B
 * already in L1: the input
 * stays in L1: the output
 * weight memory: 1152 B
 * predicted: 3106 cycles */
int32_t net_second(void)
{
    enum {
        L1_IN = 2048, L1_OUT = 0, /* byte offsets in L1 */
    };
    int32_t code;

    static const diana_analog_conv_t tile = {
        .k = 16,
        .c = 16,
        .iy = 8,
        .ix = 8,
        .oy = 8,
        .ox = 8,
        .fy = 3,
        .fx = 3,
        .stride = 1,
        .pad_top = 1,
        .pad_left = 1,
        .gain = 5,
        .shift = 4,
        .clip = DIANA_ANALOG_CLIP_SHORT,
        .in = L1_IN,
        .out = L1_OUT,
        .mode = 1,
    };
    diana_analog_conv2d_prepare(&tile, net_second_weights);
    diana_analog_conv2d_start();
    code = diana_analog_conv2d_finish();
    if (code != 0) {
        return code;
    }

    return 0;
}

/* sum: add 16x8x8
 * tile k=16, c=1, y=8, x=8 (1 in all); L1: input 4096 B, output 2048 B
 * already in L1: both operands
 * stays in L1: the output
 * predicted: 613 cycles */
int32_t net_sum(void)
{
    enum {
        L1_A = 2048, L1_B = 0, L1_OUT = 4096, /* byte offsets in L1 */
    };
    int32_t code;

    static const diana_add_t tile = {
        .elements = 2048,
        .shift = 1,
        .relu = 0,
        .a = L1_A,
        .b = L1_B,
        .out = L1_OUT,
    };
    diana_digital_add_prepare(&tile);
    diana_digital_add_start();
    code = diana_digital_add_finish();
    if (code != 0) {
        return code;
    }

    return 0;
}

/* constant: net_last_weights[320], uint8, aligned to 16: weights and biases of last */
/* last: conv2d C=16 8x8 -> K=8 8x8, kernel 1x1, stride 1x1
 * tile k=8, c=16, y=8, x=8 (1 in all); L1: input 2048 B, output 2048 B
 * already in L1: the input
 * weight memory: 320 B
 * predicted: 1083 cycles */
int32_t net_last(int8_t *out)
{
    enum {
        L1_IN = 4096, L1_OUT = 0, /* byte offsets in L1 */
    };
    int32_t code;

    static const diana_conv_t tile = {
        .k = 8,
        .c = 16,
        .iy = 8,
        .ix = 8,
        .oy = 8,
        .ox = 8,
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
    diana_digital_conv2d_prepare(&tile, net_last_weights);
    diana_digital_conv2d_start();
    code = diana_digital_conv2d_finish();
    if (code != 0) {
        return code;
    }
    static const diana_block_t out_block = {
        .channels = 8,
        .rows = 8,
        .bytes = 16,
        .l2_channel_stride = 128,
        .l2_row_stride = 16,
        .l1_channel_stride = 128,
        .l1_row_stride = 16,
    };
    diana_dma_out_start(out, L1_OUT, &out_block);
    code = diana_dma_wait();
    if (code != 0) {
        return code;
    }

    return 0;
}
