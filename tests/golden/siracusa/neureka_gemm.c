/* ==== overlapped, all of L1, weights in SRAM ==== */

/* gemm: gemm 37x30 times 30x44
 * on the N-EUREKA, convolution engine 6x6; tile k=44, y=36 (2 in all, two of them in L1)
 * predicted: 1138 cycles */
int32_t net_gemm(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 3168, L1_OUT = 0, L1_WEIGHTS = 5328 }; /* byte offsets in L1 */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int16_t pad;
    } y_tiles[2] = { /* rows of the result, rows that they read, rows of zeros above */
        {0, 36, 0, 36, 0},
        {36, 1, 36, 1, 0},
    };
    /* The jobs of a tile, whose registers begin its constants:
     *   0: 6x6 pixels of 36x1
     *   1: 1x1 pixels
     */
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    uint32_t running[2] = {0}; /* tasks given to N-EUREKA, convolution engine 6x6 */

    /* Several tiles are under way at a time, each at a different stage:
     *
     *   step   load     start    finish, store
     *   0      tile 0   -        -               prologue
     *   1      tile 1   tile 0   -               prologue
     *   2      -        tile 1   tile 0          epilogue
     *   3      -        -        tile 1          epilogue
     *   There are too few tiles for a steady state.
     */
    for (uint32_t step = 0; step < 4u; ++step) {
        if (step >= 1u && step < 3u) { /* start */
            const uint32_t tile = step - 1u;
            const uint32_t y = tile;
            cluster_dma_wait(ready);
            const siracusa_neureka_registers_t *const jobs = cluster_l1(L1_WEIGHTS);
            const siracusa_neureka_places_t places = {
                .weights = htvm_hal_addr(net_gemm_packed),
                .input = HTVM_L1_BASE + L1_IN + y % 2u * 1080u,
                .output = HTVM_L1_BASE + L1_OUT + tile % 2u * 1584u,
                .factors = HTVM_L1_BASE + L1_WEIGHTS,
            };
            running[tile % 2u] = siracusa_neureka_start(&jobs[y < 1u ? 0u : 1u], &places);
        }
        if (step >= 2u) { /* finish, store */
            const uint32_t tile = step - 2u;
            const uint32_t y = tile;
            siracusa_neureka_wait_for(running[tile % 2u]);
            cluster_dma_start(&(cluster_dma_t){ /* result */
                .to = out + y_tiles[y].out_start * 44u,
                .from = cluster_l1(L1_OUT + tile % 2u * 1584u),
                .bytes = y_tiles[y].out_size * 44,
                .rows = 1,
            });
        }
        if (step < 2u) { /* load */
            const uint32_t tile = step;
            const uint32_t y = tile;
            ready = cluster_dma_start(&(cluster_dma_t){ /* rows of in */
                .to = cluster_l1(L1_IN + y % 2u * 1080u),
                .from = in + y_tiles[y].in_start * 30u,
                .bytes = y_tiles[y].in_size * 30,
                .rows = 1,
            });
            if (tile == 0u) { /* weights */
                ready = cluster_dma_start(&(cluster_dma_t){
                    .to = cluster_l1(L1_WEIGHTS),
                    .from = net_gemm_weights,
                    .bytes = 416,
                    .rows = 1,
                });
            }
        }
    }
    cluster_dma_wait_all();
    return 0;
}

/* ==== overlapped, 3000 B of L1, weights in SRAM ==== */

/* gemm: gemm 37x30 times 30x44
 * on the N-EUREKA, convolution engine 6x6; tile k=44, y=25 (2 in all)
 * predicted: 1649 cycles */
int32_t net_gemm(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 1104, L1_OUT = 0, L1_WEIGHTS = 1856 }; /* byte offsets in L1 */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int16_t pad;
    } y_tiles[2] = { /* rows of the result, rows that they read, rows of zeros above */
        {0, 25, 0, 25, 0},
        {25, 12, 25, 12, 0},
    };
    /* The jobs of a tile, whose registers begin its constants:
     *   0: 5x5 pixels of 25x1
     *   1: 2x6 pixels of 12x1
     */
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    uint32_t running = 0; /* tasks given to N-EUREKA, convolution engine 6x6 */

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
                .from = net_gemm_weights,
                .bytes = 416,
                .rows = 1,
            });
        }
        cluster_dma_wait(ready);
        const siracusa_neureka_registers_t *const jobs = cluster_l1(L1_WEIGHTS);
        const siracusa_neureka_places_t places = {
            .weights = htvm_hal_addr(net_gemm_packed),
            .input = HTVM_L1_BASE + L1_IN,
            .output = HTVM_L1_BASE + L1_OUT,
            .factors = HTVM_L1_BASE + L1_WEIGHTS,
        };
        running = siracusa_neureka_start(&jobs[y < 1u ? 0u : 1u], &places);
        siracusa_neureka_wait_for(running);
        cluster_dma_start(&(cluster_dma_t){ /* result */
            .to = out + y_tiles[y].out_start * 44u,
            .from = cluster_l1(L1_OUT),
            .bytes = y_tiles[y].out_size * 44,
            .rows = 1,
        });
    }
    cluster_dma_wait_all();
    return 0;
}

/* ==== published, 10000 B of L1, weights in L1 ==== */

/* gemm: gemm 37x30 times 30x44
 * on the N-EUREKA, convolution engine 6x6; tile k=44, y=37 (1 in all)
 * predicted: 1511 cycles */
int32_t net_gemm(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 0, L1_OUT = 1110, L1_WEIGHTS = 2752 }; /* byte offsets in L1 */
    /* The jobs of a tile, whose registers begin its constants:
     *   0: 6x6 pixels of 37x1
     *   1: 1x1 pixels of 37x1, from pixel 36 on
     */
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    uint32_t running = 0; /* tasks given to N-EUREKA, convolution engine 6x6 */

    cluster_dma_start(&(cluster_dma_t){ /* rows of in */
        .to = cluster_l1(L1_IN),
        .from = in,
        .bytes = 1110,
        .rows = 1,
    });
    ready = cluster_dma_start(&(cluster_dma_t){ /* weights */
        .to = cluster_l1(L1_WEIGHTS),
        .from = net_gemm_weights,
        .bytes = 1824,
        .rows = 1,
    });
    cluster_dma_wait(ready);
    const siracusa_neureka_registers_t *const jobs = cluster_l1(L1_WEIGHTS);
    const siracusa_neureka_places_t places = {
        .weights = HTVM_L1_BASE + L1_WEIGHTS + 192,
        .input = HTVM_L1_BASE + L1_IN,
        .output = HTVM_L1_BASE + L1_OUT,
        .factors = HTVM_L1_BASE + L1_WEIGHTS,
    };
    const uint32_t end = 2u;
    for (uint32_t job = 0u; job < end; ++job) {
        running = siracusa_neureka_start(&jobs[job], &places);
    }
    siracusa_neureka_wait_for(running);
    cluster_dma_start(&(cluster_dma_t){ /* result */
        .to = out,
        .from = cluster_l1(L1_OUT),
        .bytes = 1628,
        .rows = 1,
    });
    cluster_dma_wait_all();
    return 0;
}
