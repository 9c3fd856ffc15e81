/* cluster_add for cores with SIMD. */
#include "cluster_kernels.h"
#include "cluster_records.h"
#include "htvm_add.h"

void cluster_add(const void *args, uint32_t core, uint32_t cores)
{
    const cluster_add_t *const a = args;
    const cluster_share_t part = cluster_share(cluster_words(a->elements), core, cores);
    const uint32_t end = 4u * part.end < a->elements ? 4u * part.end : a->elements;
    const htvm_add_t add = {
        .in = a->in,
        .table = a->table,
        .operands = a->operands,
        .mul = a->requant.mul,
        .add = a->requant.add,
        .shift = a->requant.shift,
        .low = a->requant.low,
        .high = a->requant.high,
        .in_unsigned = (a->flags & CLUSTER_IN_UNSIGNED) != 0,
        .wide = (a->flags & CLUSTER_WIDE) != 0,
    };
    htvm_add(&add, a->out, 4u * part.begin, end);
}
