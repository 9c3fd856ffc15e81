/* cluster_depthwise for cores with SIMD: channels, four by four, are shared among groups of cores, and
 * rows among those of a group. */
#include "cluster_kernels.h"
#include "cluster_records.h"
#include "htvm_columns.h"

#define CHANNELS 4u

typedef struct {
    cluster_share_t channels, rows;
} part_t;

/* Returns the shares that take the least time: strips of rows cost about 8 times what the preparation
 * of the first one does. */
static part_t part_of(uint32_t c, uint32_t rows, uint32_t height, uint32_t core, uint32_t cores)
{
    const uint32_t fours = (c + CHANNELS - 1u) / CHANNELS;
    const uint32_t strips = (rows + height - 1u) / height;
    uint32_t size = 1, best = UINT32_MAX;
    for (uint32_t n = 1; n <= cores && (cores & (n - 1u)) == 0; n *= 2) {
        const uint32_t groups = cluster_divided(cores, n);
        const uint32_t each = cluster_divided(fours + groups - 1u, groups);
        const uint32_t cost = each * (8u * cluster_divided(strips + n - 1u, n) + 1u);
        if (cost < best) {
            best = cost;
            size = n;
        }
    }
    const uint32_t group = cluster_divided(core, size);
    part_t part = {cluster_share(fours, group, cluster_divided(cores, size)),
                   cluster_share(strips, core - group * size, size)};
    part.channels.begin *= CHANNELS;
    part.channels.end = CHANNELS * part.channels.end < c ? CHANNELS * part.channels.end : c;
    part.rows.begin *= height;
    part.rows.end = height * part.rows.end < rows ? height * part.rows.end : rows;
    return part;
}

void cluster_depthwise(const void *args, uint32_t core, uint32_t cores)
{
    const cluster_conv_t *const v = args;
    const part_t part = part_of(v->c, v->oy, v->stride_y == 1 ? 4u : 2u, core, cores);
    const uint32_t first = part.channels.begin;
    if (first >= part.channels.end || part.rows.begin >= part.rows.end) {
        return;
    }
    const htvm_columns_t columns = {
        .in = (const uint8_t *)v->in + first,
        .records = (const uint8_t *)v->weights + first * htvm_column_bytes(v->fy, v->fx),
        .out = (uint8_t *)v->out + first,
        .scratch = (uint8_t *)v->scratch + core * htvm_columns_scratch(v->fx, v->ox, v->stride_x),
        .c = part.channels.end - first,
        .iy = v->iy,
        .ix = v->ix,
        .ox = v->ox,
        .fy = v->fy,
        .fx = v->fx,
        .stride_y = v->stride_y,
        .stride_x = v->stride_x,
        .pad_top = v->pad_top,
        .pad_left = v->pad_left,
        .in_pixel = v->in_pitch,
        .out_pixel = v->out_pitch,
        .low = v->requant.low,
        .high = v->requant.high,
        .scaling = (v->flags & CLUSTER_WIDE) != 0 ? HTVM_QUADS_WIDE : HTVM_QUADS_NARROW,
        .in_unsigned = (v->flags & CLUSTER_IN_UNSIGNED) != 0,
    };
    htvm_columns(&columns, part.rows.begin, part.rows.end);
}
