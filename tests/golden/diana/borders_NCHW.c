/* x: NCHW to the accelerator's layout, shape (5, 3, 23), 480 B.
 * Four columns make a word, the first in its highest byte; rows are padded with zeros. */
int32_t net_x_to_core(const int8_t *in, int8_t *out)
{
    uint8_t *q = (uint8_t *)out;
    const uint8_t *p = (const uint8_t *)in;
    for (uint32_t y = 0; y < 15; ++y) {
        diana_put_word(q, p[0], p[1], p[2], p[3]);
        diana_put_word(q + 4, p[4], p[5], p[6], p[7]);
        diana_put_word(q + 8, p[8], p[9], p[10], p[11]);
        diana_put_word(q + 12, p[12], p[13], p[14], p[15]);
        diana_put_word(q + 16, p[16], p[17], p[18], p[19]);
        p += 20;
        q += 20;
        diana_put_word(q, p[0], p[1], p[2], 0);
        p += 3;
        q += 4;
        __builtin_memset(__builtin_assume_aligned(q, 4), 0, 8); /* padding of the row */
        q += 8;
    }
    return 0;
}

/* z: NCHW to the accelerator's layout, shape (1, 3, 8), 48 B.
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

/* y: from the accelerator's layout to NCHW, shape (6, 3, 23), 576 B.
 * A word holds four columns, the first in its highest byte. */
int32_t net_y_from_core(const int8_t *in, int8_t *out)
{
    const uint8_t *q = (const uint8_t *)in;
    uint8_t *p = (uint8_t *)out;
    for (uint32_t y = 0; y < 18; ++y) {
        diana_get_word(q, p, 1, 4);
        diana_get_word(q + 4, p + 4, 1, 4);
        diana_get_word(q + 8, p + 8, 1, 4);
        diana_get_word(q + 12, p + 12, 1, 4);
        diana_get_word(q + 16, p + 16, 1, 4);
        p += 20;
        q += 20;
        diana_get_word(q, p, 1, 3);
        p += 3;
        q += 4;
        q += 8; /* padding of the row */
    }
    return 0;
}

/* w: from the accelerator's layout to NCHW, shape (6, 3, 8), 288 B.
 * A word holds four columns, the first in its highest byte. */
int32_t net_w_from_core(const int8_t *in, int8_t *out)
{
    const uint8_t *q = (const uint8_t *)in;
    uint8_t *p = (uint8_t *)out;
    for (uint32_t y = 0; y < 18; ++y) {
        diana_get_word(q, p, 1, 4);
        diana_get_word(q + 4, p + 4, 1, 4);
        p += 8;
        q += 8;
        q += 8; /* padding of the row */
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
