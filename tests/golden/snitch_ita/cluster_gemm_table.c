/* ==== published, all of L1 ==== */

/* gemm: gemm 24x30 times 30x22
 * on the cluster of 8 cores; tile k=22, y=24 (1 in all)
 * predicted: 14762 cycles */
int32_t net_gemm(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 0, L1_OUT = 720, L1_WEIGHTS = 1248 }; /* byte offsets in L1 */
    uint32_t ready = 0; /* the last transfer that loads the next tile */

    cluster_dma_start(&(cluster_dma_t){ /* rows of in */
        .to = cluster_l1(L1_IN),
        .from = in,
        .bytes = 720,
        .rows = 1,
    });
    ready = cluster_dma_start(&(cluster_dma_t){ /* weights */
        .to = cluster_l1(L1_WEIGHTS),
        .from = net_gemm_weights,
        .bytes = 1120,
        .rows = 1,
    });
    cluster_dma_wait(ready);
    const cluster_gemm_t args = {
        .in = cluster_l1(L1_IN),
        .weights = cluster_l1(L1_WEIGHTS + 200),
        .out = cluster_l1(L1_OUT),
        .table = cluster_l1(L1_WEIGHTS + 860),
        .rows = 24,
        .k = 22,
        .c = 30,
        .in_pitch = 30,
        .out_pitch = 24,
        .flags = CLUSTER_OUT_TRANSPOSED | CLUSTER_IN_UNSIGNED | CLUSTER_PER_CHANNEL,
        .requant.muls = cluster_l1(L1_WEIGHTS),
        .requant.adds = cluster_l1(L1_WEIGHTS + 88),
        .requant.shifts = cluster_l1(L1_WEIGHTS + 176),
        .requant.low = -128,
        .requant.high = 127,
    };
    cluster_run(cluster_gemm, &args);
    cluster_dma_start(&(cluster_dma_t){ /* result */
        .to = out,
        .from = cluster_l1(L1_OUT),
        .bytes = 528,
        .rows = 1,
    });
    cluster_dma_wait_all();
    return 0;
}

/* ==== published, 1600 B of L1 ==== */

/* gemm: gemm 24x30 times 30x22
 * on the cluster of 8 cores; tile k=8, y=24 (3 in all)
 * predicted: 15762 cycles */
int32_t net_gemm(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 0, L1_OUT = 720, L1_WEIGHTS = 912 }; /* byte offsets in L1 */
    uint32_t ready = 0; /* the last transfer that loads the next tile */

    for (uint32_t step = 0; step < 3u; ++step) {
        const uint32_t tile = step;
        const uint32_t k = tile;
        if (tile == 0u) { /* rows of in */
            cluster_dma_start(&(cluster_dma_t){
                .to = cluster_l1(L1_IN),
                .from = in,
                .bytes = 720,
                .rows = 1,
            });
        }
        ready = cluster_dma_start(&(cluster_dma_t){ /* weights */
            .to = cluster_l1(L1_WEIGHTS),
            .from = net_gemm_weights + k * 576u,
            .bytes = 576,
            .rows = 1,
        });
        cluster_dma_wait(ready);
        const cluster_gemm_t args = {
            .in = cluster_l1(L1_IN),
            .weights = cluster_l1(L1_WEIGHTS + 72),
            .out = cluster_l1(L1_OUT),
            .table = cluster_l1(L1_WEIGHTS + 312),
            .rows = 24,
            .k = (k + 1u < 3u ? 8u : 6u),
            .c = 30,
            .in_pitch = 30,
            .out_pitch = 24,
            .flags = CLUSTER_OUT_TRANSPOSED | CLUSTER_IN_UNSIGNED | CLUSTER_PER_CHANNEL,
            .requant.muls = cluster_l1(L1_WEIGHTS),
            .requant.adds = cluster_l1(L1_WEIGHTS + 32),
            .requant.shifts = cluster_l1(L1_WEIGHTS + 64),
            .requant.low = -128,
            .requant.high = 127,
        };
        cluster_run(cluster_gemm, &args);
        cluster_dma_start(&(cluster_dma_t){ /* result */
            .to = out + (k * 8u) * 24u,
            .from = cluster_l1(L1_OUT),
            .bytes = ((k + 1u < 3u ? 8u : 6u)) * 24,
            .rows = 1,
        });
    }
    cluster_dma_wait_all();
    return 0;
}

/* ==== overlapped, all of L1 ==== */

/* gemm: gemm 24x30 times 30x22
 * on the cluster of 8 cores; tile k=22, y=12 (2 in all, two of them in L1)
 * predicted: 11499 cycles */
int32_t net_gemm(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 1264, L1_OUT = 1984, L1_WEIGHTS = 0 }; /* byte offsets in L1 */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int16_t pad;
    } y_tiles[2] = { /* rows of the result, rows that they read, rows of zeros above */
        {0, 12, 0, 12, 0},
        {12, 12, 12, 12, 0},
    };
    uint32_t ready = 0; /* the last transfer that loads the next tile */

    /* Several tiles are under way at a time, each at a different stage:
     *
     *   step   load     compute, store
     *   0      tile 0   -                prologue
     *   1      tile 1   tile 0           steady state
     *   2      -        tile 1           epilogue
     */
    for (uint32_t step = 0; step < 3u; ++step) {
        const uint32_t wanted = ready;
        if (step < 2u) { /* load */
            const uint32_t tile = step;
            const uint32_t y = tile;
            ready = cluster_dma_start(&(cluster_dma_t){ /* rows of in */
                .to = cluster_l1(L1_IN + y % 2u * 360u),
                .from = in + y_tiles[y].in_start * 30u,
                .bytes = 360,
                .rows = 1,
            });
            if (tile == 0u) { /* weights */
                ready = cluster_dma_start(&(cluster_dma_t){
                    .to = cluster_l1(L1_WEIGHTS),
                    .from = net_gemm_weights,
                    .bytes = 1120,
                    .rows = 1,
                });
            }
        }
        if (step >= 1u) { /* compute, store */
            const uint32_t tile = step - 1u;
            const uint32_t y = tile;
            cluster_dma_wait(wanted);
            const cluster_gemm_t args = {
                .in = cluster_l1(L1_IN + y % 2u * 360u),
                .weights = cluster_l1(L1_WEIGHTS + 200),
                .out = cluster_l1(L1_OUT + tile % 2u * 264u),
                .table = cluster_l1(L1_WEIGHTS + 860),
                .rows = 12,
                .k = 22,
                .c = 30,
                .in_pitch = 30,
                .out_pitch = 12,
                .flags = CLUSTER_OUT_TRANSPOSED | CLUSTER_IN_UNSIGNED | CLUSTER_PER_CHANNEL,
                .requant.muls = cluster_l1(L1_WEIGHTS),
                .requant.adds = cluster_l1(L1_WEIGHTS + 88),
                .requant.shifts = cluster_l1(L1_WEIGHTS + 176),
                .requant.low = -128,
                .requant.high = 127,
            };
            cluster_run(cluster_gemm, &args);
            cluster_dma_start(&(cluster_dma_t){ /* result */
                .to = out + y_tiles[y].out_start,
                .from = cluster_l1(L1_OUT + tile % 2u * 264u),
                .bytes = 12,
                .rows = 22,
                .from_stride = 12,
                .to_stride = 24,
            });
        }
    }
    cluster_dma_wait_all();
    return 0;
}

/* ==== overlapped, 1600 B of L1 ==== */

/* gemm: gemm 24x30 times 30x22
 * on the cluster of 8 cores; tile k=22, y=4 (6 in all)
 * predicted: 13732 cycles */
int32_t net_gemm(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 1264, L1_OUT = 1392, L1_WEIGHTS = 0 }; /* byte offsets in L1 */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int16_t pad;
    } y_tiles[6] = { /* rows of the result, rows that they read, rows of zeros above */
        {0, 4, 0, 4, 0},
        {4, 4, 4, 4, 0},
        {8, 4, 8, 4, 0},
        {12, 4, 12, 4, 0},
        {16, 4, 16, 4, 0},
        {20, 4, 20, 4, 0},
    };
    uint32_t ready = 0; /* the last transfer that loads the next tile */

    for (uint32_t step = 0; step < 6u; ++step) {
        const uint32_t tile = step;
        const uint32_t y = tile;
        ready = cluster_dma_start(&(cluster_dma_t){ /* rows of in */
            .to = cluster_l1(L1_IN),
            .from = in + y_tiles[y].in_start * 30u,
            .bytes = 120,
            .rows = 1,
        });
        if (tile == 0u) { /* weights */
            ready = cluster_dma_start(&(cluster_dma_t){
                .to = cluster_l1(L1_WEIGHTS),
                .from = net_gemm_weights,
                .bytes = 1120,
                .rows = 1,
            });
        }
        cluster_dma_wait(ready);
        const cluster_gemm_t args = {
            .in = cluster_l1(L1_IN),
            .weights = cluster_l1(L1_WEIGHTS + 200),
            .out = cluster_l1(L1_OUT),
            .table = cluster_l1(L1_WEIGHTS + 860),
            .rows = 4,
            .k = 22,
            .c = 30,
            .in_pitch = 30,
            .out_pitch = 4,
            .flags = CLUSTER_OUT_TRANSPOSED | CLUSTER_IN_UNSIGNED | CLUSTER_PER_CHANNEL,
            .requant.muls = cluster_l1(L1_WEIGHTS),
            .requant.adds = cluster_l1(L1_WEIGHTS + 88),
            .requant.shifts = cluster_l1(L1_WEIGHTS + 176),
            .requant.low = -128,
            .requant.high = 127,
        };
        cluster_run(cluster_gemm, &args);
        cluster_dma_start(&(cluster_dma_t){ /* result */
            .to = out + y_tiles[y].out_start,
            .from = cluster_l1(L1_OUT),
            .bytes = 4,
            .rows = 22,
            .from_stride = 4,
            .to_stride = 24,
        });
    }
    cluster_dma_wait_all();
    return 0;
}
