/* Layouts of constants, and scratch memory, of the kernels for cores with SIMD; as in
 * byoc_dory/soc/cluster/packing.py. */
#ifndef CLUSTER_RECORDS_H
#define CLUSTER_RECORDS_H

#include "cluster_share.h"

/* Weights of products are quads (htvm_quads.h), one after another: a window has fy * fx * c bytes. */
CLUSTER_INLINE uint32_t cluster_words(uint32_t bytes) { return (bytes + 3u) / 4u; }

/* The number of windows of this many bytes that convolutions copy at once: 4 to 16. */
CLUSTER_INLINE uint32_t cluster_conv2d_windows(uint32_t window)
{
    const uint32_t words = cluster_words(window);
    return words <= 16u ? 16u : words <= 32u ? 8u : 4u;
}

/* Bytes of scratch memory for so many windows; 0: as many as convolutions copy at once. */
CLUSTER_INLINE uint32_t cluster_conv2d_scratch(uint32_t window, uint32_t windows)
{
    const uint32_t most = windows != 0 ? windows : cluster_conv2d_windows(window);
    return 4u * most * cluster_words(window) + 16u;
}

/* Attention: a table, and a byte for each position. */
CLUSTER_INLINE uint32_t cluster_attention_scratch(uint32_t positions)
{
    return 256u + 4u * cluster_words(positions);
}

#endif
