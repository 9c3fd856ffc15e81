/* x: NHWC to the accelerator's layout, shape (5, 3, 23), 480 B.
 * Four columns make a word, the first in its highest byte; rows are padded with zeros. */
int32_t net_x_to_core(const int8_t *in, int8_t *out)
{
    uint8_t *q = (uint8_t *)out;
    for (uint32_t c = 0; c < 5; ++c) {
        const uint8_t *p = (const uint8_t *)in + c;
        for (uint32_t y = 0; y < 3; ++y) {
            diana_put_word(q, p[0], p[5], p[10], p[15]);
            diana_put_word(q + 4, p[20], p[25], p[30], p[35]);
            diana_put_word(q + 8, p[40], p[45], p[50], p[55]);
            diana_put_word(q + 12, p[60], p[65], p[70], p[75]);
            diana_put_word(q + 16, p[80], p[85], p[90], p[95]);
            p += 100;
            q += 20;
            diana_put_word(q, p[0], p[5], p[10], 0);
            p += 15;
            q += 4;
            __builtin_memset(__builtin_assume_aligned(q, 4), 0, 8); /* padding of the row */
            q += 8;
        }
    }
    return 0;
}

/* z: NHWC to the accelerator's layout, shape (1, 3, 8), 48 B.
 * Four columns make a word, the first in its highest byte; rows are padded with zeros. */
int32_t net_z_to_core(const int8_t *in, int8_t *out)
{
    uint8_t *q = (uint8_t *)out;
    const uint8_t *p = (const uint8_t *)in;
    for (uint32_t y = 0; y < 3; ++y) {
        diana_put_word(q, p[0], p[1], p[2], p[3]);
        diana_put_word(q + 4, p[4], p[5], p[6], p[7]);
        p += 8;
        q += 8;
        __builtin_memset(__builtin_assume_aligned(q, 4), 0, 8); /* padding of the row */
        q += 8;
    }
    return 0;
}

/* v: C to the accelerator's layout, shape (9,), 16 B.
 * Four columns make a word, the first in its highest byte; rows are padded with zeros. */
int32_t net_v_to_core(const int8_t *in, int8_t *out)
{
    uint8_t *q = (uint8_t *)out;
    const uint8_t *p = (const uint8_t *)in;
    diana_put_word(q, p[0], p[1], p[2], p[3]);
    diana_put_word(q + 4, p[4], p[5], p[6], p[7]);
    p += 8;
    q += 8;
    diana_put_word(q, p[0], 0, 0, 0);
    q += 4;
    __builtin_memset(__builtin_assume_aligned(q, 4), 0, 4); /* padding of the row */
    return 0;
}

/* y: from the accelerator's layout to NHWC, shape (6, 3, 23), 576 B.
 * A word holds four columns, the first in its highest byte. */
int32_t net_y_from_core(const int8_t *in, int8_t *out)
{
    const uint8_t *q = (const uint8_t *)in;
    for (uint32_t c = 0; c < 6; ++c) {
        uint8_t *p = (uint8_t *)out + c;
        for (uint32_t y = 0; y < 3; ++y) {
            diana_get_word(q, p, 6, 4);
            diana_get_word(q + 4, p + 24, 6, 4);
            diana_get_word(q + 8, p + 48, 6, 4);
            diana_get_word(q + 12, p + 72, 6, 4);
            diana_get_word(q + 16, p + 96, 6, 4);
            p += 120;
            q += 20;
            diana_get_word(q, p, 6, 3);
            p += 18;
            q += 4;
            q += 8; /* padding of the row */
        }
    }
    return 0;
}

/* w: from the accelerator's layout to NHWC, shape (6, 3, 8), 288 B.
 * A word holds four columns, the first in its highest byte. */
int32_t net_w_from_core(const int8_t *in, int8_t *out)
{
    const uint8_t *q = (const uint8_t *)in;
    for (uint32_t c = 0; c < 6; ++c) {
        uint8_t *p = (uint8_t *)out + c;
        for (uint32_t y = 0; y < 3; ++y) {
            diana_get_word(q, p, 6, 4);
            diana_get_word(q + 4, p + 24, 6, 4);
            p += 48;
            q += 8;
            q += 8; /* padding of the row */
        }
    }
    return 0;
}

/* u: from the accelerator's layout to C, shape (5,), 16 B.
 * A word holds four columns, the first in its highest byte. */
int32_t net_u_from_core(const int8_t *in, int8_t *out)
{
    const uint8_t *q = (const uint8_t *)in;
    uint8_t *p = (uint8_t *)out;
    diana_get_word(q, p, 1, 4);
    p += 4;
    q += 4;
    diana_get_word(q, p, 1, 1);
    return 0;
}
