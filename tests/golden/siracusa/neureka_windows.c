/* ==== overlapped, all of L1, weights in SRAM ==== */

/* conv: conv2d C=12 20x18 -> K=40 9x6, kernel 5x3, stride 2x3
 * on the N-EUREKA, convolution engine 6x6; tile k=40, y=9 (1 in all)
 * predicted: 5329 cycles */
int32_t net_conv(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 12960, L1_OUT = 0, L1_WEIGHTS = 17280 }; /* byte offsets in L1 */
    /* The jobs of a tile, whose registers begin its constants:
     *   0: 6x9 pixels of 9x6
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
        .from = net_conv_weights,
        .bytes = 304,
        .rows = 1,
    });
    cluster_dma_wait(ready);
    const siracusa_neureka_windows_t windows = {
        .in = cluster_l1(L1_IN),
        .to = cluster_l1(L1_OUT + 2160),
        .rows = 9,
        .columns = 6,
        .iy = 20,
        .ix = 18,
        .c = 12,
        .fy = 5,
        .fx = 3,
        .stride_y = 2,
        .stride_x = 3,
        .pad_top = 1,
        .pad_left = 1,
        .pitch = 180,
    };
    cluster_run(siracusa_neureka_windows, &windows);
    const siracusa_neureka_registers_t *const jobs = cluster_l1(L1_WEIGHTS);
    const siracusa_neureka_places_t places = {
        .weights = htvm_hal_addr(net_conv_packed),
        .input = HTVM_L1_BASE + L1_OUT + 2160,
        .output = HTVM_L1_BASE + L1_OUT,
        .factors = HTVM_L1_BASE + L1_WEIGHTS,
    };
    running = siracusa_neureka_start(&jobs[0u], &places);
    siracusa_neureka_wait_for(running);
    cluster_dma_start(&(cluster_dma_t){ /* result */
        .to = out,
        .from = cluster_l1(L1_OUT),
        .bytes = 2160,
        .rows = 1,
    });
    cluster_dma_wait_all();
    return 0;
}

/* ==== overlapped, 9000 B of L1, weights in SRAM ==== */

/* conv: conv2d C=12 20x18 -> K=40 9x6, kernel 5x3, stride 2x3
 * on the N-EUREKA, convolution engine 6x6; tile k=40, y=4 (3 in all)
 * predicted: 7653 cycles */
int32_t net_conv(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 5760, L1_OUT = 0, L1_WEIGHTS = 8144 }; /* byte offsets in L1 */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int16_t pad;
    } y_tiles[3] = { /* rows of the result, rows that they read, rows of zeros above */
        {0, 4, 0, 10, 1},
        {4, 4, 7, 11, 0},
        {8, 1, 15, 5, 0},
    };
    /* The jobs of a tile, whose registers begin its constants:
     *   0: 4x6 pixels
     *   1: 1x6 pixels
     */
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    uint32_t running = 0; /* tasks given to N-EUREKA, convolution engine 6x6 */

    for (uint32_t step = 0; step < 3u; ++step) {
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
                .bytes = 400,
                .rows = 1,
            });
        }
        cluster_dma_wait(ready);
        const siracusa_neureka_windows_t windows = {
            .in = cluster_l1(L1_IN),
            .to = cluster_l1(L1_OUT + 960),
            .rows = y_tiles[y].out_size,
            .columns = 6,
            .iy = y_tiles[y].in_size,
            .ix = 18,
            .c = 12,
            .fy = 5,
            .fx = 3,
            .stride_y = 2,
            .stride_x = 3,
            .pad_top = y_tiles[y].pad,
            .pad_left = 1,
            .pitch = 180,
        };
        cluster_run(siracusa_neureka_windows, &windows);
        const siracusa_neureka_registers_t *const jobs = cluster_l1(L1_WEIGHTS);
        const siracusa_neureka_places_t places = {
            .weights = htvm_hal_addr(net_conv_packed),
            .input = HTVM_L1_BASE + L1_OUT + 960,
            .output = HTVM_L1_BASE + L1_OUT,
            .factors = HTVM_L1_BASE + L1_WEIGHTS,
        };
        running = siracusa_neureka_start(&jobs[y < 2u ? 0u : 1u], &places);
        siracusa_neureka_wait_for(running);
        cluster_dma_start(&(cluster_dma_t){ /* result */
            .to = out + (y_tiles[y].out_start * 6) * 40u,
            .from = cluster_l1(L1_OUT),
            .bytes = (y_tiles[y].out_size * 6) * 40,
            .rows = 1,
        });
    }
    cluster_dma_wait_all();
    return 0;
}

/* ==== published, 16000 B of L1, weights in L1 ==== */

/* conv: conv2d C=12 20x18 -> K=40 9x6, kernel 5x3, stride 2x3
 * on the N-EUREKA, convolution engine 6x6; tile k=40, y=3 (3 in all)
 * predicted: 9211 cycles */
int32_t net_conv(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 0, L1_OUT = 1944, L1_WEIGHTS = 6272 }; /* byte offsets in L1 */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int16_t pad;
    } y_tiles[3] = { /* rows of the result, rows that they read, rows of zeros above */
        {0, 3, 0, 8, 1},
        {3, 3, 5, 9, 0},
        {6, 3, 11, 9, 0},
    };
    /* The jobs of a tile, whose registers begin its constants:
     *   0: 3x6 pixels
     */
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    uint32_t running = 0; /* tasks given to N-EUREKA, convolution engine 6x6 */

    for (uint32_t step = 0; step < 3u; ++step) {
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
                .bytes = 7984,
                .rows = 1,
            });
        }
        cluster_dma_wait(ready);
        const siracusa_neureka_windows_t windows = {
            .in = cluster_l1(L1_IN),
            .to = cluster_l1(L1_OUT + 720),
            .rows = 3,
            .columns = 6,
            .iy = y_tiles[y].in_size,
            .ix = 18,
            .c = 12,
            .fy = 5,
            .fx = 3,
            .stride_y = 2,
            .stride_x = 3,
            .pad_top = y_tiles[y].pad,
            .pad_left = 1,
            .pitch = 180,
        };
        cluster_run(siracusa_neureka_windows, &windows);
        const siracusa_neureka_registers_t *const jobs = cluster_l1(L1_WEIGHTS);
        const siracusa_neureka_places_t places = {
            .weights = HTVM_L1_BASE + L1_WEIGHTS + 96,
            .input = HTVM_L1_BASE + L1_OUT + 720,
            .output = HTVM_L1_BASE + L1_OUT,
            .factors = HTVM_L1_BASE + L1_WEIGHTS,
        };
        running = siracusa_neureka_start(&jobs[0u], &places);
        siracusa_neureka_wait_for(running);
        cluster_dma_start(&(cluster_dma_t){ /* result */
            .to = out + (y_tiles[y].out_start * 6) * 40u,
            .from = cluster_l1(L1_OUT),
            .bytes = 720,
            .rows = 1,
        });
    }
    cluster_dma_wait_all();
    return 0;
}
