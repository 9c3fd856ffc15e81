/* cluster_average for cores with SIMD. */
#include <stdbool.h>

#include "cluster_kernels.h"
#include "cluster_records.h"
#include "htvm_window.h"

#define QUAD 4u

/* Returns a sum divided by the number of its elements, rounded half away from zero. */
CLUSTER_INLINE int8_t cluster_mean(int32_t total, uint32_t half, uint32_t reciprocal)
{
    const int32_t sign = total >> 31;
    const uint32_t size = (uint32_t)((total ^ sign) - sign) + half;
    const int32_t mean = (int32_t)(uint32_t)(((uint64_t)size * reciprocal) >> 32);
    return (int8_t)((mean ^ sign) - sign);
}

void cluster_average(const void *args, uint32_t core, uint32_t cores)
{
    const cluster_average_t *const a = args;
    const uint32_t quads = cluster_words(a->channels), pitch = a->ix * a->channels;
    const uint32_t half = a->fy * a->fx / 2u, reciprocal = a->reciprocal;
    const bool whole = a->fx == a->ix; /* rows without gaps are one */
    const uint32_t rows = whole ? 1 : a->fy, columns = whole ? a->fy * a->fx : a->fx;
    const cluster_share_t part = cluster_share(a->oy * a->ox * quads, core, cores);
    uint32_t window = part.begin < quads ? 0 : part.begin / quads;
    uint32_t first = QUAD * (part.begin - window * quads);
    for (uint32_t left = part.end - part.begin; left != 0; window++, first = 0) {
        const uint32_t y = window < a->ox ? 0 : window / a->ox, x = window - y * a->ox;
        const int8_t *const in = a->in + y * a->stride_y * pitch + x * a->stride_x * a->channels;
        int8_t *const out = a->out + window * a->channels;
        for (; first < a->channels && left != 0; first += QUAD, left--) {
            const uint32_t there = a->channels - first;
            int32_t sums[QUAD] = {0, 0, 0, 0};
            for (uint32_t row = 0; row < rows; row++) {
                htvm_window_row(sums, in + row * pitch + first, columns, a->channels);
            }
            for (uint32_t i = 0; i < QUAD && i < there; i++) {
                out[first + i] = cluster_mean(sums[i], half, reciprocal);
            }
        }
    }
}
