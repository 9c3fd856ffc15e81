/* ==== overlapped, all of L1, weights in SRAM ==== */

/* depthwise: depthwise C=12 20x18 -> K=12 10x9, kernel 3x3, stride 2x2
 * on the N-EUREKA, convolution engine 6x6; tile k=12, y=3 (4 in all, two of them in L1)
 * predicted: 3635 cycles */
int32_t net_depthwise(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 3248, L1_OUT = 0, L1_WEIGHTS = 6272 }; /* byte offsets in L1 */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int16_t pad;
    } y_tiles[4] = { /* rows of the result, rows that they read, rows of zeros above */
        {0, 3, 0, 6, 1},
        {3, 3, 5, 7, 0},
        {6, 3, 11, 7, 0},
        {9, 1, 17, 3, 0},
    };
    /* The jobs of a tile, whose registers begin its constants:
     *   0: 5x17 pixels, 1 row of zeros above
     *   1: 5x17 pixels
     *   2: 1x17 pixels
     */
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    uint32_t running[2] = {0}; /* tasks given to N-EUREKA, convolution engine 6x6 */

    /* Several tiles are under way at a time, each at a different stage:
     *
     *   step     load        start           finish, store
     *   0        tile 0      -               -               prologue
     *   1        tile 1      tile 0          -               prologue
     *   2 to 3   tile step   tile step - 1   tile step - 2   steady state
     *   4        -           tile 3          tile 2          epilogue
     *   5        -           -               tile 3          epilogue
     */
    for (uint32_t step = 0; step < 6u; ++step) {
        if (step >= 1u && step < 5u) { /* start */
            const uint32_t tile = step - 1u;
            const uint32_t y = tile;
            cluster_dma_wait(ready);
            const siracusa_neureka_registers_t *const jobs = cluster_l1(L1_WEIGHTS);
            const siracusa_neureka_places_t places = {
                .weights = htvm_hal_addr(net_depthwise_packed),
                .input = HTVM_L1_BASE + L1_IN + y % 2u * 1512u,
                .output = HTVM_L1_BASE + L1_OUT + tile % 2u * 1620u + 324,
                .factors = HTVM_L1_BASE + L1_WEIGHTS,
            };
            running[tile % 2u] = siracusa_neureka_start(&jobs[y < 1u ? 0u : y < 3u ? 1u : 2u], &places);
        }
        if (step >= 2u) { /* finish, store */
            const uint32_t tile = step - 2u;
            const uint32_t y = tile;
            siracusa_neureka_wait_for(running[tile % 2u]);
            const siracusa_neureka_keep_t keep = {
                .to = cluster_l1(L1_OUT + tile % 2u * 1620u),
                .from = cluster_l1(L1_OUT + tile % 2u * 1620u + 324),
                .rows = y_tiles[y].out_size,
                .columns = 9,
                .bytes = 12,
                .from_row = 204,
                .relu = 0,
            };
            cluster_run(siracusa_neureka_keep, &keep);
            cluster_dma_start(&(cluster_dma_t){ /* result */
                .to = out + (y_tiles[y].out_start * 9) * 12u,
                .from = cluster_l1(L1_OUT + tile % 2u * 1620u),
                .bytes = (y_tiles[y].out_size * 9) * 12,
                .rows = 1,
            });
        }
        if (step < 4u) { /* load */
            const uint32_t tile = step;
            const uint32_t y = tile;
            ready = cluster_dma_start(&(cluster_dma_t){ /* rows of in */
                .to = cluster_l1(L1_IN + y % 2u * 1512u),
                .from = in + y_tiles[y].in_start * 216u,
                .bytes = y_tiles[y].in_size * 216,
                .rows = 1,
            });
            if (tile == 0u) { /* weights */
                ready = cluster_dma_start(&(cluster_dma_t){
                    .to = cluster_l1(L1_WEIGHTS),
                    .from = net_depthwise_weights,
                    .bytes = 352,
                    .rows = 1,
                });
            }
        }
    }
    cluster_dma_wait_all();
    return 0;
}

/* ==== overlapped, 6000 B of L1, weights in SRAM ==== */

/* depthwise: depthwise C=12 20x18 -> K=12 10x9, kernel 3x3, stride 2x2
 * on the N-EUREKA, convolution engine 6x6; tile k=12, y=2 (5 in all, two of them in L1)
 * predicted: 4233 cycles */
int32_t net_depthwise(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 0, L1_OUT = 2160, L1_WEIGHTS = 4320 }; /* byte offsets in L1 */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int16_t pad;
    } y_tiles[5] = { /* rows of the result, rows that they read, rows of zeros above */
        {0, 2, 0, 4, 1},
        {2, 2, 3, 5, 0},
        {4, 2, 7, 5, 0},
        {6, 2, 11, 5, 0},
        {8, 2, 15, 5, 0},
    };
    /* The jobs of a tile, whose registers begin its constants:
     *   0: 3x17 pixels, 1 row of zeros above
     *   1: 3x17 pixels
     */
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    uint32_t running[2] = {0}; /* tasks given to N-EUREKA, convolution engine 6x6 */

    /* Several tiles are under way at a time, each at a different stage:
     *
     *   step     load        start           finish, store
     *   0        tile 0      -               -               prologue
     *   1        tile 1      tile 0          -               prologue
     *   2 to 4   tile step   tile step - 1   tile step - 2   steady state
     *   5        -           tile 4          tile 3          epilogue
     *   6        -           -               tile 4          epilogue
     */
    for (uint32_t step = 0; step < 7u; ++step) {
        if (step >= 1u && step < 6u) { /* start */
            const uint32_t tile = step - 1u;
            const uint32_t y = tile;
            cluster_dma_wait(ready);
            const siracusa_neureka_registers_t *const jobs = cluster_l1(L1_WEIGHTS);
            const siracusa_neureka_places_t places = {
                .weights = htvm_hal_addr(net_depthwise_packed),
                .input = HTVM_L1_BASE + L1_IN + y % 2u * 1080u,
                .output = HTVM_L1_BASE + L1_OUT + tile % 2u * 1080u + 216,
                .factors = HTVM_L1_BASE + L1_WEIGHTS,
            };
            running[tile % 2u] = siracusa_neureka_start(&jobs[y < 1u ? 0u : 1u], &places);
        }
        if (step >= 2u) { /* finish, store */
            const uint32_t tile = step - 2u;
            const uint32_t y = tile;
            siracusa_neureka_wait_for(running[tile % 2u]);
            const siracusa_neureka_keep_t keep = {
                .to = cluster_l1(L1_OUT + tile % 2u * 1080u),
                .from = cluster_l1(L1_OUT + tile % 2u * 1080u + 216),
                .rows = 2,
                .columns = 9,
                .bytes = 12,
                .from_row = 204,
                .relu = 0,
            };
            cluster_run(siracusa_neureka_keep, &keep);
            cluster_dma_start(&(cluster_dma_t){ /* result */
                .to = out + (y_tiles[y].out_start * 9) * 12u,
                .from = cluster_l1(L1_OUT + tile % 2u * 1080u),
                .bytes = 216,
                .rows = 1,
            });
        }
        if (step < 5u) { /* load */
            const uint32_t tile = step;
            const uint32_t y = tile;
            ready = cluster_dma_start(&(cluster_dma_t){ /* rows of in */
                .to = cluster_l1(L1_IN + y % 2u * 1080u),
                .from = in + y_tiles[y].in_start * 216u,
                .bytes = y_tiles[y].in_size * 216,
                .rows = 1,
            });
            if (tile == 0u) { /* weights */
                ready = cluster_dma_start(&(cluster_dma_t){
                    .to = cluster_l1(L1_WEIGHTS),
                    .from = net_depthwise_weights,
                    .bytes = 256,
                    .rows = 1,
                });
            }
        }
    }
    cluster_dma_wait_all();
    return 0;
}

/* ==== published, 13000 B of L1, weights in L1 ==== */

/* depthwise: depthwise C=12 20x18 -> K=12 10x9, kernel 3x3, stride 2x2
 * on the N-EUREKA, convolution engine 6x6; tile k=12, y=10 (1 in all)
 * predicted: 4556 cycles */
int32_t net_depthwise(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 0, L1_OUT = 4320, L1_WEIGHTS = 9728 }; /* byte offsets in L1 */
    /* The jobs of a tile, whose registers begin its constants:
     *   0: 19x17 pixels, 1 row of zeros above
     */
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    uint32_t running = 0; /* tasks given to N-EUREKA, convolution engine 6x6 */

    cluster_dma_start(&(cluster_dma_t){ /* rows of in */
        .to = cluster_l1(L1_IN),
        .from = in,
        .bytes = 4320,
        .rows = 1,
    });
    ready = cluster_dma_start(&(cluster_dma_t){ /* weights */
        .to = cluster_l1(L1_WEIGHTS),
        .from = net_depthwise_weights,
        .bytes = 416,
        .rows = 1,
    });
    cluster_dma_wait(ready);
    const siracusa_neureka_registers_t *const jobs = cluster_l1(L1_WEIGHTS);
    const siracusa_neureka_places_t places = {
        .weights = HTVM_L1_BASE + L1_WEIGHTS + 96,
        .input = HTVM_L1_BASE + L1_IN,
        .output = HTVM_L1_BASE + L1_OUT + 1080,
        .factors = HTVM_L1_BASE + L1_WEIGHTS,
    };
    running = siracusa_neureka_start(&jobs[0u], &places);
    siracusa_neureka_wait_for(running);
    const siracusa_neureka_keep_t keep = {
        .to = cluster_l1(L1_OUT),
        .from = cluster_l1(L1_OUT + 1080),
        .rows = 10,
        .columns = 9,
        .bytes = 12,
        .from_row = 204,
        .relu = 0,
    };
    cluster_run(siracusa_neureka_keep, &keep);
    cluster_dma_start(&(cluster_dma_t){ /* result */
        .to = out,
        .from = cluster_l1(L1_OUT),
        .bytes = 1080,
        .rows = 1,
    });
    cluster_dma_wait_all();
    return 0;
}
