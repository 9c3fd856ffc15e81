/* Ethos-U: what may still run when an operation begins, and whether it is in the way.
 *
 * DMA transfers run beside kernels until DMA_WAIT and KERNEL_WAIT.  Kernels begin in order; the
 * first blocks of one may run beside the last blocks of the one before it, as many as BLOCKDEP. */
#include "ethos_u_model.h"

static bool ranges_meet(const ethos_u_range_t *a, const ethos_u_range_t *b)
{
    return a->region == b->region && a->first < b->first + b->bytes &&
           b->first < a->first + a->bytes;
}

/* Where a part of a feature map meets a range, or another part. */
typedef struct {
    ethos_u_range_t range;
    const ethos_u_map_t *other;
    const ethos_u_box_t *other_box;
    uint64_t at;
} meeting_t;

static bool apart_from_range(void *context, uint64_t first, uint64_t bytes)
{
    meeting_t *const meeting = context;
    const ethos_u_range_t *const range = &meeting->range;
    if (first < range->first + range->bytes && range->first < first + bytes) {
        meeting->at = first > range->first ? first : range->first;
        return false;
    }
    return true;
}

static bool map_meets_range(const ethos_u_map_t *map, const ethos_u_box_t *box,
                            const ethos_u_range_t *range, uint64_t *at)
{
    if (map->region != range->region || range->bytes == 0) {
        return false;
    }
    meeting_t meeting = {.range = *range};
    if (ethos_u_runs(map, box, apart_from_range, &meeting)) {
        return false;
    }
    *at = meeting.at;
    return true;
}

static bool apart_from_map(void *context, uint64_t first, uint64_t bytes)
{
    meeting_t *const meeting = context;
    meeting->range.first = first;
    meeting->range.bytes = bytes;
    return !map_meets_range(meeting->other, meeting->other_box, &meeting->range, &meeting->at);
}

/* The bytes that a part spans, gaps and all. */
typedef struct {
    uint64_t first, end;
} span_t;

static bool widen(void *context, uint64_t first, uint64_t bytes)
{
    span_t *const span = context;
    span->first = first < span->first ? first : span->first;
    span->end = first + bytes > span->end ? first + bytes : span->end;
    return true;
}

static span_t span_of(const ethos_u_map_t *map, const ethos_u_box_t *box)
{
    span_t span = {UINT64_MAX, 0};
    ethos_u_runs(map, box, widen, &span);
    return span;
}

static bool maps_meet(const ethos_u_map_t *a, const ethos_u_box_t *a_box, const ethos_u_map_t *b,
                      const ethos_u_box_t *b_box, uint64_t *at)
{
    const span_t a_span = span_of(a, a_box), b_span = span_of(b, b_box);
    if (a->region != b->region || a_span.first >= b_span.end || b_span.first >= a_span.end) {
        return false;
    }
    meeting_t meeting = {.range = {.region = a->region}, .other = b, .other_box = b_box};
    if (ethos_u_runs(a, a_box, apart_from_map, &meeting)) {
        return false;
    }
    *at = meeting.at;
    return true;
}

/* ---- transfers beside kernels ---- */

static const char *kernel_reads_range(const ethos_u_access_t *kernel, const ethos_u_range_t *range,
                                      uint64_t *at)
{
    for (uint32_t i = 1; i < kernel->maps; ++i) {
        const ethos_u_box_t box = ethos_u_whole(&kernel->map[i]);
        if (map_meets_range(&kernel->map[i], &box, range, at)) {
            return kernel->map[i].name;
        }
    }
    for (uint32_t i = 0; i < kernel->ranges; ++i) {
        if (ranges_meet(&kernel->range[i], range)) {
            *at = range->first;
            return range->region == ETHOS_U_SHRAM_REGION ? "table" : "weights or scales";
        }
    }
    return NULL;
}

static const char *kernel_writes_range(const ethos_u_access_t *kernel, const ethos_u_range_t *range,
                                       uint64_t *at)
{
    const ethos_u_box_t box = ethos_u_whole(&kernel->map[0]);
    if (map_meets_range(&kernel->map[0], &box, range, at)) {
        return "OFM";
    }
    if (kernel->takes_table_area && range->region == ETHOS_U_SHRAM_REGION) {
        *at = range->first;
        return "accumulators";
    }
    return NULL;
}

/* What of a kernel is in a transfer's way. */
static const char *conflict(const ethos_u_access_t *kernel, const ethos_u_transfer_t *transfer,
                            uint64_t *at)
{
    const char *what = kernel_reads_range(kernel, &transfer->to, at);
    what = what != NULL ? what : kernel_writes_range(kernel, &transfer->to, at);
    return what != NULL ? what : kernel_writes_range(kernel, &transfer->from, at);
}

static void drop(void *entries, size_t size, uint32_t *count, uint32_t left)
{
    if (left >= *count) {
        return;
    }
    uint8_t *const bytes = entries;
    const size_t gone = (*count - left) * size;
    for (size_t i = 0; i < left * size; ++i) {
        bytes[i] = bytes[i + gone];
    }
    *count = left;
}

void ethos_u_wait_kernels(ethos_u_t *npu, uint32_t left)
{
    drop(npu->kernel, sizeof npu->kernel[0], &npu->kernels, left);
}

void ethos_u_wait_transfers(ethos_u_t *npu, uint32_t left)
{
    drop(npu->transfer, sizeof npu->transfer[0], &npu->transfers, left);
}

bool ethos_u_begin_transfer(ethos_u_t *npu, const ethos_u_transfer_t *transfer)
{
    for (uint32_t i = 0; i < npu->kernels; ++i) {
        uint64_t at = 0;
        const char *const what = conflict(&npu->kernel[i], transfer, &at);
        if (what != NULL) {
            return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM,
                                    "the %s of the kernel at word %u may still be accessed at %x: "
                                    "a KERNEL_WAIT is missing",
                                    what, npu->kernel[i].command, at);
        }
    }
    ethos_u_wait_transfers(npu, (npu->product == 65 ? ETHOS_U_TRANSFERS : 1u) - 1u);
    npu->transfer[npu->transfers++] = *transfer;
    return true;
}

/* ---- kernels beside kernels ---- */

static uint32_t blocks(uint32_t size, uint32_t block) { return (size + block - 1u) / block; }

/* A block of the OFM by its number, depth first, then columns. */
static ethos_u_box_t block_box(const ethos_u_access_t *kernel, uint64_t number)
{
    const ethos_u_map_t *const ofm = &kernel->map[0];
    const uint32_t deep = blocks(ofm->depth, kernel->block_d);
    const uint32_t wide = blocks(ofm->width, kernel->block_w);
    const uint32_t c = (uint32_t)(number % deep) * kernel->block_d;
    const uint32_t x = (uint32_t)(number / deep % wide) * kernel->block_w;
    const uint32_t y = (uint32_t)(number / deep / wide) * kernel->block_h;
    return (ethos_u_box_t){y, ethos_u_min(y + kernel->block_h, ofm->height),
                           x, ethos_u_min(x + kernel->block_w, ofm->width),
                           c, ethos_u_min(c + kernel->block_d, ofm->depth)};
}

static uint64_t block_count(const ethos_u_access_t *kernel)
{
    const ethos_u_map_t *const ofm = &kernel->map[0];
    return (uint64_t)blocks(ofm->depth, kernel->block_d) * blocks(ofm->width, kernel->block_w) *
           blocks(ofm->height, kernel->block_h);
}

/* What a block reads of a feature map. */
static ethos_u_box_t block_input(const ethos_u_access_t *kernel, uint32_t map,
                                 const ethos_u_box_t *block)
{
    const ethos_u_map_t *const ifm = &kernel->map[map];
    ethos_u_box_t box = ethos_u_needed(&kernel->window, ifm, block);
    if (kernel->ifm_block == 0) {
        box.c0 = block->c0;
        box.c1 = block->c1;
    }
    if (map == 2) { /* broadcast */
        box.y0 = (kernel->broadcast & ETHOS_U_BROADCAST_H) != 0 ? 0 : box.y0;
        box.x0 = (kernel->broadcast & ETHOS_U_BROADCAST_W) != 0 ? 0 : box.x0;
        box.c0 = (kernel->broadcast & ETHOS_U_BROADCAST_C) != 0 ? 0 : box.c0;
    }
    box.y1 = ethos_u_min(box.y1, ifm->height);
    box.x1 = ethos_u_min(box.x1, ifm->width);
    box.c1 = ethos_u_min(box.c1, ifm->depth);
    return box;
}

/* Blocks of the IFM's depth that are read one after the other for a block of the OFM. */
static uint32_t steps(const ethos_u_access_t *kernel)
{
    return kernel->ifm_block == 0 ? 1 : blocks(kernel->map[1].depth, kernel->ifm_block);
}

/* The kernel before it may still write its last blocks while the first are read. */
static bool check_dependency(ethos_u_t *npu, const ethos_u_access_t *kernel, uint32_t blockdep)
{
    if (npu->kernels == 0) {
        return true;
    }
    const ethos_u_access_t *const before = &npu->kernel[npu->kernels - 1u];
    const uint64_t last = block_count(before), count = block_count(kernel);
    const uint32_t each = steps(kernel);
    for (uint32_t job = 0; job < blockdep && job / each < count; ++job) {
        const ethos_u_box_t block = block_box(kernel, job / each);
        for (uint32_t back = 0; job + back < blockdep && back < last; ++back) {
            const ethos_u_box_t written = block_box(before, last - 1u - back);
            for (uint32_t map = 1; map < kernel->maps; ++map) {
                ethos_u_box_t box = block_input(kernel, map, &block);
                if (map == 1 && each > 1) {
                    box.c0 = job % each * kernel->ifm_block;
                    box.c1 = ethos_u_min(box.c0 + kernel->ifm_block, kernel->map[1].depth);
                }
                uint64_t at = 0;
                if (maps_meet(&before->map[0], &written, &kernel->map[map], &box, &at)) {
                    return ethos_u_complain(
                        npu, HTVM_ETHOS_U_BAD_STREAM,
                        "BLOCKDEP = %u lets it read the %s at %x before the kernel at word %u "
                        "wrote there",
                        blockdep, kernel->map[map].name, at, before->command);
                }
            }
        }
    }
    return true;
}

/* Weights and scales are fetched ahead, whatever BLOCKDEP says of the IFM. */
static bool check_weights(ethos_u_t *npu, const ethos_u_access_t *access)
{
    for (uint32_t i = 0; i < npu->kernels; ++i) {
        for (uint32_t r = 0; r < access->ranges; ++r) {
            uint64_t at = 0;
            if (access->range[r].region != ETHOS_U_SHRAM_REGION &&
                kernel_writes_range(&npu->kernel[i], &access->range[r], &at) != NULL) {
                return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM,
                                        "its weights or scales at %x may still be written by the "
                                        "kernel at word %u: a KERNEL_WAIT is missing",
                                        at, npu->kernel[i].command);
            }
        }
    }
    return true;
}

bool ethos_u_begin_kernel(ethos_u_t *npu, const ethos_u_access_t *access)
{
    if (!npu->call->checked) {
        return true;
    }
    for (uint32_t i = 0; i < npu->transfers; ++i) {
        uint64_t at = 0;
        const char *const what = conflict(access, &npu->transfer[i], &at);
        if (what != NULL) {
            return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM,
                                    "its %s at %x may still be copied by the DMA at word %u: a "
                                    "DMA_WAIT is missing",
                                    what, at, npu->transfer[i].command);
        }
    }
    if (!check_weights(npu, access) ||
        !check_dependency(npu, access, ethos_u_get(npu, ETHOS_U_BLOCKDEP) & 3u)) {
        return false;
    }
    ethos_u_wait_kernels(npu, ETHOS_U_KERNELS - 1u);
    npu->kernel[npu->kernels++] = *access;
    return !ethos_u_failed(npu);
}
