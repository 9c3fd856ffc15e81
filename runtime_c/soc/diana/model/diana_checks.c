/* Checks shared by the cores; those that take the device as an argument complain and return false
 * (or NULL) if they fail. */
#include <inttypes.h>
#include <string.h>

#include "diana_model.h"

bool diana_listed(uint32_t value, const uint32_t *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i] == value) {
            return true;
        }
    }
    return false;
}

bool diana_check_overlap(htvm_soc_t *soc, diana_device_t *device, const char *what, uint32_t in,
                         uint64_t in_bytes, uint32_t out, uint64_t out_bytes)
{
    if (in_bytes != 0 && out_bytes != 0 && in < out + out_bytes && out < in + in_bytes) {
        return diana_complain(soc, device, DIANA_ERROR_OVERLAP,
                              "%s: output at L1 0x%08" PRIX32 " (%" PRIu64
                              " B) overlaps input at 0x%08" PRIX32 " (%" PRIu64 " B)",
                              what, HTVM_L1_BASE + out, out_bytes, HTVM_L1_BASE + in, in_bytes);
    }
    return true;
}

const uint8_t *diana_check_weights(htvm_soc_t *soc, diana_device_t *device, const char *what,
                                   uint32_t address, uint64_t bytes, uint32_t align)
{
    if (address % align != 0) {
        diana_complain(soc, device, DIANA_ERROR_ALIGNMENT,
                       "%s: weights at L2 0x%08" PRIX32 " (%" PRIu64
                       " B) are not aligned to %" PRIu32 " B",
                       what, address, bytes, align);
        return NULL;
    }
    const uint8_t *weights = soc->bus.map(soc->bus.ctx, address, (uint32_t)bytes);
    if (weights == NULL) {
        diana_complain(soc, device, DIANA_ERROR_RANGE,
                       "%s: weights at L2 0x%08" PRIX32 " (%" PRIu64 " B) are not in memory", what,
                       address, bytes);
    }
    return weights;
}

bool diana_check_written(htvm_soc_t *soc, diana_device_t *device, const char *what, uint32_t base,
                         uint32_t from, uint32_t to, uint32_t group)
{
    const uint32_t reversed = group - 1u;
    const uint32_t low = from & ~reversed;
    const uint32_t high = diana_round_up(to, group);
    const uint8_t *shadow = soc->shadow + base;
    if (memchr(shadow + low, 0, high - low) == NULL) {
        return true; /* whole groups: the usual case */
    }
    for (uint32_t i = from; i < to; i++) {
        if (shadow[i ^ reversed] == 0) {
            const uint32_t at = base + (i ^ reversed);
            return diana_complain(soc, device, DIANA_ERROR_UNINITIALISED,
                                  "%s: input of %" PRIu32 " B at L1 0x%08" PRIX32
                                  " includes 0x%08" PRIX32 " (offset %" PRIu32
                                  "), which was never written",
                                  what, to - from, HTVM_L1_BASE + base + from, HTVM_L1_BASE + at,
                                  at);
        }
    }
    return true;
}
