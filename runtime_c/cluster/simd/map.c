/* cluster_map for cores with SIMD. */
#include "cluster_kernels.h"
#include "cluster_records.h"
#include "htvm_bytes.h"

void cluster_map(const void *args, uint32_t core, uint32_t cores)
{
    const cluster_map_t *const m = args;
    cluster_share_t part = cluster_share(cluster_words(m->elements), core, cores);
    part.begin *= 4u;
    part.end = 4u * part.end < m->elements ? 4u * part.end : m->elements;
    if (part.begin < part.end) {
        htvm_look_up((const uint8_t *)m->in + part.begin, (uint8_t *)m->out + part.begin, m->table,
                     part.end - part.begin);
    }
}
