/* Ethos-U: copies between regions, and of tables into the shared buffer. */
#include "ethos_u_model.h"

typedef struct {
    ethos_u_range_t range; /* in the shared buffer: from the first table on */
    uint8_t *memory;
} end_t;

static bool read_end(ethos_u_t *npu, const char *what, uint32_t region, uint64_t first,
                     uint64_t bytes, end_t *end)
{
    if ((region & ~(uint32_t)(ETHOS_U_REGION_SHRAM | 7)) != 0) {
        return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM,
                                "%s_REGION = %x: the model knows one run of bytes alone", what,
                                (uint64_t)region);
    }
    if ((region & ETHOS_U_REGION_SHRAM) == 0) {
        end->range = (ethos_u_range_t){region, first, bytes};
        end->memory = ethos_u_memory(npu, what, region, first, bytes);
        return end->memory != NULL;
    }
    const uint64_t tables = npu->shram - ETHOS_U_TABLE_BYTES;
    if (first < tables || bytes > npu->shram || first > npu->shram - bytes) {
        return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM,
                                "%s: %l B from %x on are not in the tables, %x to %x of the shared "
                                "buffer",
                                what, bytes, first, tables, (uint64_t)npu->shram);
    }
    end->range = (ethos_u_range_t){ETHOS_U_SHRAM_REGION, first - tables, bytes};
    end->memory = npu->table + (first - tables);
    return true;
}

/* Of the U65 only what is in the shared buffer has to be aligned. */
static bool check_alignment(ethos_u_t *npu, uint64_t from, uint64_t to, uint64_t bytes)
{
    if (npu->call->checked && npu->product == 55 &&
        (from % 16u != 0 || to % 16u != 0 || bytes % 16u != 0)) {
        return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM,
                                "DMA0_SRC = %x, DMA0_DST = %x, DMA0_LEN = %l: no multiples of 16",
                                from, to, bytes);
    }
    return true;
}

bool ethos_u_dma(ethos_u_t *npu)
{
    const uint64_t from = ethos_u_get_address(npu, ETHOS_U_DMA0_SRC);
    const uint64_t to = ethos_u_get_address(npu, ETHOS_U_DMA0_DST);
    const uint64_t bytes = ethos_u_get_address(npu, ETHOS_U_DMA0_LEN);
    const uint32_t from_region = ethos_u_get(npu, ETHOS_U_DMA0_SRC_REGION);
    const uint32_t to_region = ethos_u_get(npu, ETHOS_U_DMA0_DST_REGION);
    end_t source = {.memory = NULL}, target = {.memory = NULL};
    if (ethos_u_failed(npu) || !check_alignment(npu, from, to, bytes) ||
        !read_end(npu, "DMA0_SRC", from_region, from, bytes, &source) ||
        !read_end(npu, "DMA0_DST", to_region, to, bytes, &target)) {
        return false;
    }
    if (target.range.region < HTVM_ETHOS_U_REGIONS &&
        (npu->call->constant >> target.range.region & 1u) != 0) {
        return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM,
                                "DMA0_DST is in region %u, which is constant", target.range.region);
    }
    const ethos_u_transfer_t transfer = {npu->command, source.range, target.range};
    if (npu->call->checked && !ethos_u_begin_transfer(npu, &transfer)) {
        return false;
    }
    /* Either end may come first in memory. */
    if (target.memory <= source.memory) {
        for (uint64_t i = 0; i < bytes; ++i) {
            target.memory[i] = source.memory[i];
        }
    } else {
        for (uint64_t i = bytes; i > 0; --i) {
            target.memory[i - 1u] = source.memory[i - 1u];
        }
    }
    ethos_u_wrote_copy(npu, &source.range, &target.range);
    return true;
}
