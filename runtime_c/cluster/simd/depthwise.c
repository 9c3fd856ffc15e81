/* cluster_depthwise for cores with SIMD: channels, four by four, are shared among groups of cores, and
 * rows among those of a group. */
#include "cluster_kernels.h"
#include "cluster_records.h"
#include "cluster_split.h"
#include "htvm_channels.h"

/* Whether a map may be one that htvm_patches() keeps in registers, so that its rows are not shared. */
static inline bool is_whole(const cluster_conv_t *v)
{
    return v->stride_y == 2 && v->oy == 3 && v->iy == 6 && v->stride_x == 2 && v->fy == 3 &&
           v->fx == 3 && v->ox == 3 && v->ix == 6 && v->pad_top <= 1 && v->pad_left == v->pad_top;
}

void cluster_depthwise(const void *args, uint32_t core, uint32_t cores)
{
    const cluster_conv_t *const v = args;
    if (v->workers != 0) {
        cores = v->workers;
    }
    if (core >= cores) {
        return;
    }
    const uint32_t log = v->stride_y == 1 ? 2u : 1u; /* of the rows of a strip */
    const bool whole = is_whole(v);
    const uint32_t strips = whole ? 1 : (v->oy + (1u << log) - 1u) >> log;
    /* Cycles of a strip of four channels, and of what comes once for them. */
    const uint32_t strip = log == 2 ? 124u * v->ox + 100u : 110u * v->ox + 60u;
    const uint32_t once = log == 2 ? 250u : 130u;
    const cluster_work_t work = {cluster_words(v->c), strips, strip, strip * strips, once, 0};
    const cluster_part_t part = cluster_split(&work, core, cores);
    const cluster_share_t channels = cluster_in_fours(part.items, v->c);
    const uint32_t first = channels.begin, end = whole ? 3 : part.blocks.end << log;
    if (first >= channels.end) {
        return;
    }
    const htvm_columns_t columns = {
        .in = (const uint8_t *)v->in + first,
        .records = (const uint8_t *)v->weights + first * htvm_column_bytes(v->fy, v->fx),
        .out = (uint8_t *)v->out + first,
        .scratch = (uint8_t *)v->scratch + core * htvm_columns_scratch(v->fx, v->ox, v->stride_x),
        .c = channels.end - first,
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
    htvm_columns(&columns, part.blocks.begin << log, end < v->oy ? end : v->oy);
}
