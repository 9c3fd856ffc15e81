/* ==== published, all of L1 ==== */

/* conv: conv2d C=12 10x9 -> K=18 5x4, kernel 3x3, stride 2x2
 * on the cluster of 8 cores; tile k=18, y=5 (1 in all)
 * predicted: 32104 cycles */
int32_t net_conv(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 0, L1_OUT = 1080, L1_WEIGHTS = 1440 }; /* byte offsets in L1 */
    uint32_t ready = 0; /* the last transfer that loads the next tile */

    cluster_dma_start(&(cluster_dma_t){ /* rows of in */
        .to = cluster_l1(L1_IN),
        .from = in,
        .bytes = 1080,
        .rows = 1,
    });
    ready = cluster_dma_start(&(cluster_dma_t){ /* weights */
        .to = cluster_l1(L1_WEIGHTS),
        .from = net_conv_weights,
        .bytes = 2112,
        .rows = 1,
    });
    cluster_dma_wait(ready);
    const cluster_conv_t args = {
        .in = cluster_l1(L1_IN),
        .weights = cluster_l1(L1_WEIGHTS + 164),
        .out = cluster_l1(L1_OUT),
        .k = 18,
        .c = 12,
        .iy = 10,
        .ix = 9,
        .oy = 5,
        .ox = 4,
        .fy = 3,
        .fx = 3,
        .stride_y = 2,
        .stride_x = 2,
        .pad_top = 1,
        .pad_left = 1,
        .in_pitch = 12,
        .out_pitch = 18,
        .flags = CLUSTER_PER_CHANNEL,
        .requant.muls = cluster_l1(L1_WEIGHTS),
        .requant.adds = cluster_l1(L1_WEIGHTS + 72),
        .requant.shifts = cluster_l1(L1_WEIGHTS + 144),
        .requant.low = 0,
        .requant.high = 127,
    };
    cluster_run(cluster_conv2d, &args);
    cluster_dma_start(&(cluster_dma_t){ /* result */
        .to = out,
        .from = cluster_l1(L1_OUT),
        .bytes = 360,
        .rows = 1,
    });
    cluster_dma_wait_all();
    return 0;
}

/* ==== published, 2600 B of L1 ==== */

/* conv: conv2d C=12 10x9 -> K=18 5x4, kernel 3x3, stride 2x2
 * on the cluster of 8 cores; tile k=12, y=3 (4 in all)
 * predicted: 49868 cycles */
int32_t net_conv(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 0, L1_OUT = 756, L1_WEIGHTS = 912 }; /* byte offsets in L1 */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int16_t pad;
    } y_tiles[2] = { /* rows of the result, rows that they read, rows of zeros above */
        {0, 3, 0, 6, 1},
        {3, 2, 5, 5, 0},
    };
    uint32_t ready = 0; /* the last transfer that loads the next tile */

    for (uint32_t step = 0; step < 4u; ++step) {
        const uint32_t tile = step;
        const uint32_t y = tile / 2u;
        const uint32_t k = tile % 2u;
        if (k == 0u) { /* rows of in */
            cluster_dma_start(&(cluster_dma_t){
                .to = cluster_l1(L1_IN),
                .from = in + y_tiles[y].in_start * 108u,
                .bytes = y_tiles[y].in_size * 108,
                .rows = 1,
            });
        }
        ready = cluster_dma_start(&(cluster_dma_t){ /* weights */
            .to = cluster_l1(L1_WEIGHTS),
            .from = net_conv_weights + k * 1408u,
            .bytes = 1408,
            .rows = 1,
        });
        cluster_dma_wait(ready);
        const cluster_conv_t args = {
            .in = cluster_l1(L1_IN),
            .weights = cluster_l1(L1_WEIGHTS + 108),
            .out = cluster_l1(L1_OUT),
            .k = (k + 1u < 2u ? 12u : 6u),
            .c = 12,
            .iy = y_tiles[y].in_size,
            .ix = 9,
            .oy = y_tiles[y].out_size,
            .ox = 4,
            .fy = 3,
            .fx = 3,
            .stride_y = 2,
            .stride_x = 2,
            .pad_top = y_tiles[y].pad,
            .pad_left = 1,
            .in_pitch = 12,
            .out_pitch = 12,
            .flags = CLUSTER_PER_CHANNEL,
            .requant.muls = cluster_l1(L1_WEIGHTS),
            .requant.adds = cluster_l1(L1_WEIGHTS + 48),
            .requant.shifts = cluster_l1(L1_WEIGHTS + 96),
            .requant.low = 0,
            .requant.high = 127,
        };
        cluster_run(cluster_conv2d, &args);
        cluster_dma_start(&(cluster_dma_t){ /* result */
            .to = out + (y_tiles[y].out_start * 4) * 18u + k * 12u,
            .from = cluster_l1(L1_OUT),
            .bytes = (k + 1u < 2u ? 12u : 6u),
            .rows = y_tiles[y].out_size * 4,
            .from_stride = 12,
            .to_stride = 18,
        });
    }
    cluster_dma_wait_all();
    return 0;
}

/* ==== overlapped, all of L1 ==== */

/* conv: conv2d C=12 10x9 -> K=18 5x4, kernel 3x3, stride 2x2
 * on the cluster of 8 cores; tile k=18, y=5 (1 in all)
 * predicted: 32104 cycles */
int32_t net_conv(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 2192, L1_OUT = 3280, L1_WEIGHTS = 0 }; /* byte offsets in L1 */
    uint32_t ready = 0; /* the last transfer that loads the next tile */

    cluster_dma_start(&(cluster_dma_t){ /* rows of in */
        .to = cluster_l1(L1_IN),
        .from = in,
        .bytes = 1080,
        .rows = 1,
    });
    ready = cluster_dma_start(&(cluster_dma_t){ /* weights */
        .to = cluster_l1(L1_WEIGHTS),
        .from = net_conv_weights,
        .bytes = 2112,
        .rows = 1,
    });
    cluster_dma_wait(ready);
    const cluster_conv_t args = {
        .in = cluster_l1(L1_IN),
        .weights = cluster_l1(L1_WEIGHTS + 164),
        .out = cluster_l1(L1_OUT),
        .k = 18,
        .c = 12,
        .iy = 10,
        .ix = 9,
        .oy = 5,
        .ox = 4,
        .fy = 3,
        .fx = 3,
        .stride_y = 2,
        .stride_x = 2,
        .pad_top = 1,
        .pad_left = 1,
        .in_pitch = 12,
        .out_pitch = 18,
        .flags = CLUSTER_PER_CHANNEL,
        .requant.muls = cluster_l1(L1_WEIGHTS),
        .requant.adds = cluster_l1(L1_WEIGHTS + 72),
        .requant.shifts = cluster_l1(L1_WEIGHTS + 144),
        .requant.low = 0,
        .requant.high = 127,
    };
    cluster_run(cluster_conv2d, &args);
    cluster_dma_start(&(cluster_dma_t){ /* result */
        .to = out,
        .from = cluster_l1(L1_OUT),
        .bytes = 360,
        .rows = 1,
    });
    cluster_dma_wait_all();
    return 0;
}

/* ==== overlapped, 2600 B of L1 ==== */

/* conv: conv2d C=12 10x9 -> K=18 5x4, kernel 3x3, stride 2x2
 * on the cluster of 8 cores; tile k=8, y=5 (3 in all)
 * predicted: 34046 cycles */
int32_t net_conv(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 0, L1_OUT = 2080, L1_WEIGHTS = 1088 }; /* byte offsets in L1 */
    uint32_t ready = 0; /* the last transfer that loads the next tile */

    for (uint32_t step = 0; step < 3u; ++step) {
        const uint32_t tile = step;
        const uint32_t k = tile;
        if (tile == 0u) { /* rows of in */
            cluster_dma_start(&(cluster_dma_t){
                .to = cluster_l1(L1_IN),
                .from = in,
                .bytes = 1080,
                .rows = 1,
            });
        }
        ready = cluster_dma_start(&(cluster_dma_t){ /* weights */
            .to = cluster_l1(L1_WEIGHTS),
            .from = net_conv_weights + k * 944u,
            .bytes = 944,
            .rows = 1,
        });
        cluster_dma_wait(ready);
        const cluster_conv_t args = {
            .in = cluster_l1(L1_IN),
            .weights = cluster_l1(L1_WEIGHTS + 72),
            .out = cluster_l1(L1_OUT),
            .k = (k + 1u < 3u ? 8u : 2u),
            .c = 12,
            .iy = 10,
            .ix = 9,
            .oy = 5,
            .ox = 4,
            .fy = 3,
            .fx = 3,
            .stride_y = 2,
            .stride_x = 2,
            .pad_top = 1,
            .pad_left = 1,
            .in_pitch = 12,
            .out_pitch = 8,
            .flags = CLUSTER_PER_CHANNEL,
            .requant.muls = cluster_l1(L1_WEIGHTS),
            .requant.adds = cluster_l1(L1_WEIGHTS + 32),
            .requant.shifts = cluster_l1(L1_WEIGHTS + 64),
            .requant.low = 0,
            .requant.high = 127,
        };
        cluster_run(cluster_conv2d, &args);
        cluster_dma_start(&(cluster_dma_t){ /* result */
            .to = out + k * 8u,
            .from = cluster_l1(L1_OUT),
            .bytes = (k + 1u < 3u ? 8u : 2u),
            .rows = 20,
            .from_stride = 8,
            .to_stride = 18,
        });
    }
    cluster_dma_wait_all();
    return 0;
}
