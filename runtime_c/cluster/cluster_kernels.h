/* Kernels that all compute cores of a cluster execute together.
 *
 * Each is a cluster_kernel_t for cluster_run(): it takes one of the structs below, computes
 * one tile, and shares the rows among the cores (or the columns, if there are few rows).  All
 * pointers go into L1; matrices are row by row, with a pitch in bytes from one row to the next, so
 * that a tile may be part of a larger matrix.  Operands and results do not overlap, unless a comment
 * says that they may.
 *
 * A requantization is clip((acc * mul + add) >> shift, low, high), shifts round down.  Data are
 * int8; flags say where an operand or a result is uint8.
 *
 * There are two sets of kernels: in plain C, and for cores with SIMD.  The latter have weights in
 * records (simd/cluster_records.h) that include bias and requantization, so that `bias` and the first
 * three fields and the arrays of `requant` are not used; they need `scratch`, and read up to 3 bytes
 * behind operands.
 */
#ifndef CLUSTER_KERNELS_H
#define CLUSTER_KERNELS_H

#include <stdint.h>

#define CLUSTER_IN_UNSIGNED 1u     /* the (first) operand is uint8 */
#define CLUSTER_OUT_UNSIGNED 2u    /* the result is uint8 */
#define CLUSTER_WIDE 4u            /* acc * mul (+ add) may exceed 32 bits; norms of any weights */
#define CLUSTER_PER_CHANNEL 8u     /* mul, add and shift are arrays, one entry per column of the result */
#define CLUSTER_B_ROWS 16u         /* matmul: the second operand has the rows of C, not those of K */
#define CLUSTER_OUT_TRANSPOSED 32u /* gemm: the result has K rows */
#define CLUSTER_MULTIPLY 64u       /* combine: the product instead of the sum */
#define CLUSTER_LONG 128u          /* norms that divide: weights of 17 to 23 bits */

typedef struct {
    int32_t mul, add;
    uint32_t shift;
    int32_t low, high;
    /* with CLUSTER_PER_CHANNEL instead of the first three */
    const int32_t *muls, *adds;
    const uint8_t *shifts;
} cluster_requant_t;

/* out[m][k] = table[requant(sum over c of in[m][c] * weights[k][c] + bias[k])]; without a table,
 * the value itself.  weights are k rows of c bytes, without gaps.  bias may be NULL. */
typedef struct {
    const void *in;
    const int8_t *weights;
    const int32_t *bias;
    void *out;
    const uint8_t *table; /* 256 bytes, or NULL */
    uint32_t rows, k, c;
    uint32_t in_pitch, out_pitch; /* transposed: out_pitch from one k to the next */
    uint32_t flags;
    cluster_requant_t requant;
} cluster_gemm_t;

/* out[b][m][k] = requant(sum over c of a[b][m][c] * b'), where b' is second[b][k][c] with
 * CLUSTER_B_ROWS, else second[b][c][k].  There are no gaps between rows or matrices. */
typedef struct {
    const void *a;
    const int8_t *second;
    void *out;
    uint32_t batch, rows, k, c;
    uint32_t flags;
    cluster_requant_t requant;
    void *scratch;    /* SIMD: htvm_quad_bytes() for each working core, on a word */
    uint32_t workers; /* SIMD: cores that work, which is a power of two; 0: all */
} cluster_matmul_t;

/* Attention of each head's queries over its `cached` keys and values, and its own last ones unless
 * these are NULL (byoc_dory/layers/attention.py has the formulas).  Heads lie one after another,
 * rows have `size` bytes, a multiple of 4.  Only for cores with SIMD. */
typedef struct {
    const int8_t *keys, *values, *query;
    const int8_t *mask; /* a row of positions for all queries, or `masks` rows, one for each */
    const int8_t *key, *value;
    void *out;
    /* Masked score of scores -128 to 127 for a mask of 0, and of -128; for other masks the functions
     * of scores, of masks and (512 entries) of their sums. */
    const int8_t *tables;
    const int8_t *after;          /* weight of each result of the softmax, 256 entries */
    const uint32_t *exponentials; /* 256 entries, 0 from `distances` on, and none larger than one */
    uint32_t distances, rise;     /* before it shifted left by `rise` */
    uint32_t heads, queries, cached, size, masks, levels;
    int32_t mul, add; /* of scores */
    uint32_t shift;
    cluster_requant_t requant;
    void *scratch;    /* cluster_attention_scratch() bytes for each working core, on a word */
    uint32_t workers; /* as for products */
} cluster_attention_t;

/* out[i] = requant(sum of all in[n][i]); each operand has `elements` bytes. */
#define CLUSTER_MOST_OPERANDS 8u
typedef struct {
    const void *in[CLUSTER_MOST_OPERANDS];
    void *out;
    uint32_t operands, elements;
    uint32_t flags; /* CLUSTER_IN_UNSIGNED is for all operands */
    cluster_requant_t requant;
    const uint8_t *table; /* SIMD: as in htvm_add.h, or NULL */
} cluster_add_t;

/* out[i] = requant(table[in[i]] + table'[in'[i]]), or their product; without a table, the operand
 * itself.  All int8; results of `requant` must fit 32 bits before they are limited. */
typedef struct {
    const int8_t *in[2];
    int8_t *out;
    const int8_t *tables[2]; /* 256 bytes each, by the operand's byte, or NULL */
    uint32_t elements;
    uint32_t flags;
    cluster_requant_t requant;
} cluster_combine_t;

/* out[i] = table[in[i]]; may be in place. */
typedef struct {
    const void *in;
    void *out;
    const uint8_t *table; /* 256 bytes */
    uint32_t elements;
} cluster_map_t;

/* out[y][x][c] = the mean of channel c of each window of fy rows of fx pixels, rounded half away from
 * zero; `in` has rows of ix pixels, and nothing is outside.  reciprocal: 2^32 / (fy * fx), rounded up,
 * for windows of 2 to 4096 pixels.  Only for cores with SIMD; they read up to 3 bytes behind `in`. */
typedef struct {
    const int8_t *in;
    int8_t *out;
    uint32_t channels, ix, oy, ox, fy, fx;
    uint32_t stride_y, stride_x;
    uint32_t reciprocal;
} cluster_average_t;

/* Functions of rows of n bytes without gaps; byoc_dory/layers/rowwise.py has the formulas. */

/* TableSoftmax: out (uint8) = e * (levels - 1) / sum(e), e = exponentials[max - in]. */
typedef struct {
    const void *in;
    void *out;
    const uint32_t *exponentials; /* 256 entries */
    uint32_t rows, n, levels;
    uint32_t flags;
} cluster_table_softmax_t;

/* ItaSoftmax; out is uint8 (values up to 255) or, with small numerators, may be read as int8. */
typedef struct {
    const void *in;
    void *out;
    uint32_t rows, n;
    uint32_t group, step_bits, numerator;
    uint32_t flags;
} cluster_ita_softmax_t;

/* LayerNorm, RmsNorm (bias NULL, no mean) and AffineNorm. */
typedef struct {
    const void *in;
    void *out;
    const int32_t *weight, *bias; /* n entries */
    uint32_t rows, n;
    uint32_t shift;
    int32_t mul; /* AffineNorm with CLUSTER_WIDE; otherwise weight and bias are multiplied by it */
    uint32_t flags;
} cluster_norm_t;

/* Convolution in NHWC: `in` is a tile of iy rows of ix columns of c channels, of which pad_top rows
 * before it, pad_left columns beside it, and whatever lies behind it, are zeros.
 * weights [k][fy][fx][c]; depthwise [fy][fx][c], k == c. */
typedef struct {
    const void *in;
    const int8_t *weights;
    const int32_t *bias;
    void *out;
    uint32_t k, c, iy, ix, oy, ox, fy, fx;
    uint32_t stride_y, stride_x, pad_top, pad_left;
    uint32_t in_pitch;   /* from one column to the next, at least c */
    uint32_t out_pitch;  /* from one column to the next, at least k */
    uint32_t flags;
    cluster_requant_t requant;
    void *scratch;    /* SIMD: cluster_*_scratch() bytes for each working core, on a word */
    uint32_t workers; /* SIMD: as for products */
    uint32_t windows; /* SIMD, not depthwise: windows that scratch memory has room for; 0: as many as
                       * cluster_conv2d_windows() says */
} cluster_conv_t;

/* out[c][r] = in[r][c]: rows of `columns` bytes become columns of `rows`; no gaps. */
typedef struct {
    const void *in;
    void *out;
    uint32_t rows, columns;
} cluster_transpose_t;

void cluster_gemm(const void *args, uint32_t core, uint32_t cores);
void cluster_matmul(const void *args, uint32_t core, uint32_t cores);
void cluster_attention(const void *args, uint32_t core, uint32_t cores);
void cluster_add(const void *args, uint32_t core, uint32_t cores);
void cluster_combine(const void *args, uint32_t core, uint32_t cores);
void cluster_average(const void *args, uint32_t core, uint32_t cores);
void cluster_map(const void *args, uint32_t core, uint32_t cores);
void cluster_table_softmax(const void *args, uint32_t core, uint32_t cores);
void cluster_ita_softmax(const void *args, uint32_t core, uint32_t cores);
void cluster_layer_norm(const void *args, uint32_t core, uint32_t cores);
void cluster_rms_norm(const void *args, uint32_t core, uint32_t cores);
void cluster_affine_norm(const void *args, uint32_t core, uint32_t cores);
void cluster_conv2d(const void *args, uint32_t core, uint32_t cores);
void cluster_depthwise(const void *args, uint32_t core, uint32_t cores);
void cluster_transpose(const void *args, uint32_t core, uint32_t cores);

#endif
