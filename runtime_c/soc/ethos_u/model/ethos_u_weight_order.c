/* Ethos-U: the order in which a stream carries weights.
 *
 * Block of the OFM's depth > block of the IFM's depth > sub-kernel > micro-block of the IFM (if the
 * kernel is split first) > micro-block of the OFM > element of the sub-kernel > micro-block of the
 * IFM (otherwise) > channel of the OFM > channel of the IFM.  What has no weight is a zero. */
#include "ethos_u_model.h"

enum { IFM_MICRO = 8, LARGEST_BRICK = 64 };

/* Where in the loops above the reader is. */
typedef struct {
    const ethos_u_layout_t *layout;
    ethos_u_stream_t *stream;
    uint32_t channel, block;       /* first channel of the OFM's block, and their number */
    uint32_t first, count;         /* channels to keep */
    uint32_t ifm, ifm_count;       /* the block of the IFM's depth */
    uint32_t y, x, height, width;  /* the sub-kernel */
    uint32_t elements;             /* of the sub-kernel, with those that fill up */
    int16_t *out;
} reader_t;

/* Keeps the weights of a micro-block: channels of the OFM from `ofm`, of the IFM from `ifm` on. */
static void place(const reader_t *reader, uint32_t element, uint32_t ofm, uint32_t ifm,
                  const int16_t *brick)
{
    const ethos_u_layout_t *const layout = reader->layout;
    const uint32_t inner = layout->depthwise ? 1 : IFM_MICRO;
    const uint32_t end = ethos_u_min(layout->ofm_depth, reader->first + reader->count);
    if (element >= reader->height * reader->width || ifm >= layout->ifm_depth) {
        return;
    }
    const uint32_t y = reader->y + element / reader->width;
    const uint32_t x = reader->x + element % reader->width;
    const size_t tap = (size_t)y * layout->kernel_w + x;
    const uint32_t run = ethos_u_min(inner, layout->ifm_depth - ifm);
    for (uint32_t o = 0; o < layout->micro; ++o) {
        const uint32_t c = ofm + o;
        if (c < reader->first || c >= end) {
            continue;
        }
        const size_t taps = (size_t)layout->kernel_h * layout->kernel_w;
        int16_t *const at = layout->depthwise
                                ? &reader->out[tap * reader->count + (c - reader->first)]
                                : &reader->out[((c - reader->first) * taps + tap) *
                                                   layout->ifm_depth +
                                               ifm];
        for (uint32_t i = 0; i < run; ++i) {
            at[i] = brick[o * inner + i];
        }
    }
}

static bool read_elements(reader_t *reader, uint32_t ofm, uint32_t ifm_from, uint32_t ifm_to)
{
    const ethos_u_layout_t *const layout = reader->layout;
    const uint32_t size = layout->micro * (layout->depthwise ? 1u : (uint32_t)IFM_MICRO);
    int16_t brick[LARGEST_BRICK];
    for (uint32_t element = 0; element < reader->elements; ++element) {
        for (uint32_t ifm = ifm_from; ifm < ifm_to; ifm += IFM_MICRO) {
            if (!ethos_u_next_weights(reader->stream, brick, size)) {
                return false;
            }
            place(reader, element, reader->channel + ofm, reader->ifm + ifm, brick);
        }
    }
    return true;
}

static bool read_sub_kernel(reader_t *reader)
{
    const ethos_u_layout_t *const layout = reader->layout;
    const uint32_t whole = reader->ifm_count, split = layout->part_kernel ? IFM_MICRO : whole;
    for (uint32_t ifm = 0; ifm < whole; ifm += split) {
        for (uint32_t ofm = 0; ofm < reader->block; ofm += layout->micro) {
            if (!read_elements(reader, ofm, ifm, ethos_u_min(ifm + split, whole))) {
                return false;
            }
        }
    }
    return true;
}

static uint32_t filled_up(uint32_t value, uint32_t unit)
{
    return (value + unit - 1u) / unit * unit;
}

/* The elements of a sub-kernel are filled up to a multiple of this. */
static uint32_t element_unit(const ethos_u_layout_t *layout)
{
    if (layout->part_kernel) {
        return layout->wide_ifm ? 2 : 4;
    }
    return layout->depthwise ? 4 : 1;
}

static bool read_ifm_block(reader_t *reader)
{
    const ethos_u_layout_t *const layout = reader->layout;
    const uint32_t unit = element_unit(layout);
    for (reader->y = 0; reader->y < layout->kernel_h; reader->y += layout->sub_h) {
        reader->height = ethos_u_min(layout->sub_h, layout->kernel_h - reader->y);
        for (reader->x = 0; reader->x < layout->kernel_w; reader->x += layout->sub_w) {
            reader->width = ethos_u_min(layout->sub_w, layout->kernel_w - reader->x);
            reader->elements = filled_up(reader->height * reader->width, unit);
            if (!read_sub_kernel(reader)) {
                return false;
            }
        }
    }
    return true;
}

bool ethos_u_read_block(ethos_u_stream_t *stream, const ethos_u_layout_t *layout, uint32_t channel,
                        uint32_t first, uint32_t count, int16_t *out)
{
    const uint32_t deep = ethos_u_ifm_block(layout);
    reader_t reader = {
        .layout = layout,
        .stream = stream,
        .channel = channel,
        .block = ethos_u_min(layout->block_depth, layout->ofm_depth - channel),
        .first = first,
        .count = count,
        .out = out,
    };
    if (layout->depthwise) {
        reader.ifm_count = IFM_MICRO;
        return read_ifm_block(&reader);
    }
    for (reader.ifm = 0; reader.ifm < layout->ifm_depth; reader.ifm += deep) {
        /* Whole blocks, unless the kernel is split first. */
        reader.ifm_count =
            layout->part_kernel ? ethos_u_min(deep, layout->ifm_depth - reader.ifm) : deep;
        if (!read_ifm_block(&reader)) {
            return false;
        }
    }
    return true;
}
