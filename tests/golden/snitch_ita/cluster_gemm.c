/* ==== published, all of L1 ==== */

/* gemm: gemm 24x30 times 30x22
 * on the cluster of 8 cores; tile k=22, y=24 (1 in all)
 * predicted: 13685 cycles */
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
        .bytes = 752,
        .rows = 1,
    });
    cluster_dma_wait(ready);
    const cluster_gemm_t args = {
        .in = cluster_l1(L1_IN),
        .weights = cluster_l1(L1_WEIGHTS + 88),
        .bias = cluster_l1(L1_WEIGHTS),
        .out = cluster_l1(L1_OUT),
        .rows = 24,
        .k = 22,
        .c = 30,
        .in_pitch = 30,
        .out_pitch = 22,
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
        .bytes = 528,
        .rows = 1,
    });
    cluster_dma_wait_all();
    return 0;
}

/* ==== published, 1000 B of L1 ==== */

/* gemm: gemm 24x30 times 30x22
 * on the cluster of 8 cores; tile k=4, y=22 (12 in all)
 * predicted: 25143 cycles */
int32_t net_gemm(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 0, L1_OUT = 660, L1_WEIGHTS = 752 }; /* byte offsets in L1 */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int16_t pad;
    } y_tiles[2] = { /* rows of the result, rows that they read, rows of zeros above */
        {0, 22, 0, 22, 0},
        {22, 2, 22, 2, 0},
    };
    uint32_t ready = 0; /* the last transfer that loads the next tile */

    for (uint32_t step = 0; step < 12u; ++step) {
        const uint32_t tile = step;
        const uint32_t y = tile / 6u;
        const uint32_t k = tile % 6u;
        if (k == 0u) { /* rows of in */
            cluster_dma_start(&(cluster_dma_t){
                .to = cluster_l1(L1_IN),
                .from = in + y_tiles[y].in_start * 30u,
                .bytes = y_tiles[y].in_size * 30,
                .rows = 1,
            });
        }
        ready = cluster_dma_start(&(cluster_dma_t){ /* weights */
            .to = cluster_l1(L1_WEIGHTS),
            .from = net_gemm_weights + k * 144u,
            .bytes = 144,
            .rows = 1,
        });
        cluster_dma_wait(ready);
        const cluster_gemm_t args = {
            .in = cluster_l1(L1_IN),
            .weights = cluster_l1(L1_WEIGHTS + 16),
            .bias = cluster_l1(L1_WEIGHTS),
            .out = cluster_l1(L1_OUT),
            .rows = y_tiles[y].out_size,
            .k = (k + 1u < 6u ? 4u : 2u),
            .c = 30,
            .in_pitch = 30,
            .out_pitch = 4,
            .flags = 0,
            .requant.mul = 37,
            .requant.add = 1024,
            .requant.shift = 11,
            .requant.low = -128,
            .requant.high = 127,
        };
        cluster_run(cluster_gemm, &args);
        cluster_dma_start(&(cluster_dma_t){ /* result */
            .to = out + y_tiles[y].out_start * 22u + k * 4u,
            .from = cluster_l1(L1_OUT),
            .bytes = (k + 1u < 6u ? 4u : 2u),
            .rows = y_tiles[y].out_size,
            .from_stride = 4,
            .to_stride = 22,
        });
    }
    cluster_dma_wait_all();
    return 0;
}

/* ==== overlapped, all of L1 ==== */

/* gemm: gemm 24x30 times 30x22
 * on the cluster of 8 cores; tile k=22, y=12 (2 in all, two of them in L1)
 * predicted: 10698 cycles */
int32_t net_gemm(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 832, L1_OUT = 1552, L1_WEIGHTS = 0 }; /* byte offsets in L1 */
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
                    .bytes = 752,
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
                .weights = cluster_l1(L1_WEIGHTS + 88),
                .bias = cluster_l1(L1_WEIGHTS),
                .out = cluster_l1(L1_OUT + tile % 2u * 264u),
                .rows = 12,
                .k = 22,
                .c = 30,
                .in_pitch = 30,
                .out_pitch = 22,
                .flags = 0,
                .requant.mul = 37,
                .requant.add = 1024,
                .requant.shift = 11,
                .requant.low = -128,
                .requant.high = 127,
            };
            cluster_run(cluster_gemm, &args);
            cluster_dma_start(&(cluster_dma_t){ /* result */
                .to = out + y_tiles[y].out_start * 22u,
                .from = cluster_l1(L1_OUT + tile % 2u * 264u),
                .bytes = 264,
                .rows = 1,
            });
        }
    }
    cluster_dma_wait_all();
    return 0;
}

/* ==== overlapped, 1000 B of L1 ==== */

/* gemm: gemm 24x30 times 30x22
 * on the cluster of 8 cores; tile k=8, y=16 (6 in all)
 * predicted: 16294 cycles */
int32_t net_gemm(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 0, L1_OUT = 800, L1_WEIGHTS = 480 }; /* byte offsets in L1 */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int16_t pad;
    } y_tiles[2] = { /* rows of the result, rows that they read, rows of zeros above */
        {0, 16, 0, 16, 0},
        {16, 8, 16, 8, 0},
    };
    uint32_t ready = 0; /* the last transfer that loads the next tile */

    for (uint32_t step = 0; step < 6u; ++step) {
        const uint32_t tile = step;
        const uint32_t y = tile / 3u;
        const uint32_t k = tile % 3u;
        if (k == 0u) { /* rows of in */
            cluster_dma_start(&(cluster_dma_t){
                .to = cluster_l1(L1_IN),
                .from = in + y_tiles[y].in_start * 30u,
                .bytes = y_tiles[y].in_size * 30,
                .rows = 1,
            });
        }
        ready = cluster_dma_start(&(cluster_dma_t){ /* weights */
            .to = cluster_l1(L1_WEIGHTS),
            .from = net_gemm_weights + k * 272u,
            .bytes = 272,
            .rows = 1,
        });
        cluster_dma_wait(ready);
        const cluster_gemm_t args = {
            .in = cluster_l1(L1_IN),
            .weights = cluster_l1(L1_WEIGHTS + 32),
            .bias = cluster_l1(L1_WEIGHTS),
            .out = cluster_l1(L1_OUT),
            .rows = y_tiles[y].out_size,
            .k = (k + 1u < 3u ? 8u : 6u),
            .c = 30,
            .in_pitch = 30,
            .out_pitch = 8,
            .flags = 0,
            .requant.mul = 37,
            .requant.add = 1024,
            .requant.shift = 11,
            .requant.low = -128,
            .requant.high = 127,
        };
        cluster_run(cluster_gemm, &args);
        cluster_dma_start(&(cluster_dma_t){ /* result */
            .to = out + y_tiles[y].out_start * 22u + k * 8u,
            .from = cluster_l1(L1_OUT),
            .bytes = (k + 1u < 3u ? 8u : 6u),
            .rows = y_tiles[y].out_size,
            .from_stride = 8,
            .to_stride = 22,
        });
    }
    cluster_dma_wait_all();
    return 0;
}
