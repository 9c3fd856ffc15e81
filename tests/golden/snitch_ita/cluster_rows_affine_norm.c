/* rows: rows 30x24x1
 * on the cluster of 8 cores; tile k=30, y=24 (1 in all)
 * predicted: 1500 cycles */
int32_t net_rows(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 0, L1_OUT = 720, L1_WEIGHTS = 1440 }; /* byte offsets in L1 */
    uint32_t ready = 0; /* the last transfer that loads the next tile */

    cluster_dma_start(&(cluster_dma_t){ /* rows of in */
        .to = cluster_l1(L1_IN),
        .from = in,
        .bytes = 720,
        .rows = 1,
    });
    ready = cluster_dma_start(&(cluster_dma_t){ /* weights */
        .to = cluster_l1(L1_WEIGHTS),
        .from = net_rows_constants,
        .bytes = 240,
        .rows = 1,
    });
    cluster_dma_wait(ready);
    const cluster_norm_t args = {
        .in = cluster_l1(L1_IN),
        .out = cluster_l1(L1_OUT),
        .weight = cluster_l1(L1_WEIGHTS),
        .bias = cluster_l1(L1_WEIGHTS + 120),
        .rows = 24,
        .n = 30,
        .shift = 12,
        .flags = 0,
    };
    cluster_run(cluster_affine_norm, &args);
    cluster_dma_start(&(cluster_dma_t){ /* result */
        .to = out,
        .from = cluster_l1(L1_OUT),
        .bytes = 720,
        .rows = 1,
    });
    cluster_dma_wait_all();
    return 0;
}

/* rows: rows 30x24x1
 * on the cluster of 8 cores; tile k=30, y=16 (2 in all)
 * predicted: 2114 cycles */
int32_t net_rows(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 0, L1_OUT = 480, L1_WEIGHTS = 960 }; /* byte offsets in L1 */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int16_t pad;
    } y_tiles[2] = { /* rows of the result, rows that they read, rows of zeros above */
        {0, 16, 0, 16, 0},
        {16, 8, 16, 8, 0},
    };
    uint32_t ready = 0; /* the last transfer that loads the next tile */

    for (uint32_t step = 0; step < 2u; ++step) {
        const uint32_t tile = step;
        const uint32_t y = tile;
        ready = cluster_dma_start(&(cluster_dma_t){ /* rows of in */
            .to = cluster_l1(L1_IN),
            .from = in + y_tiles[y].in_start * 30u,
            .bytes = y_tiles[y].in_size * 30,
            .rows = 1,
        });
        if (tile == 0u) { /* weights */
            ready = cluster_dma_start(&(cluster_dma_t){
                .to = cluster_l1(L1_WEIGHTS),
                .from = net_rows_constants,
                .bytes = 240,
                .rows = 1,
            });
        }
        cluster_dma_wait(ready);
        const cluster_norm_t args = {
            .in = cluster_l1(L1_IN),
            .out = cluster_l1(L1_OUT),
            .weight = cluster_l1(L1_WEIGHTS),
            .bias = cluster_l1(L1_WEIGHTS + 120),
            .rows = y_tiles[y].out_size,
            .n = 30,
            .shift = 12,
            .flags = 0,
        };
        cluster_run(cluster_affine_norm, &args);
        cluster_dma_start(&(cluster_dma_t){ /* result */
            .to = out + y_tiles[y].out_start * 30u,
            .from = cluster_l1(L1_OUT),
            .bytes = y_tiles[y].out_size * 30,
            .rows = 1,
        });
    }
    cluster_dma_wait_all();
    return 0;
}
