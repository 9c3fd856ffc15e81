/* Ethos-U: which bytes hold a value. */
#include "ethos_u_model.h"

static uint32_t bit_of(uint64_t at) { return UINT32_C(1) << (uint32_t)(at % 8u); }

static void set_bits(uint8_t *bits, uint64_t first, uint64_t count)
{
    for (uint64_t at = first; at < first + count;) {
        if (at % 8u == 0 && first + count - at >= 8u) {
            bits[at / 8u] = 0xff;
            at += 8u;
        } else {
            bits[at / 8u] = (uint8_t)(bits[at / 8u] | bit_of(at));
            at += 1u;
        }
    }
}

/* The first of these bits that is not set; the one behind them if all are. */
static uint64_t first_hole(const uint8_t *bits, uint64_t first, uint64_t count)
{
    const uint64_t end = first + count;
    uint64_t at = first;
    while (at < end) {
        if (at % 8u == 0 && end - at >= 8u && bits[at / 8u] == 0xff) {
            at += 8u;
        } else if ((bits[at / 8u] & bit_of(at)) != 0) {
            at += 1u;
        } else {
            return at;
        }
    }
    return end;
}

bool ethos_u_written_begin(ethos_u_t *npu)
{
    const htvm_ethos_u_call_t *const call = npu->call;
    if (!call->checked || call->written == NULL) {
        return true;
    }
    for (uint32_t region = 0; region < call->regions; ++region) {
        if (call->base[region] == NULL) {
            continue;
        }
        const size_t bytes = (call->bytes[region] / 128u + 1u) * 16u;
        if (bytes > npu->scratch_bytes) {
            return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_CALL,
                                    "the workspace of %l B has no room for which bytes are written",
                                    (uint64_t)call->workspace_bytes);
        }
        npu->written[region] = npu->scratch;
        npu->scratch += bytes;
        npu->scratch_bytes -= bytes;
        for (size_t i = 0; i < bytes; ++i) {
            npu->written[region][i] = 0;
        }
    }
    for (uint32_t i = 0; i < call->written_count; ++i) {
        const htvm_ethos_u_range_t *const range = &call->written[i];
        if (ethos_u_memory(npu, "written range", range->region, range->first, range->bytes) ==
            NULL) {
            npu->status = HTVM_ETHOS_U_BAD_CALL;
            return false;
        }
        set_bits(npu->written[range->region], range->first, range->bytes);
    }
    return true;
}

typedef struct {
    ethos_u_t *npu;
    const char *what;
    uint32_t region;
} reader_t;

static const uint8_t *bits_of(const ethos_u_t *npu, uint32_t region)
{
    return region == ETHOS_U_SHRAM_REGION ? npu->table_written : npu->written[region];
}

static bool read_run(void *context, uint64_t first, uint64_t bytes)
{
    const reader_t *const reader = context;
    const uint8_t *const bits = bits_of(reader->npu, reader->region);
    const uint64_t hole = first_hole(bits, first, bytes);
    if (hole == first + bytes) {
        return true;
    }
    if (reader->region == ETHOS_U_SHRAM_REGION) {
        return ethos_u_complain(reader->npu, HTVM_ETHOS_U_BAD_STREAM,
                                "the %s reads byte %x of the tables, which nobody wrote",
                                reader->what, hole);
    }
    return ethos_u_complain(reader->npu, HTVM_ETHOS_U_BAD_STREAM,
                            "the %s reads byte %x of region %u, which nobody wrote", reader->what,
                            hole, reader->region);
}

bool ethos_u_need_range(ethos_u_t *npu, const char *what, const ethos_u_range_t *range)
{
    if (!npu->call->checked || bits_of(npu, range->region) == NULL) {
        return true;
    }
    reader_t reader = {npu, what, range->region};
    return read_run(&reader, range->first, range->bytes);
}

bool ethos_u_need_map(ethos_u_t *npu, const ethos_u_map_t *map)
{
    if (npu->written[map->region] == NULL) {
        return true;
    }
    reader_t reader = {npu, map->name, map->region};
    const ethos_u_box_t box = ethos_u_whole(map);
    return ethos_u_runs(map, &box, read_run, &reader);
}

/* Whether a result has this row (or column) of the IFM under its kernel. */
static bool is_used(uint32_t at, uint32_t results, uint32_t stride, uint32_t kernel,
                    uint32_t dilation, uint32_t before)
{
    for (uint32_t i = 0; i < kernel; ++i) {
        if (at + before >= i * dilation) {
            const uint32_t place = at + before - i * dilation;
            if (place % stride == 0 && place / stride < results) {
                return true;
            }
        }
    }
    return false;
}

bool ethos_u_need_window(ethos_u_t *npu, const ethos_u_map_t *ifm, const ethos_u_window_t *window,
                         uint32_t ofm_height, uint32_t ofm_width)
{
    if (npu->written[ifm->region] == NULL) {
        return true;
    }
    /* An upscaled row is used if either of its two is; only small kernels step over any. */
    if (window->upscale != 0 || (window->stride_y <= window->kernel_h && window->dilation_y == 1 &&
                                 window->stride_x <= window->kernel_w && window->dilation_x == 1)) {
        return ethos_u_need_map(npu, ifm);
    }
    reader_t reader = {npu, ifm->name, ifm->region};
    for (uint32_t y = 0; y < ifm->height; ++y) {
        if (!is_used(y, ofm_height, window->stride_y, window->kernel_h, window->dilation_y,
                     window->top)) {
            continue;
        }
        for (uint32_t x = 0; x < ifm->width; ++x) {
            const ethos_u_box_t pixel = {y, y + 1u, x, x + 1u, 0, ifm->depth};
            if (is_used(x, ofm_width, window->stride_x, window->kernel_w, window->dilation_x,
                        window->left) &&
                !ethos_u_runs(ifm, &pixel, read_run, &reader)) {
                return false;
            }
        }
    }
    return true;
}

static bool wrote_run(void *context, uint64_t first, uint64_t bytes)
{
    set_bits(context, first, bytes);
    return true;
}

static void copy_bit(const uint8_t *from, uint64_t from_at, uint8_t *to, uint64_t to_at)
{
    const bool set = (from[from_at / 8u] & bit_of(from_at)) != 0;
    const uint32_t rest = to[to_at / 8u] & ~bit_of(to_at);
    to[to_at / 8u] = (uint8_t)(set ? rest | bit_of(to_at) : rest);
}

void ethos_u_wrote_copy(ethos_u_t *npu, const ethos_u_range_t *from, const ethos_u_range_t *to)
{
    const uint8_t *const source = bits_of(npu, from->region);
    uint8_t *const target =
        to->region == ETHOS_U_SHRAM_REGION ? npu->table_written : npu->written[to->region];
    if (target == NULL) {
        return;
    }
    const uint64_t end = from->first + from->bytes;
    if (source == NULL || first_hole(source, from->first, from->bytes) == end) {
        set_bits(target, to->first, to->bytes);
        return;
    }
    const bool forwards = source != target || to->first <= from->first;
    for (uint64_t i = 0; i < to->bytes; ++i) {
        const uint64_t at = forwards ? i : to->bytes - 1u - i;
        copy_bit(source, from->first + at, target, to->first + at);
    }
}

void ethos_u_wrote_map(ethos_u_t *npu, const ethos_u_map_t *map)
{
    if (npu->written[map->region] != NULL) {
        const ethos_u_box_t box = ethos_u_whole(map);
        ethos_u_runs(map, &box, wrote_run, npu->written[map->region]);
    }
}
