/* Ethos-U: what the files of the model share.
 *
 * One operation after the other is executed, at once and whole; what may run at the same time on
 * the NPU is found by comparing what operations access (ethos_u_order.c). */
#ifndef ETHOS_U_MODEL_H
#define ETHOS_U_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ethos_u_registers.h"
#include "htvm_ethos_u.h"

enum {
    ETHOS_U_SHRAM_REGION = 0x100, /* the shared buffer among regions; ETHOS_U_REGION_SHRAM */
    ETHOS_U_TABLE_BYTES = 2048,   /* of all tables, the end of the shared buffer */
    ETHOS_U_TABLE_SLOT = 256,     /* between the first bytes of two tables */
    ETHOS_U_CHUNK = 256,          /* channels that are computed together */
    ETHOS_U_KERNELS = 2,          /* operations that the NPU runs at the same time at most */
    ETHOS_U_TRANSFERS = 2,        /* likewise; the U55 one */
    ETHOS_U_BRICK = 16,           /* channels beside each other of the format NHCWB16 */
    ETHOS_U_SCALE_ENTRY = 10,     /* bytes of a channel's bias, multiplier and shift */
};

/* Bytes of a region, or of the shared buffer. */
typedef struct {
    uint32_t region;
    uint64_t first, bytes;
} ethos_u_range_t;

/* A feature map.  Its rows and columns lie in four tiles: columns from width0 on in tiles 1 and 3,
 * rows from height0 (right: height1) on in tiles 2 and 3. */
typedef struct {
    const char *name;
    uint8_t *memory; /* of its region */
    uint32_t region;
    uint64_t base[4];
    int64_t stride_x, stride_y, stride_c; /* bytes */
    uint32_t width0, height0, height1;
    uint32_t height, width, depth; /* what is accessed */
    uint32_t element;              /* bytes: 1, 2, 4 */
    bool is_signed, bricks;        /* bricks: NHCWB16 */
    int32_t zero_point;
} ethos_u_map_t;

/* Part of a feature map: from the first rows, columns and channels to those behind the last. */
typedef struct {
    uint32_t y0, y1, x0, x1, c0, c1;
} ethos_u_box_t;

/* How an operation slides over its IFM. */
typedef struct {
    uint32_t kernel_h, kernel_w, stride_y, stride_x, dilation_y, dilation_x, top, left;
    uint32_t height, width; /* of the IFM as the kernel sees it: after upscaling */
    uint32_t upscale;       /* 0 none, 1 nearest, 2 zeros between */
    bool padded;            /* on any side */
} ethos_u_window_t;

/* What an operation accesses, as long as it may still run. */
typedef struct {
    uint32_t command; /* index of its word */
    uint32_t maps;
    ethos_u_map_t map[3]; /* the OFM first, then what is read */
    uint32_t ranges;
    ethos_u_range_t range[3]; /* read: weights, scales, tables */
    ethos_u_window_t window;  /* of kernels: from the OFM to the IFM */
    uint32_t block_h, block_w, block_d;
    uint32_t ifm_block; /* channels of the IFM read together; 0: those of the OFM's block */
    bool takes_table_area;
    uint32_t broadcast; /* of the last map */
} ethos_u_access_t;

typedef struct {
    uint32_t command;
    ethos_u_range_t from, to;
} ethos_u_transfer_t;

typedef struct {
    const htvm_ethos_u_call_t *call;
    htvm_ethos_u_result_t *result;
    htvm_ethos_u_status_t status;
    const char *operation; /* name of the one that runs */
    uint32_t command;      /* index of its word in the stream */
    uint64_t work;

    uint32_t product, macs, shram; /* bytes of the shared buffer */
    uint32_t short_value[256];     /* registers 0x100 to 0x1ff */
    uint32_t long_value[256];
    uint16_t long_parameter[256];
    uint8_t short_known[256], long_known[256];

    uint8_t table[ETHOS_U_TABLE_BYTES];
    uint8_t table_written[ETHOS_U_TABLE_BYTES / 8];
    uint8_t *written[HTVM_ETHOS_U_REGIONS]; /* bits; NULL: not looked after */

    uint32_t kernels, transfers; /* that may still run, the oldest first */
    ethos_u_access_t kernel[ETHOS_U_KERNELS];
    ethos_u_transfer_t transfer[ETHOS_U_TRANSFERS];

    uint8_t *scratch; /* 16-byte aligned */
    size_t scratch_bytes;
} ethos_u_t;

/* ---- complaints: ethos_u_complain.c ---- */

/* Keeps a complaint about the running operation if it is the first; false.  The format knows %s,
 * %u (uint32_t), %d (int32_t), %l (uint64_t) and %x (uint64_t, as 0x...). */
bool ethos_u_complain(ethos_u_t *npu, htvm_ethos_u_status_t status, const char *format, ...);

/* ---- registers: ethos_u_registers.c ---- */

const char *ethos_u_short_name(uint32_t code); /* NULL: no register */
const char *ethos_u_long_name(uint32_t code);
bool ethos_u_set_short(ethos_u_t *npu, uint32_t code, uint32_t value);
bool ethos_u_set_long(ethos_u_t *npu, uint32_t code, uint32_t parameter, uint32_t value);
/* A register's value; a complaint if it was never set, which `ethos_u_failed` tells. */
uint32_t ethos_u_get(ethos_u_t *npu, uint32_t code);
/* One more than the register. */
uint32_t ethos_u_get_size(ethos_u_t *npu, uint32_t code);
uint64_t ethos_u_get_address(ethos_u_t *npu, uint32_t code);
int64_t ethos_u_get_stride(ethos_u_t *npu, uint32_t code);
uint32_t ethos_u_get_long(ethos_u_t *npu, uint32_t code, uint32_t *parameter);
static inline bool ethos_u_failed(const ethos_u_t *npu) { return npu->status != HTVM_ETHOS_U_DONE; }

/* ---- feature maps: ethos_u_map.c ---- */

/* The feature map `kind` (ETHOS_U_IFM, ETHOS_U_OFM, ETHOS_U_IFM2) of which so much is accessed;
 * false after a complaint: it leaves its region, or its numbers have no meaning. */
bool ethos_u_map(ethos_u_t *npu, uint32_t kind, uint32_t height, uint32_t width, uint32_t depth,
                 ethos_u_map_t *map);
/* From the region's first byte to an element. */
uint64_t ethos_u_offset(const ethos_u_map_t *map, uint32_t y, uint32_t x, uint32_t c);
/* Channels c to c + count of a pixel, less the zero point. */
void ethos_u_load(const ethos_u_map_t *map, uint32_t y, uint32_t x, uint32_t c, uint32_t count,
                  int32_t *out);
/* The same of 8-bit maps. */
void ethos_u_load_narrow(const ethos_u_map_t *map, uint32_t y, uint32_t x, uint32_t c,
                         uint32_t count, int16_t *out);
/* Calls `visit` with every run of bytes of a part, until it returns false; whether it never did. */
typedef bool (*ethos_u_visit_t)(void *context, uint64_t first, uint64_t bytes);
bool ethos_u_runs(const ethos_u_map_t *map, const ethos_u_box_t *box, ethos_u_visit_t visit,
                  void *context);
static inline ethos_u_box_t ethos_u_whole(const ethos_u_map_t *map)
{
    return (ethos_u_box_t){0, map->height, 0, map->width, 0, map->depth};
}
/* Bytes of a region; a complaint and NULL unless all of them are there. */
uint8_t *ethos_u_memory(ethos_u_t *npu, const char *what, uint32_t region, uint64_t first,
                        uint64_t bytes);

/* ---- windows: ethos_u_window.c ---- */

/* How the operation slides: a complaint and false if a kernel is higher than `largest`, or has more
 * elements than its square; Vela's limits, as no register has one. */
bool ethos_u_window(ethos_u_t *npu, uint32_t largest, ethos_u_window_t *window);
/* The IFM's row and column at a kernel's place, and whether there is one; outside and between
 * upscaled elements there is none: `outside` tells which. */
bool ethos_u_place(const ethos_u_window_t *window, uint32_t y, uint32_t x, uint32_t kernel_y,
                   uint32_t kernel_x, uint32_t *ifm_y, uint32_t *ifm_x, bool *outside);
/* The part of the IFM that a part of the OFM needs, channels aside. */
ethos_u_box_t ethos_u_needed(const ethos_u_window_t *window, const ethos_u_map_t *ifm,
                             const ethos_u_box_t *box);

/* ---- bytes written: ethos_u_written.c ---- */

bool ethos_u_written_begin(ethos_u_t *npu);
bool ethos_u_need_range(ethos_u_t *npu, const char *what, const ethos_u_range_t *range);
bool ethos_u_need_map(ethos_u_t *npu, const ethos_u_map_t *map);
/* Rows and columns that the window steps over are not needed. */
bool ethos_u_need_window(ethos_u_t *npu, const ethos_u_map_t *ifm, const ethos_u_window_t *window,
                         uint32_t ofm_height, uint32_t ofm_width);
/* A copy has values where its source has. */
void ethos_u_wrote_copy(ethos_u_t *npu, const ethos_u_range_t *from, const ethos_u_range_t *to);
void ethos_u_wrote_map(ethos_u_t *npu, const ethos_u_map_t *map);

/* ---- order of operations: ethos_u_order.c ---- */

/* Registers a kernel or a transfer; false after a complaint: it accesses what an earlier one may
 * still be accessing. */
bool ethos_u_begin_kernel(ethos_u_t *npu, const ethos_u_access_t *access);
bool ethos_u_begin_transfer(ethos_u_t *npu, const ethos_u_transfer_t *transfer);
void ethos_u_wait_kernels(ethos_u_t *npu, uint32_t left);
void ethos_u_wait_transfers(ethos_u_t *npu, uint32_t left);

/* ---- arithmetic: ethos_u_scale.c, ethos_u_curve.c ---- */

/* value * multiplier >> shift (at most 63), rounded, limited to 64 bits. */
int64_t ethos_u_scale(int64_t value, uint32_t multiplier, uint32_t shift, uint32_t rounding);
/* tanh or sigmoid of value / (3 * 4096), times 32768; assumed to be TensorFlow Lite's. */
int32_t ethos_u_curve(int64_t value, bool tanh);

/* ---- results: ethos_u_output.c ---- */

typedef struct {
    ethos_u_map_t map;
    int64_t low, high;       /* of results, before a table, after tanh and sigmoid */
    uint32_t function;       /* 0, ETHOS_U_TANH, ETHOS_U_SIGMOID, ETHOS_U_TABLE */
    const uint8_t *table;    /* of the function ETHOS_U_TABLE */
    int32_t table_bias;      /* added to a result: index into it */
    bool interpolated;       /* a table of base and slope */
    ethos_u_range_t in_shram; /* the table's bytes */
    uint32_t multiplier, shift, rounding; /* of the global scale */
    bool global_scale;
} ethos_u_output_t;

/* Reads the OFM's registers; `needs_scale`: whether OFM_SCALE is used in any case. */
bool ethos_u_output(ethos_u_t *npu, bool needs_scale, ethos_u_output_t *output);
/* Zero point, limits, table: channels c to c + count of a pixel. */
void ethos_u_store(const ethos_u_output_t *output, uint32_t y, uint32_t x, uint32_t c,
                   uint32_t count, const int64_t *values);
static inline int64_t ethos_u_global_scale(const ethos_u_output_t *output, int64_t value)
{
    return ethos_u_scale(value, output->multiplier, output->shift, output->rounding);
}
/* Blocks, dependencies and what else a kernel's registers say; begins it and checks its reads. */
bool ethos_u_start(ethos_u_t *npu, ethos_u_access_t *access, const ethos_u_output_t *output);
/* Counts work; false after a complaint: the call's limit. */
bool ethos_u_work(ethos_u_t *npu, uint64_t elements, uint64_t each);

/* ---- weights: ethos_u_weights.c, ethos_u_weight_order.c ---- */

/* A weight stream while it is read. */
typedef struct {
    const uint8_t *bytes;
    uint64_t bits, at; /* bits there are, and of the next one */
    bool ended;        /* it was too short */
    bool wide;         /* a weight did not fit into nine bits */
    uint32_t palette[33], palette_size, palette_bits, offset;
    uint32_t count, taken; /* weights of the slice, and those that were taken */
    bool runs, fresh, truncated, plain, leading;
    uint32_t zeros; /* due before the next weight */
    struct ethos_u_rice {
        uint32_t want, width, carry, parsed, have, waiting;
        uint32_t quotient[12];
        uint32_t value[64]; /* by their number, modulo 64 */
    } weight, run;
} ethos_u_stream_t;

void ethos_u_stream(ethos_u_stream_t *stream, const uint8_t *bytes, uint64_t count);
/* The next weights; false if the stream ends before. */
bool ethos_u_next_weights(ethos_u_stream_t *stream, int16_t *out, uint32_t count);

/* What a weight stream is made for. */
typedef struct {
    uint32_t kernel_h, kernel_w, ifm_depth; /* ifm_depth 1 of depthwise */
    uint32_t ofm_depth, block_depth, micro; /* micro: channels of an OFM micro-block */
    uint32_t sub_h, sub_w;                  /* largest sub-kernel */
    bool depthwise, part_kernel, wide_ifm;  /* wide: 16 bits */
} ethos_u_layout_t;

/* Channels of the IFM that are read together. */
static inline uint32_t ethos_u_ifm_block(const ethos_u_layout_t *layout)
{
    return layout->part_kernel || layout->wide_ifm ? 16 : 32;
}

/* Reads the weights of the block of OFM channels from `channel` on, and keeps those of `count`
 * channels from `first` on: [channel][kernel row][column][IFM channel], or if depthwise
 * [kernel row][column][channel].  False if the stream ends before. */
bool ethos_u_read_block(ethos_u_stream_t *stream, const ethos_u_layout_t *layout, uint32_t channel,
                        uint32_t first, uint32_t count, int16_t *out);

/* ---- operations ---- */

bool ethos_u_convolve(ethos_u_t *npu, bool depthwise);
bool ethos_u_pool(ethos_u_t *npu, uint32_t kind);
bool ethos_u_elementwise(ethos_u_t *npu, uint32_t kind);
bool ethos_u_dma(ethos_u_t *npu);
/* Executes a command stream up to its STOP. */
bool ethos_u_execute(ethos_u_t *npu, const uint8_t *words, uint32_t count);

static inline uint32_t ethos_u_read_word(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static inline uint32_t ethos_u_min(uint32_t a, uint32_t b) { return a < b ? a : b; }

#endif
