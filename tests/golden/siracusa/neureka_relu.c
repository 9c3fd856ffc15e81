/* ==== overlapped, all of L1, weights in SRAM ==== */

/* conv: conv2d C=12 20x18 -> K=40 20x18, kernel 3x3, stride 1x1
 * on the N-EUREKA, convolution engine 6x6; tile k=40, y=6 (4 in all, two of them in L1)
 * predicted: 7249 cycles */
int32_t net_conv(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 8640, L1_OUT = 0, L1_WEIGHTS = 12096 }; /* byte offsets in L1 */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int16_t pad;
    } y_tiles[4] = { /* rows of the result, rows that they read, rows of zeros above */
        {0, 6, 0, 7, 1},
        {6, 6, 5, 8, 0},
        {12, 6, 11, 8, 0},
        {18, 2, 17, 3, 0},
    };
    /* The jobs of a tile, whose registers begin its constants:
     *   0: 6x18 pixels, 1 row of zeros above
     *   1: 6x18 pixels
     *   2: 2x18 pixels
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
                .input = HTVM_L1_BASE + L1_IN + y % 2u * 1728u,
                .output = HTVM_L1_BASE + L1_OUT + tile % 2u * 4320u,
                .factors = HTVM_L1_BASE + L1_WEIGHTS,
            };
            running[tile % 2u] = siracusa_neureka_start(&jobs[y < 1u ? 0u : y < 3u ? 1u : 2u], &places);
        }
        if (step >= 2u) { /* finish, store */
            const uint32_t tile = step - 2u;
            const uint32_t y = tile;
            siracusa_neureka_wait_for(running[tile % 2u]);
            const siracusa_neureka_relu_t relu = {
                .data = cluster_l1(L1_OUT + tile % 2u * 4320u),
                .rows = 1,
                .bytes = (y_tiles[y].out_size * 18) * 40,
                .pitch = 0,
            };
            cluster_run(siracusa_neureka_relu, &relu);
            cluster_dma_start(&(cluster_dma_t){ /* result */
                .to = out + (y_tiles[y].out_start * 18) * 40u,
                .from = cluster_l1(L1_OUT + tile % 2u * 4320u),
                .bytes = (y_tiles[y].out_size * 18) * 40,
                .rows = 1,
            });
        }
        if (step < 4u) { /* load */
            const uint32_t tile = step;
            const uint32_t y = tile;
            ready = cluster_dma_start(&(cluster_dma_t){ /* rows of in */
                .to = cluster_l1(L1_IN + y % 2u * 1728u),
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

/* conv: conv2d C=12 20x18 -> K=40 20x18, kernel 3x3, stride 1x1
 * on the N-EUREKA, convolution engine 6x6; tile k=40, y=5 (4 in all)
 * predicted: 11856 cycles */
int32_t net_conv(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 3600, L1_OUT = 0, L1_WEIGHTS = 5120 }; /* byte offsets in L1 */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int16_t pad;
    } y_tiles[4] = { /* rows of the result, rows that they read, rows of zeros above */
        {0, 5, 0, 6, 1},
        {5, 5, 4, 7, 0},
        {10, 5, 9, 7, 0},
        {15, 5, 14, 6, 0},
    };
    /* The jobs of a tile, whose registers begin its constants:
     *   0: 5x18 pixels, 1 row of zeros above
     *   1: 5x18 pixels
     *   2: 5x18 pixels
     */
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    uint32_t running = 0; /* tasks given to N-EUREKA, convolution engine 6x6 */

    for (uint32_t step = 0; step < 4u; ++step) {
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
                .bytes = 496,
                .rows = 1,
            });
        }
        cluster_dma_wait(ready);
        const siracusa_neureka_registers_t *const jobs = cluster_l1(L1_WEIGHTS);
        const siracusa_neureka_places_t places = {
            .weights = htvm_hal_addr(net_conv_packed),
            .input = HTVM_L1_BASE + L1_IN,
            .output = HTVM_L1_BASE + L1_OUT,
            .factors = HTVM_L1_BASE + L1_WEIGHTS,
        };
        running = siracusa_neureka_start(&jobs[y < 1u ? 0u : y < 3u ? 1u : 2u], &places);
        siracusa_neureka_wait_for(running);
        const siracusa_neureka_relu_t relu = {
            .data = cluster_l1(L1_OUT),
            .rows = 1,
            .bytes = 3600,
            .pitch = 0,
        };
        cluster_run(siracusa_neureka_relu, &relu);
        cluster_dma_start(&(cluster_dma_t){ /* result */
            .to = out + (y_tiles[y].out_start * 18) * 40u,
            .from = cluster_l1(L1_OUT),
            .bytes = 3600,
            .rows = 1,
        });
    }
    cluster_dma_wait_all();
    return 0;
}

/* ==== published, 13000 B of L1, weights in L1 ==== */

/* conv: conv2d C=12 20x18 -> K=40 20x18, kernel 3x3, stride 1x1
 * on the N-EUREKA, convolution engine 6x6; tile k=32, y=4 (10 in all)
 * predicted: 31126 cycles */
int32_t net_conv(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 0, L1_OUT = 1296, L1_WEIGHTS = 3600 }; /* byte offsets in L1 */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int16_t pad;
    } y_tiles[5] = { /* rows of the result, rows that they read, rows of zeros above */
        {0, 4, 0, 5, 1},
        {4, 4, 3, 6, 0},
        {8, 4, 7, 6, 0},
        {12, 4, 11, 6, 0},
        {16, 4, 15, 5, 0},
    };
    /* The jobs of a tile, whose registers begin its constants:
     *   0: 4x18 pixels, 1 row of zeros above
     *   1: 4x18 pixels
     *   2: 4x18 pixels
     */
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    uint32_t running = 0; /* tasks given to N-EUREKA, convolution engine 6x6 */

    for (uint32_t step = 0; step < 10u; ++step) {
        const uint32_t tile = step;
        const uint32_t y = tile / 2u;
        const uint32_t k = tile % 2u;
        if (k == 0u) { /* rows of in */
            cluster_dma_start(&(cluster_dma_t){
                .to = cluster_l1(L1_IN),
                .from = in + y_tiles[y].in_start * 216u,
                .bytes = y_tiles[y].in_size * 216,
                .rows = 1,
            });
        }
        ready = cluster_dma_start(&(cluster_dma_t){ /* weights */
            .to = cluster_l1(L1_WEIGHTS),
            .from = net_conv_weights + k * 8640u,
            .bytes = 8640,
            .rows = 1,
        });
        cluster_dma_wait(ready);
        const siracusa_neureka_registers_t *const jobs = cluster_l1(L1_WEIGHTS);
        const siracusa_neureka_places_t places = {
            .weights = HTVM_L1_BASE + L1_WEIGHTS + 288,
            .input = HTVM_L1_BASE + L1_IN,
            .output = HTVM_L1_BASE + L1_OUT,
            .factors = HTVM_L1_BASE + L1_WEIGHTS,
        };
        running = siracusa_neureka_start(&jobs[y < 1u ? 0u : y < 4u ? 1u : 2u], &places);
        siracusa_neureka_wait_for(running);
        const siracusa_neureka_relu_t relu = {
            .data = cluster_l1(L1_OUT),
            .rows = 72,
            .bytes = (k + 1u < 2u ? 32u : 8u),
            .pitch = 32,
        };
        cluster_run(siracusa_neureka_relu, &relu);
        cluster_dma_start(&(cluster_dma_t){ /* result */
            .to = out + (y_tiles[y].out_start * 18) * 40u + k * 32u,
            .from = cluster_l1(L1_OUT),
            .bytes = (k + 1u < 2u ? 32u : 8u),
            .rows = 72,
            .from_stride = 32,
            .to_stride = 40,
        });
    }
    cluster_dma_wait_all();
    return 0;
}
