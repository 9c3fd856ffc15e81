/* Products of matrices of bytes; see cluster_product.h.
 *
 * The inner loops hold blocks of sums in registers: 4 rows by 3 columns take 7 loads, 12
 * multiplications and 12 additions for 12 MACs.  They are ordered such that no load or
 * multiplication stalls: three multiplications, then the three additions. */
#include "cluster_product.h"

/* The weights of columns k to k + 3; if they are stored as columns, only the first is used. */
typedef struct {
    const int8_t *at[4];
} weights_t;

CLUSTER_INLINE weights_t weights_of(const int8_t *weights, uint32_t pitch, uint32_t count, bool rows)
{
    weights_t result = {{weights, weights, weights, weights}};
    for (uint32_t j = 1; rows && j < count; j++) {
        result.at[j] = result.at[j - 1] + pitch;
    }
    return result;
}

#define WEIGHT(j, i) (rows ? (int32_t)w##j[i] : (int32_t)w0[j])
#define NEXT_WEIGHTS      \
    if (!rows) {          \
        w0 += pitch;      \
        CLUSTER_HOLD(w0);  \
    }
#define ROW3(v, n)                                        \
    {                                                     \
        int32_t t0 = (v) * u0, t1 = (v) * u1;             \
        int32_t t2 = (v) * u2;                            \
        if (!rows) {                                      \
            CLUSTER_HOLD3(t0, t1, t2);                     \
        }                                                 \
        s[n] += t0;                                       \
        s[(n) + 1] += t1;                                 \
        s[(n) + 2] += t2;                                 \
        CLUSTER_HOLD3(s[n], s[(n) + 1], s[(n) + 2]);       \
    }
#define STEP_4X3(i)                                                                    \
    {                                                                                  \
        const int32_t v0 = cluster_byte(x0, i, is_unsigned);                            \
        const int32_t u0 = WEIGHT(0, i), u1 = WEIGHT(1, i), u2 = WEIGHT(2, i);         \
        const int32_t v1 = cluster_byte(x1, i, is_unsigned);                            \
        NEXT_WEIGHTS                                                                   \
        ROW3(v0, 0)                                                                    \
        const int32_t v2 = cluster_byte(x2, i, is_unsigned);                            \
        ROW3(v1, 3)                                                                    \
        const int32_t v3 = cluster_byte(x3, i, is_unsigned);                            \
        ROW3(v2, 6)                                                                    \
        ROW3(v3, 9)                                                                    \
    }
#define MOVE_4(n)     \
    x0 += (n);        \
    x1 += (n);        \
    x2 += (n);        \
    x3 += (n);        \
    CLUSTER_HOLD(x0);  \
    CLUSTER_HOLD(x1);  \
    CLUSTER_HOLD(x2);  \
    CLUSTER_HOLD(x3);

CLUSTER_INLINE void dots_4x3(int32_t *s, const uint8_t *x, uint32_t step, const int8_t *weights,
                            uint32_t pitch, uint32_t length, bool is_unsigned, bool rows)
{
    const weights_t w = weights_of(weights, pitch, 3, rows);
    const int8_t *w0 = w.at[0], *w1 = w.at[1], *w2 = w.at[2];
    const uint8_t *x0 = x, *x1 = x0 + step, *x2 = x1 + step, *x3 = x2 + step;
    const uint8_t *const whole = x0 + (length & ~3u), *const end = x0 + length;
    while (x0 != whole) {
        STEP_4X3(0)
        STEP_4X3(1)
        STEP_4X3(2)
        STEP_4X3(3)
        MOVE_4(4)
        if (rows) {
            w0 += 4;
            w1 += 4;
            w2 += 4;
            CLUSTER_HOLD3(w0, w1, w2);
        }
    }
    while (x0 != end) {
        STEP_4X3(0)
        MOVE_4(1)
        if (rows) {
            w0 += 1;
            w1 += 1;
            w2 += 1;
            CLUSTER_HOLD3(w0, w1, w2);
        }
    }
}

/* Computes four rows of one column; used for the remaining columns. */
CLUSTER_INLINE void dots_4x1(int32_t *s, const uint8_t *x, uint32_t step, const int8_t *weights,
                            uint32_t pitch, uint32_t length, bool is_unsigned, bool rows)
{
    const int8_t *w0 = weights;
    const uint8_t *x0 = x, *x1 = x0 + step, *x2 = x1 + step, *x3 = x2 + step;
    const uint8_t *const end = x0 + length;
    while (x0 != end) {
        const int32_t u0 = w0[0];
        const int32_t t0 = u0 * cluster_byte(x0, 0, is_unsigned);
        const int32_t t1 = u0 * cluster_byte(x1, 0, is_unsigned);
        const int32_t t2 = u0 * cluster_byte(x2, 0, is_unsigned);
        const int32_t t3 = u0 * cluster_byte(x3, 0, is_unsigned);
        w0 += rows ? 1 : pitch;
        CLUSTER_HOLD(w0);
        MOVE_4(1)
        s[0] += t0;
        s[1] += t1;
        s[2] += t2;
        s[3] += t3;
    }
}

#define STEP_1X4(i)                                                                     \
    {                                                                                   \
        const int32_t v = cluster_byte(x, i, is_unsigned);                               \
        const int32_t u0 = WEIGHT(0, i), u1 = WEIGHT(1, i), u2 = WEIGHT(2, i);          \
        const int32_t u3 = WEIGHT(3, i);                                                \
        const int32_t t0 = v * u0, t1 = v * u1, t2 = v * u2, t3 = v * u3;               \
        NEXT_WEIGHTS                                                                    \
        s[0] += t0;                                                                     \
        s[1] += t1;                                                                     \
        s[2] += t2;                                                                     \
        s[3] += t3;                                                                     \
        CLUSTER_HOLD3(s[0], s[1], s[2]);                                                 \
        CLUSTER_HOLD(s[3]);                                                              \
    }

CLUSTER_INLINE void dots_1x4(int32_t *s, const uint8_t *x, const int8_t *weights, uint32_t pitch,
                            uint32_t length, bool is_unsigned, bool rows)
{
    const weights_t w = weights_of(weights, pitch, 4, rows);
    const int8_t *w0 = w.at[0], *w1 = w.at[1], *w2 = w.at[2], *w3 = w.at[3];
    const uint8_t *const whole = x + (length & ~3u), *const end = x + length;
    while (x != whole) {
        STEP_1X4(0)
        STEP_1X4(1)
        STEP_1X4(2)
        STEP_1X4(3)
        x += 4;
        CLUSTER_HOLD(x);
        if (rows) {
            w0 += 4;
            w1 += 4;
            w2 += 4;
            w3 += 4;
            CLUSTER_HOLD3(w0, w1, w2);
            CLUSTER_HOLD(w3);
        }
    }
    while (x != end) {
        STEP_1X4(0)
        x += 1;
        CLUSTER_HOLD(x);
        if (rows) {
            w0 += 1;
            w1 += 1;
            w2 += 1;
            w3 += 1;
            CLUSTER_HOLD3(w0, w1, w2);
            CLUSTER_HOLD(w3);
        }
    }
}

CLUSTER_INLINE void dots_1x1(int32_t *s, const uint8_t *x, const int8_t *weights, uint32_t pitch,
                            uint32_t length, bool is_unsigned, bool rows)
{
    const uint8_t *const end = x + length;
    while (x != end) {
        s[0] += cluster_byte(x, 0, is_unsigned) * weights[0];
        x += 1;
        weights += rows ? 1 : pitch;
        CLUSTER_HOLD(x);
        CLUSTER_HOLD(weights);
    }
}

/* Computes one block of sums over all taps. */
CLUSTER_INLINE void block(const cluster_product_t *p, uint32_t row, uint32_t column, uint32_t row_count,
                         uint32_t column_count, bool is_unsigned, bool rows)
{
    int32_t s[12];
    for (uint32_t j = 0; j < column_count; j++) {
        const int32_t start = p->bias != NULL ? p->bias[column + j] : 0;
        for (uint32_t i = 0; i < row_count; i++) {
            s[i * column_count + j] = start;
        }
    }
    const uint8_t *in = p->in + row * p->in_row;
    const int8_t *w = p->weights + (rows ? column * p->weights_pitch : column);
    const uint32_t step = p->in_row, pitch = p->weights_pitch;
    uint32_t y = 0, x = 0, at = p->start, end = p->length;
    /* One loop over taps, and over turns as in CLUSTER_TURNS: mostly there is one of each. */
    while (y < p->taps_y) {
        const uint8_t *const from = in + at;
        const int8_t *const with = w + (rows ? at : at * pitch);
        if (row_count == 4 && column_count == 3) {
            dots_4x3(s, from, step, with, pitch, end - at, is_unsigned, rows);
        } else if (row_count == 4) {
            dots_4x1(s, from, step, with, pitch, end - at, is_unsigned, rows);
        } else if (column_count == 4) {
            dots_1x4(s, from, with, pitch, end - at, is_unsigned, rows);
        } else {
            dots_1x1(s, from, with, pitch, end - at, is_unsigned, rows);
        }
        if (at != 0) {
            end = at;
            at = 0;
            continue;
        }
        at = p->start;
        end = p->length;
        in += p->in_x;
        w += p->weights_x;
        if (++x == p->taps_x) {
            x = 0;
            y++;
            in += p->in_y - p->taps_x * p->in_x;
            w += p->weights_y - p->taps_x * p->weights_x;
        }
    }
    int32_t sums[12]; /* in memory, whereas s is in registers */
    for (uint32_t i = 0; i < row_count * column_count; i++) {
        sums[i] = s[i];
    }
    cluster_product_store(p, sums, row, column, row_count, column_count);
}

CLUSTER_INLINE void product(const cluster_product_t *p, bool is_unsigned, bool rows)
{
    const uint32_t end = p->columns.end;
    uint32_t row = 0;
    for (; row + 4 <= p->rows; row += 4) {
        uint32_t column = p->columns.begin;
        for (; column + 3 <= end; column += 3) {
            block(p, row, column, 4, 3, is_unsigned, rows);
        }
        for (; column < end; column++) {
            block(p, row, column, 4, 1, is_unsigned, rows);
        }
    }
    for (; row < p->rows; row++) {
        uint32_t column = p->columns.begin;
        for (; column + 4 <= end; column += 4) {
            block(p, row, column, 1, 4, is_unsigned, rows);
        }
        for (; column < end; column++) {
            block(p, row, column, 1, 1, is_unsigned, rows);
        }
    }
}

void cluster_product_s8_rows(const cluster_product_t *what) { product(what, false, true); }

void cluster_product_u8_rows(const cluster_product_t *what) { product(what, true, true); }

void cluster_product_s8_columns(const cluster_product_t *what) { product(what, false, false); }

void cluster_product_u8_columns(const cluster_product_t *what) { product(what, true, false); }
