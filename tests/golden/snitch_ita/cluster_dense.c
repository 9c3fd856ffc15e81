/* ==== published, all of L1 ==== */

/* dense: dense C=70 -> K=37
 * on the cluster of 8 cores; tile k=37, y=1 (1 in all)
 * predicted: 2934 cycles */
int32_t net_dense(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 0, L1_OUT = 70, L1_WEIGHTS = 112 }; /* byte offsets in L1 */
    uint32_t ready = 0; /* the last transfer that loads the next tile */

    cluster_dma_start(&(cluster_dma_t){ /* rows of in */
        .to = cluster_l1(L1_IN),
        .from = in,
        .bytes = 70,
        .rows = 1,
    });
    ready = cluster_dma_start(&(cluster_dma_t){ /* weights */
        .to = cluster_l1(L1_WEIGHTS),
        .from = net_dense_weights,
        .bytes = 2752,
        .rows = 1,
    });
    cluster_dma_wait(ready);
    const cluster_gemm_t args = {
        .in = cluster_l1(L1_IN),
        .weights = cluster_l1(L1_WEIGHTS + 148),
        .bias = cluster_l1(L1_WEIGHTS),
        .out = cluster_l1(L1_OUT),
        .rows = 1,
        .k = 37,
        .c = 70,
        .in_pitch = 70,
        .out_pitch = 37,
        .flags = 0,
        .requant.mul = 37,
        .requant.add = 1024,
        .requant.shift = 11,
        .requant.low = -128,
        .requant.high = 127,
    };
    cluster_run(cluster_gemm, &args);
    cluster_dma_start(&(cluster_dma_t){ /* result */
        .to = out,
        .from = cluster_l1(L1_OUT),
        .bytes = 37,
        .rows = 1,
    });
    cluster_dma_wait_all();
    return 0;
}

/* ==== published, 1600 B of L1 ==== */

/* dense: dense C=70 -> K=37
 * on the cluster of 8 cores; tile k=16, y=1 (3 in all)
 * predicted: 6546 cycles */
int32_t net_dense(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 0, L1_OUT = 70, L1_WEIGHTS = 96 }; /* byte offsets in L1 */
    uint32_t ready = 0; /* the last transfer that loads the next tile */

    for (uint32_t step = 0; step < 3u; ++step) {
        const uint32_t tile = step;
        const uint32_t k = tile;
        if (tile == 0u) { /* rows of in */
            cluster_dma_start(&(cluster_dma_t){
                .to = cluster_l1(L1_IN),
                .from = in,
                .bytes = 70,
                .rows = 1,
            });
        }
        ready = cluster_dma_start(&(cluster_dma_t){ /* weights */
            .to = cluster_l1(L1_WEIGHTS),
            .from = net_dense_weights + k * 1184u,
            .bytes = 1184,
            .rows = 1,
        });
        cluster_dma_wait(ready);
        const cluster_gemm_t args = {
            .in = cluster_l1(L1_IN),
            .weights = cluster_l1(L1_WEIGHTS + 64),
            .bias = cluster_l1(L1_WEIGHTS),
            .out = cluster_l1(L1_OUT),
            .rows = 1,
            .k = (k + 1u < 3u ? 16u : 5u),
            .c = 70,
            .in_pitch = 70,
            .out_pitch = 16,
            .flags = 0,
            .requant.mul = 37,
            .requant.add = 1024,
            .requant.shift = 11,
            .requant.low = -128,
            .requant.high = 127,
        };
        cluster_run(cluster_gemm, &args);
        cluster_dma_start(&(cluster_dma_t){ /* result */
            .to = out + k * 16u,
            .from = cluster_l1(L1_OUT),
            .bytes = (k + 1u < 3u ? 16u : 5u),
            .rows = 1,
            .from_stride = 16,
            .to_stride = 37,
        });
    }
    cluster_dma_wait_all();
    return 0;
}

/* ==== overlapped, all of L1 ==== */

/* dense: dense C=70 -> K=37
 * on the cluster of 8 cores; tile k=37, y=1 (1 in all)
 * predicted: 2934 cycles */
int32_t net_dense(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 2848, L1_OUT = 2928, L1_WEIGHTS = 0 }; /* byte offsets in L1 */
    uint32_t ready = 0; /* the last transfer that loads the next tile */

    cluster_dma_start(&(cluster_dma_t){ /* rows of in */
        .to = cluster_l1(L1_IN),
        .from = in,
        .bytes = 70,
        .rows = 1,
    });
    ready = cluster_dma_start(&(cluster_dma_t){ /* weights */
        .to = cluster_l1(L1_WEIGHTS),
        .from = net_dense_weights,
        .bytes = 2752,
        .rows = 1,
    });
    cluster_dma_wait(ready);
    const cluster_gemm_t args = {
        .in = cluster_l1(L1_IN),
        .weights = cluster_l1(L1_WEIGHTS + 148),
        .bias = cluster_l1(L1_WEIGHTS),
        .out = cluster_l1(L1_OUT),
        .rows = 1,
        .k = 37,
        .c = 70,
        .in_pitch = 70,
        .out_pitch = 37,
        .flags = 0,
        .requant.mul = 37,
        .requant.add = 1024,
        .requant.shift = 11,
        .requant.low = -128,
        .requant.high = 127,
    };
    cluster_run(cluster_gemm, &args);
    cluster_dma_start(&(cluster_dma_t){ /* result */
        .to = out,
        .from = cluster_l1(L1_OUT),
        .bytes = 37,
        .rows = 1,
    });
    cluster_dma_wait_all();
    return 0;
}

/* ==== overlapped, 1600 B of L1 ==== */

/* dense: dense C=70 -> K=37
 * on the cluster of 8 cores; tile k=16, y=1 (3 in all)
 * predicted: 6546 cycles */
int32_t net_dense(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 1248, L1_OUT = 1328, L1_WEIGHTS = 0 }; /* byte offsets in L1 */
    uint32_t ready = 0; /* the last transfer that loads the next tile */

    for (uint32_t step = 0; step < 3u; ++step) {
        const uint32_t tile = step;
        const uint32_t k = tile;
        if (tile == 0u) { /* rows of in */
            cluster_dma_start(&(cluster_dma_t){
                .to = cluster_l1(L1_IN),
                .from = in,
                .bytes = 70,
                .rows = 1,
            });
        }
        ready = cluster_dma_start(&(cluster_dma_t){ /* weights */
            .to = cluster_l1(L1_WEIGHTS),
            .from = net_dense_weights + k * 1184u,
            .bytes = 1184,
            .rows = 1,
        });
        cluster_dma_wait(ready);
        const cluster_gemm_t args = {
            .in = cluster_l1(L1_IN),
            .weights = cluster_l1(L1_WEIGHTS + 64),
            .bias = cluster_l1(L1_WEIGHTS),
            .out = cluster_l1(L1_OUT),
            .rows = 1,
            .k = (k + 1u < 3u ? 16u : 5u),
            .c = 70,
            .in_pitch = 70,
            .out_pitch = 16,
            .flags = 0,
            .requant.mul = 37,
            .requant.add = 1024,
            .requant.shift = 11,
            .requant.low = -128,
            .requant.high = 127,
        };
        cluster_run(cluster_gemm, &args);
        cluster_dma_start(&(cluster_dma_t){ /* result */
            .to = out + k * 16u,
            .from = cluster_l1(L1_OUT),
            .bytes = (k + 1u < 3u ? 16u : 5u),
            .rows = 1,
            .from_stride = 16,
            .to_stride = 37,
        });
    }
    cluster_dma_wait_all();
    return 0;
}
