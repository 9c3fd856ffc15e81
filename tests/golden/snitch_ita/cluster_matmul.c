/* ==== published, all of L1 ==== */

/* matmul: matmul 2 of 24x30 times 30x22
 * on the cluster of 8 cores; tile k=528, y=2 (1 in all)
 * predicted: 19591 cycles */
int32_t net_matmul(const int8_t *in, const int8_t *second, int8_t *out)
{
    enum { L1_IN = 0, L1_SECOND = 1440, L1_OUT = 2768 }; /* byte offsets in L1 */
    uint32_t ready = 0; /* the last transfer that loads the next tile */

    cluster_dma_start(&(cluster_dma_t){ /* rows of in */
        .to = cluster_l1(L1_IN),
        .from = in,
        .bytes = 1440,
        .rows = 1,
    });
    ready = cluster_dma_start(&(cluster_dma_t){ /* second */
        .to = cluster_l1(L1_SECOND),
        .from = second,
        .bytes = 1320,
        .rows = 1,
    });
    cluster_dma_wait(ready);
    const cluster_matmul_t args = {
        .a = cluster_l1(L1_IN),
        .second = cluster_l1(L1_SECOND),
        .out = cluster_l1(L1_OUT),
        .batch = 2,
        .rows = 24,
        .k = 22,
        .c = 30,
        .flags = 0,
        .requant.mul = 37,
        .requant.add = 1024,
        .requant.shift = 11,
        .requant.low = -128,
        .requant.high = 127,
    };
    cluster_run(cluster_matmul, &args);
    cluster_dma_start(&(cluster_dma_t){ /* result */
        .to = out,
        .from = cluster_l1(L1_OUT),
        .bytes = 1056,
        .rows = 1,
    });
    cluster_dma_wait_all();
    return 0;
}

/* ==== published, 3000 B of L1 ==== */

/* matmul: matmul 2 of 24x30 times 30x22
 * on the cluster of 8 cores; tile k=528, y=1 (2 in all)
 * predicted: 26256 cycles */
int32_t net_matmul(const int8_t *in, const int8_t *second, int8_t *out)
{
    enum { L1_IN = 0, L1_SECOND = 720, L1_OUT = 2048 }; /* byte offsets in L1 */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int16_t pad;
    } y_tiles[2] = { /* rows of the result, rows that they read, rows of zeros above */
        {0, 1, 0, 1, 0},
        {1, 1, 1, 1, 0},
    };
    uint32_t ready = 0; /* the last transfer that loads the next tile */

    for (uint32_t step = 0; step < 2u; ++step) {
        const uint32_t tile = step;
        const uint32_t y = tile;
        ready = cluster_dma_start(&(cluster_dma_t){ /* rows of in */
            .to = cluster_l1(L1_IN),
            .from = in + y_tiles[y].in_start * 720u,
            .bytes = 720,
            .rows = 1,
        });
        if (tile == 0u) { /* second */
            ready = cluster_dma_start(&(cluster_dma_t){
                .to = cluster_l1(L1_SECOND),
                .from = second,
                .bytes = 1320,
                .rows = 1,
            });
        }
        cluster_dma_wait(ready);
        const cluster_matmul_t args = {
            .a = cluster_l1(L1_IN),
            .second = cluster_l1(L1_SECOND + y_tiles[y].out_start * 660u),
            .out = cluster_l1(L1_OUT),
            .batch = 1,
            .rows = 24,
            .k = 22,
            .c = 30,
            .flags = 0,
            .requant.mul = 37,
            .requant.add = 1024,
            .requant.shift = 11,
            .requant.low = -128,
            .requant.high = 127,
        };
        cluster_run(cluster_matmul, &args);
        cluster_dma_start(&(cluster_dma_t){ /* result */
            .to = out + y_tiles[y].out_start * 528u,
            .from = cluster_l1(L1_OUT),
            .bytes = 528,
            .rows = 1,
        });
    }
    cluster_dma_wait_all();
    return 0;
}

/* ==== overlapped, all of L1 ==== */

/* matmul: matmul 2 of 24x30 times 30x22
 * on the cluster of 8 cores; tile k=528, y=2 (1 in all)
 * predicted: 19591 cycles */
int32_t net_matmul(const int8_t *in, const int8_t *second, int8_t *out)
{
    enum { L1_IN = 0, L1_SECOND = 1440, L1_OUT = 2768 }; /* byte offsets in L1 */
    uint32_t ready = 0; /* the last transfer that loads the next tile */

    cluster_dma_start(&(cluster_dma_t){ /* rows of in */
        .to = cluster_l1(L1_IN),
        .from = in,
        .bytes = 1440,
        .rows = 1,
    });
    ready = cluster_dma_start(&(cluster_dma_t){ /* second */
        .to = cluster_l1(L1_SECOND),
        .from = second,
        .bytes = 1320,
        .rows = 1,
    });
    cluster_dma_wait(ready);
    const cluster_matmul_t args = {
        .a = cluster_l1(L1_IN),
        .second = cluster_l1(L1_SECOND),
        .out = cluster_l1(L1_OUT),
        .batch = 2,
        .rows = 24,
        .k = 22,
        .c = 30,
        .flags = 0,
        .requant.mul = 37,
        .requant.add = 1024,
        .requant.shift = 11,
        .requant.low = -128,
        .requant.high = 127,
    };
    cluster_run(cluster_matmul, &args);
    cluster_dma_start(&(cluster_dma_t){ /* result */
        .to = out,
        .from = cluster_l1(L1_OUT),
        .bytes = 1056,
        .rows = 1,
    });
    cluster_dma_wait_all();
    return 0;
}

/* ==== overlapped, 3000 B of L1 ==== */

/* matmul: matmul 2 of 24x30 times 30x22
 * on the cluster of 8 cores; tile k=528, y=1 (2 in all)
 * predicted: 26256 cycles */
int32_t net_matmul(const int8_t *in, const int8_t *second, int8_t *out)
{
    enum { L1_IN = 1328, L1_SECOND = 0, L1_OUT = 2048 }; /* byte offsets in L1 */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int16_t pad;
    } y_tiles[2] = { /* rows of the result, rows that they read, rows of zeros above */
        {0, 1, 0, 1, 0},
        {1, 1, 1, 1, 0},
    };
    uint32_t ready = 0; /* the last transfer that loads the next tile */

    for (uint32_t step = 0; step < 2u; ++step) {
        const uint32_t tile = step;
        const uint32_t y = tile;
        ready = cluster_dma_start(&(cluster_dma_t){ /* rows of in */
            .to = cluster_l1(L1_IN),
            .from = in + y_tiles[y].in_start * 720u,
            .bytes = 720,
            .rows = 1,
        });
        if (tile == 0u) { /* second */
            ready = cluster_dma_start(&(cluster_dma_t){
                .to = cluster_l1(L1_SECOND),
                .from = second,
                .bytes = 1320,
                .rows = 1,
            });
        }
        cluster_dma_wait(ready);
        const cluster_matmul_t args = {
            .a = cluster_l1(L1_IN),
            .second = cluster_l1(L1_SECOND + y_tiles[y].out_start * 660u),
            .out = cluster_l1(L1_OUT),
            .batch = 1,
            .rows = 24,
            .k = 22,
            .c = 30,
            .flags = 0,
            .requant.mul = 37,
            .requant.add = 1024,
            .requant.shift = 11,
            .requant.low = -128,
            .requant.high = 127,
        };
        cluster_run(cluster_matmul, &args);
        cluster_dma_start(&(cluster_dma_t){ /* result */
            .to = out + y_tiles[y].out_start * 528u,
            .from = cluster_l1(L1_OUT),
            .bytes = 528,
            .rows = 1,
        });
    }
    cluster_dma_wait_all();
    return 0;
}
