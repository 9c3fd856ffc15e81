/* ==== overlapped, all of L1, weights in SRAM ==== */

/* conv: conv2d C=12 20x18 -> K=40 10x9, kernel 3x3, stride 2x2
 * on the N-EUREKA, convolution engine 6x6; tile k=40, y=3 (4 in all, two of them in L1)
 * predicted: 4764 cycles */
int32_t net_conv(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 4320, L1_OUT = 0, L1_WEIGHTS = 7344 }; /* byte offsets in L1 */
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
     *   0: 5x9 pixels, 1 row of zeros above
     *   1: 5x9 pixels
     *   2: 1x9 pixels
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
                .weights = htvm_hal_addr(net_conv_packed),
                .input = HTVM_L1_BASE + L1_IN + y % 2u * 1512u,
                .output = HTVM_L1_BASE + L1_OUT + tile % 2u * 2160u,
                .factors = HTVM_L1_BASE + L1_WEIGHTS,
            };
            running[tile % 2u] = siracusa_neureka_start(&jobs[y < 1u ? 0u : y < 3u ? 1u : 2u], &places);
        }
        if (step >= 2u) { /* finish, store */
            const uint32_t tile = step - 2u;
            const uint32_t y = tile;
            siracusa_neureka_wait_for(running[tile % 2u]);
            cluster_dma_start(&(cluster_dma_t){ /* result */
                .to = out + y_tiles[y].out_start * 360u,
                .from = cluster_l1(L1_OUT + tile % 2u * 2160u),
                .bytes = 360,
                .rows = y_tiles[y].out_size,
                .from_stride = 720,
                .to_stride = 360,
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
                    .from = net_conv_weights,
                    .bytes = 496,
                    .rows = 1,
                });
            }
        }
    }
    cluster_dma_wait_all();
    return 0;
}

/* ==== overlapped, 6000 B of L1, weights in SRAM ==== */

/* conv: conv2d C=12 20x18 -> K=40 10x9, kernel 3x3, stride 2x2
 * on the N-EUREKA, convolution engine 6x6; tile k=40, y=2 (5 in all, two of them in L1)
 * predicted: 5558 cycles */
int32_t net_conv(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 2880, L1_OUT = 0, L1_WEIGHTS = 5040 }; /* byte offsets in L1 */
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
     *   0: 3x9 pixels, 1 row of zeros above
     *   1: 3x9 pixels
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
                .weights = htvm_hal_addr(net_conv_packed),
                .input = HTVM_L1_BASE + L1_IN + y % 2u * 1080u,
                .output = HTVM_L1_BASE + L1_OUT + tile % 2u * 1440u,
                .factors = HTVM_L1_BASE + L1_WEIGHTS,
            };
            running[tile % 2u] = siracusa_neureka_start(&jobs[y < 1u ? 0u : 1u], &places);
        }
        if (step >= 2u) { /* finish, store */
            const uint32_t tile = step - 2u;
            const uint32_t y = tile;
            siracusa_neureka_wait_for(running[tile % 2u]);
            cluster_dma_start(&(cluster_dma_t){ /* result */
                .to = out + y_tiles[y].out_start * 360u,
                .from = cluster_l1(L1_OUT + tile % 2u * 1440u),
                .bytes = 360,
                .rows = 2,
                .from_stride = 720,
                .to_stride = 360,
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
                    .from = net_conv_weights,
                    .bytes = 400,
                    .rows = 1,
                });
            }
        }
    }
    cluster_dma_wait_all();
    return 0;
}

/* ==== published, 13000 B of L1, weights in L1 ==== */

/* conv: conv2d C=12 20x18 -> K=40 10x9, kernel 3x3, stride 2x2
 * on the N-EUREKA, convolution engine 6x6; tile k=40, y=1 (10 in all)
 * predicted: 14703 cycles */
int32_t net_conv(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 0, L1_OUT = 648, L1_WEIGHTS = 1376 }; /* byte offsets in L1 */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int16_t pad;
    } y_tiles[10] = { /* rows of the result, rows that they read, rows of zeros above */
        {0, 1, 0, 2, 1},
        {1, 1, 1, 3, 0},
        {2, 1, 3, 3, 0},
        {3, 1, 5, 3, 0},
        {4, 1, 7, 3, 0},
        {5, 1, 9, 3, 0},
        {6, 1, 11, 3, 0},
        {7, 1, 13, 3, 0},
        {8, 1, 15, 3, 0},
        {9, 1, 17, 3, 0},
    };
    /* The jobs of a tile, whose registers begin its constants:
     *   0: 1x9 pixels, 1 row of zeros above
     *   1: 1x9 pixels
     */
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    uint32_t running = 0; /* tasks given to N-EUREKA, convolution engine 6x6 */

    for (uint32_t step = 0; step < 10u; ++step) {
        const uint32_t tile = step;
        const uint32_t y = tile;
        ready = cluster_dma_start(&(cluster_dma_t){ /* rows of in */
            .to = cluster_l1(L1_IN),
            .from = in + y_tiles[y].in_start * 216u,
            .bytes = y_tiles[y].in_size * 216,
            .rows = 1,
        });
        if (tile == 0u) { /* weights */
            ready = cluster_dma_start(&(cluster_dma_t){
                .to = cluster_l1(L1_WEIGHTS),
                .from = net_conv_weights,
                .bytes = 10640,
                .rows = 1,
            });
        }
        cluster_dma_wait(ready);
        const siracusa_neureka_registers_t *const jobs = cluster_l1(L1_WEIGHTS);
        const siracusa_neureka_places_t places = {
            .weights = HTVM_L1_BASE + L1_WEIGHTS + 192,
            .input = HTVM_L1_BASE + L1_IN,
            .output = HTVM_L1_BASE + L1_OUT,
            .factors = HTVM_L1_BASE + L1_WEIGHTS,
        };
        running = siracusa_neureka_start(&jobs[y < 1u ? 0u : 1u], &places);
        siracusa_neureka_wait_for(running);
        cluster_dma_start(&(cluster_dma_t){ /* result */
            .to = out + y_tiles[y].out_start * 360u,
            .from = cluster_l1(L1_OUT),
            .bytes = 360,
            .rows = 1,
            .from_stride = 720,
            .to_stride = 360,
        });
    }
    cluster_dma_wait_all();
    return 0;
}
