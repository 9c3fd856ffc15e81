/* ==== published, all of L1 ==== */

/* conv: conv2d C=12 10x9 -> K=18 10x9, kernel 3x3, stride 1x1
 * on the cluster of 8 cores; tile k=18, y=10 (1 in all)
 * predicted: 92661 cycles */
int32_t net_conv(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 0, L1_OUT = 1080, L1_WEIGHTS = 2704 }; /* byte offsets in L1 */
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
        .bytes = 2016,
        .rows = 1,
    });
    cluster_dma_wait(ready);
    const cluster_conv_t args = {
        .in = cluster_l1(L1_IN),
        .weights = cluster_l1(L1_WEIGHTS + 72),
        .bias = cluster_l1(L1_WEIGHTS),
        .out = cluster_l1(L1_OUT),
        .k = 18,
        .c = 12,
        .iy = 10,
        .ix = 9,
        .oy = 10,
        .ox = 9,
        .fy = 3,
        .fx = 3,
        .stride_y = 1,
        .stride_x = 1,
        .pad_top = 1,
        .pad_left = 1,
        .in_pitch = 12,
        .out_pitch = 18,
        .flags = 0,
        .requant.mul = 37,
        .requant.add = 1024,
        .requant.shift = 11,
        .requant.low = -128,
        .requant.high = 127,
    };
    cluster_run(cluster_conv2d, &args);
    cluster_dma_start(&(cluster_dma_t){ /* result */
        .to = out,
        .from = cluster_l1(L1_OUT),
        .bytes = 1620,
        .rows = 1,
    });
    cluster_dma_wait_all();
    return 0;
}

/* ==== published, 2600 B of L1 ==== */

/* conv: conv2d C=12 10x9 -> K=18 10x9, kernel 3x3, stride 1x1
 * on the cluster of 8 cores; tile k=8, y=7 (6 in all)
 * predicted: 124448 cycles */
int32_t net_conv(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 0, L1_OUT = 972, L1_WEIGHTS = 1488 }; /* byte offsets in L1 */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int16_t pad;
    } y_tiles[2] = { /* rows of the result, rows that they read, rows of zeros above */
        {0, 7, 0, 8, 1},
        {7, 3, 6, 4, 0},
    };
    uint32_t ready = 0; /* the last transfer that loads the next tile */

    for (uint32_t step = 0; step < 6u; ++step) {
        const uint32_t tile = step;
        const uint32_t y = tile / 3u;
        const uint32_t k = tile % 3u;
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
            .from = net_conv_weights + k * 896u,
            .bytes = 896,
            .rows = 1,
        });
        cluster_dma_wait(ready);
        const cluster_conv_t args = {
            .in = cluster_l1(L1_IN),
            .weights = cluster_l1(L1_WEIGHTS + 32),
            .bias = cluster_l1(L1_WEIGHTS),
            .out = cluster_l1(L1_OUT),
            .k = (k + 1u < 3u ? 8u : 2u),
            .c = 12,
            .iy = y_tiles[y].in_size,
            .ix = 9,
            .oy = y_tiles[y].out_size,
            .ox = 9,
            .fy = 3,
            .fx = 3,
            .stride_y = 1,
            .stride_x = 1,
            .pad_top = y_tiles[y].pad,
            .pad_left = 1,
            .in_pitch = 12,
            .out_pitch = 8,
            .flags = 0,
            .requant.mul = 37,
            .requant.add = 1024,
            .requant.shift = 11,
            .requant.low = -128,
            .requant.high = 127,
        };
        cluster_run(cluster_conv2d, &args);
        cluster_dma_start(&(cluster_dma_t){ /* result */
            .to = out + (y_tiles[y].out_start * 9) * 18u + k * 8u,
            .from = cluster_l1(L1_OUT),
            .bytes = (k + 1u < 3u ? 8u : 2u),
            .rows = y_tiles[y].out_size * 9,
            .from_stride = 8,
            .to_stride = 18,
        });
    }
    cluster_dma_wait_all();
    return 0;
}

/* ==== overlapped, all of L1 ==== */

/* conv: conv2d C=12 10x9 -> K=18 10x9, kernel 3x3, stride 1x1
 * on the cluster of 8 cores; tile k=18, y=10 (1 in all)
 * predicted: 92661 cycles */
int32_t net_conv(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 3760, L1_OUT = 2128, L1_WEIGHTS = 0 }; /* byte offsets in L1 */
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
        .bytes = 2016,
        .rows = 1,
    });
    cluster_dma_wait(ready);
    const cluster_conv_t args = {
        .in = cluster_l1(L1_IN),
        .weights = cluster_l1(L1_WEIGHTS + 72),
        .bias = cluster_l1(L1_WEIGHTS),
        .out = cluster_l1(L1_OUT),
        .k = 18,
        .c = 12,
        .iy = 10,
        .ix = 9,
        .oy = 10,
        .ox = 9,
        .fy = 3,
        .fx = 3,
        .stride_y = 1,
        .stride_x = 1,
        .pad_top = 1,
        .pad_left = 1,
        .in_pitch = 12,
        .out_pitch = 18,
        .flags = 0,
        .requant.mul = 37,
        .requant.add = 1024,
        .requant.shift = 11,
        .requant.low = -128,
        .requant.high = 127,
    };
    cluster_run(cluster_conv2d, &args);
    cluster_dma_start(&(cluster_dma_t){ /* result */
        .to = out,
        .from = cluster_l1(L1_OUT),
        .bytes = 1620,
        .rows = 1,
    });
    cluster_dma_wait_all();
    return 0;
}

/* ==== overlapped, 2600 B of L1 ==== */

/* conv: conv2d C=12 10x9 -> K=18 10x9, kernel 3x3, stride 1x1
 * on the cluster of 8 cores; tile k=4, y=10 (5 in all)
 * predicted: 111062 cycles */
int32_t net_conv(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 0, L1_OUT = 1584, L1_WEIGHTS = 1088 }; /* byte offsets in L1 */
    uint32_t ready = 0; /* the last transfer that loads the next tile */

    for (uint32_t step = 0; step < 5u; ++step) {
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
            .from = net_conv_weights + k * 448u,
            .bytes = 448,
            .rows = 1,
        });
        cluster_dma_wait(ready);
        const cluster_conv_t args = {
            .in = cluster_l1(L1_IN),
            .weights = cluster_l1(L1_WEIGHTS + 16),
            .bias = cluster_l1(L1_WEIGHTS),
            .out = cluster_l1(L1_OUT),
            .k = (k + 1u < 5u ? 4u : 2u),
            .c = 12,
            .iy = 10,
            .ix = 9,
            .oy = 10,
            .ox = 9,
            .fy = 3,
            .fx = 3,
            .stride_y = 1,
            .stride_x = 1,
            .pad_top = 1,
            .pad_left = 1,
            .in_pitch = 12,
            .out_pitch = 4,
            .flags = 0,
            .requant.mul = 37,
            .requant.add = 1024,
            .requant.shift = 11,
            .requant.low = -128,
            .requant.high = 127,
        };
        cluster_run(cluster_conv2d, &args);
        cluster_dma_start(&(cluster_dma_t){ /* result */
            .to = out + k * 4u,
            .from = cluster_l1(L1_OUT),
            .bytes = (k + 1u < 5u ? 4u : 2u),
            .rows = 90,
            .from_stride = 4,
            .to_stride = 18,
        });
    }
    cluster_dma_wait_all();
    return 0;
}
