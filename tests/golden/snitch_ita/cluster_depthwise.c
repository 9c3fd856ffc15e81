/* ==== published, all of L1 ==== */

/* depthwise: depthwise C=12 10x9 -> K=12 10x9, kernel 3x3, stride 1x1
 * on the cluster of 8 cores; tile k=12, y=10 (1 in all)
 * predicted: 13470 cycles */
int32_t net_depthwise(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 0, L1_OUT = 1080, L1_WEIGHTS = 2160 }; /* byte offsets in L1 */
    uint32_t ready = 0; /* the last transfer that loads the next tile */

    cluster_dma_start(&(cluster_dma_t){ /* rows of in */
        .to = cluster_l1(L1_IN),
        .from = in,
        .bytes = 1080,
        .rows = 1,
    });
    ready = cluster_dma_start(&(cluster_dma_t){ /* weights */
        .to = cluster_l1(L1_WEIGHTS),
        .from = net_depthwise_weights,
        .bytes = 160,
        .rows = 1,
    });
    cluster_dma_wait(ready);
    const cluster_conv_t args = {
        .in = cluster_l1(L1_IN),
        .weights = cluster_l1(L1_WEIGHTS + 48),
        .bias = cluster_l1(L1_WEIGHTS),
        .out = cluster_l1(L1_OUT),
        .k = 12,
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
        .out_pitch = 12,
        .flags = 0,
        .requant.mul = 1,
        .requant.add = 0,
        .requant.shift = 8,
        .requant.low = -128,
        .requant.high = 127,
    };
    cluster_run(cluster_depthwise, &args);
    cluster_dma_start(&(cluster_dma_t){ /* result */
        .to = out,
        .from = cluster_l1(L1_OUT),
        .bytes = 1080,
        .rows = 1,
    });
    cluster_dma_wait_all();
    return 0;
}

/* ==== published, 900 B of L1 ==== */

/* depthwise: depthwise C=12 10x9 -> K=12 10x9, kernel 3x3, stride 1x1
 * on the cluster of 8 cores; tile k=12, y=1 (10 in all)
 * predicted: 52719 cycles */
int32_t net_depthwise(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 0, L1_OUT = 324, L1_WEIGHTS = 432 }; /* byte offsets in L1 */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int16_t pad;
    } y_tiles[10] = { /* rows of the result, rows that they read, rows of zeros above */
        {0, 1, 0, 2, 1},
        {1, 1, 0, 3, 0},
        {2, 1, 1, 3, 0},
        {3, 1, 2, 3, 0},
        {4, 1, 3, 3, 0},
        {5, 1, 4, 3, 0},
        {6, 1, 5, 3, 0},
        {7, 1, 6, 3, 0},
        {8, 1, 7, 3, 0},
        {9, 1, 8, 2, 0},
    };
    uint32_t ready = 0; /* the last transfer that loads the next tile */

    for (uint32_t step = 0; step < 10u; ++step) {
        const uint32_t tile = step;
        const uint32_t y = tile;
        ready = cluster_dma_start(&(cluster_dma_t){ /* rows of in */
            .to = cluster_l1(L1_IN),
            .from = in + y_tiles[y].in_start * 108u,
            .bytes = y_tiles[y].in_size * 108,
            .rows = 1,
        });
        if (tile == 0u) { /* weights */
            ready = cluster_dma_start(&(cluster_dma_t){
                .to = cluster_l1(L1_WEIGHTS),
                .from = net_depthwise_weights,
                .bytes = 160,
                .rows = 1,
            });
        }
        cluster_dma_wait(ready);
        const cluster_conv_t args = {
            .in = cluster_l1(L1_IN),
            .weights = cluster_l1(L1_WEIGHTS + 48),
            .bias = cluster_l1(L1_WEIGHTS),
            .out = cluster_l1(L1_OUT),
            .k = 12,
            .c = 12,
            .iy = y_tiles[y].in_size,
            .ix = 9,
            .oy = 1,
            .ox = 9,
            .fy = 3,
            .fx = 3,
            .stride_y = 1,
            .stride_x = 1,
            .pad_top = y_tiles[y].pad,
            .pad_left = 1,
            .in_pitch = 12,
            .out_pitch = 12,
            .flags = 0,
            .requant.mul = 1,
            .requant.add = 0,
            .requant.shift = 8,
            .requant.low = -128,
            .requant.high = 127,
        };
        cluster_run(cluster_depthwise, &args);
        cluster_dma_start(&(cluster_dma_t){ /* result */
            .to = out + (y_tiles[y].out_start * 9) * 12u,
            .from = cluster_l1(L1_OUT),
            .bytes = 108,
            .rows = 1,
        });
    }
    cluster_dma_wait_all();
    return 0;
}

/* ==== overlapped, all of L1 ==== */

/* depthwise: depthwise C=12 10x9 -> K=12 10x9, kernel 3x3, stride 1x1
 * on the cluster of 8 cores; tile k=12, y=10 (1 in all)
 * predicted: 13470 cycles */
int32_t net_depthwise(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 0, L1_OUT = 1088, L1_WEIGHTS = 2176 }; /* byte offsets in L1 */
    uint32_t ready = 0; /* the last transfer that loads the next tile */

    cluster_dma_start(&(cluster_dma_t){ /* rows of in */
        .to = cluster_l1(L1_IN),
        .from = in,
        .bytes = 1080,
        .rows = 1,
    });
    ready = cluster_dma_start(&(cluster_dma_t){ /* weights */
        .to = cluster_l1(L1_WEIGHTS),
        .from = net_depthwise_weights,
        .bytes = 160,
        .rows = 1,
    });
    cluster_dma_wait(ready);
    const cluster_conv_t args = {
        .in = cluster_l1(L1_IN),
        .weights = cluster_l1(L1_WEIGHTS + 48),
        .bias = cluster_l1(L1_WEIGHTS),
        .out = cluster_l1(L1_OUT),
        .k = 12,
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
        .out_pitch = 12,
        .flags = 0,
        .requant.mul = 1,
        .requant.add = 0,
        .requant.shift = 8,
        .requant.low = -128,
        .requant.high = 127,
    };
    cluster_run(cluster_depthwise, &args);
    cluster_dma_start(&(cluster_dma_t){ /* result */
        .to = out,
        .from = cluster_l1(L1_OUT),
        .bytes = 1080,
        .rows = 1,
    });
    cluster_dma_wait_all();
    return 0;
}

/* ==== overlapped, 900 B of L1 ==== */

/* depthwise: depthwise C=12 10x9 -> K=12 10x9, kernel 3x3, stride 1x1
 * on the cluster of 8 cores; tile k=12, y=1 (10 in all)
 * predicted: 52719 cycles */
int32_t net_depthwise(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 0, L1_OUT = 560, L1_WEIGHTS = 336 }; /* byte offsets in L1 */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int16_t pad;
    } y_tiles[10] = { /* rows of the result, rows that they read, rows of zeros above */
        {0, 1, 0, 2, 1},
        {1, 1, 0, 3, 0},
        {2, 1, 1, 3, 0},
        {3, 1, 2, 3, 0},
        {4, 1, 3, 3, 0},
        {5, 1, 4, 3, 0},
        {6, 1, 5, 3, 0},
        {7, 1, 6, 3, 0},
        {8, 1, 7, 3, 0},
        {9, 1, 8, 2, 0},
    };
    uint32_t ready = 0; /* the last transfer that loads the next tile */

    for (uint32_t step = 0; step < 10u; ++step) {
        const uint32_t tile = step;
        const uint32_t y = tile;
        ready = cluster_dma_start(&(cluster_dma_t){ /* rows of in */
            .to = cluster_l1(L1_IN),
            .from = in + y_tiles[y].in_start * 108u,
            .bytes = y_tiles[y].in_size * 108,
            .rows = 1,
        });
        if (tile == 0u) { /* weights */
            ready = cluster_dma_start(&(cluster_dma_t){
                .to = cluster_l1(L1_WEIGHTS),
                .from = net_depthwise_weights,
                .bytes = 160,
                .rows = 1,
            });
        }
        cluster_dma_wait(ready);
        const cluster_conv_t args = {
            .in = cluster_l1(L1_IN),
            .weights = cluster_l1(L1_WEIGHTS + 48),
            .bias = cluster_l1(L1_WEIGHTS),
            .out = cluster_l1(L1_OUT),
            .k = 12,
            .c = 12,
            .iy = y_tiles[y].in_size,
            .ix = 9,
            .oy = 1,
            .ox = 9,
            .fy = 3,
            .fx = 3,
            .stride_y = 1,
            .stride_x = 1,
            .pad_top = y_tiles[y].pad,
            .pad_left = 1,
            .in_pitch = 12,
            .out_pitch = 12,
            .flags = 0,
            .requant.mul = 1,
            .requant.add = 0,
            .requant.shift = 8,
            .requant.low = -128,
            .requant.high = 127,
        };
        cluster_run(cluster_depthwise, &args);
        cluster_dma_start(&(cluster_dma_t){ /* result */
            .to = out + (y_tiles[y].out_start * 9) * 12u,
            .from = cluster_l1(L1_OUT),
            .bytes = 108,
            .rows = 1,
        });
    }
    cluster_dma_wait_all();
    return 0;
}
