/* ==== published, all of L1 ==== */

/* gemm: gemm 100x70 times 70x130
 * on the integer transformer accelerator 16x64; tile k=130, y=100 (1 in all)
 * predicted: 5142 cycles */
int32_t net_gemm(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 0, L1_OUT = 16384, L1_WEIGHTS = 40960 }; /* byte offsets in L1 */
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    uint32_t running = 0; /* tasks given to integer transformer accelerator 16x64 */
    int32_t code;

    cluster_dma_start(&(cluster_dma_t){ /* rows of in */
        .to = cluster_l1(L1_IN),
        .from = in,
        .bytes = 70,
        .rows = 100,
        .to_stride = 128,
        .from_stride = 70,
    });
    ready = cluster_dma_start(&(cluster_dma_t){ /* weights */
        .to = cluster_l1(L1_WEIGHTS),
        .from = net_gemm_weights,
        .bytes = 25152,
        .rows = 1,
    });
    cluster_dma_wait(ready);
    const snitch_ita_task_t task = {
        .rows = 128,
        .cols = 192,
        .inner = 128,
        .operation = SNITCH_ITA_OP_LINEAR,
        .bias_kind = SNITCH_ITA_BIAS_COLS,
        .requant.mult = 37,
        .requant.shift = 11,
        .requant.add = 0,
        .activation = SNITCH_ITA_ACT_IDENTITY,
        .left = HTVM_L1_BASE + L1_IN,
        .left_stride = 128,
        .right = HTVM_L1_BASE + L1_WEIGHTS,
        .right_stride = 128,
        .bias = HTVM_L1_BASE + L1_WEIGHTS + 24576,
        .out = HTVM_L1_BASE + L1_OUT,
        .out_stride = 192,
    };
    running = snitch_ita_program(&task);
    code = snitch_ita_wait_for(running);
    if (code != 0) {
        return code;
    }
    cluster_dma_start(&(cluster_dma_t){ /* result */
        .to = out,
        .from = cluster_l1(L1_OUT),
        .bytes = 130,
        .rows = 100,
        .from_stride = 192,
        .to_stride = 130,
    });
    cluster_dma_wait_all();
    return 0;
}

/* ==== published, 40000 B of L1 ==== */

/* gemm: gemm 100x70 times 70x130
 * on the integer transformer accelerator 16x64; tile k=64, y=100 (3 in all)
 * predicted: 5846 cycles */
int32_t net_gemm(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 0, L1_OUT = 16384, L1_WEIGHTS = 24576 }; /* byte offsets in L1 */
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    uint32_t running = 0; /* tasks given to integer transformer accelerator 16x64 */
    int32_t code;

    for (uint32_t step = 0; step < 3u; ++step) {
        const uint32_t tile = step;
        const uint32_t k = tile;
        if (tile == 0u) { /* rows of in */
            cluster_dma_start(&(cluster_dma_t){
                .to = cluster_l1(L1_IN),
                .from = in,
                .bytes = 70,
                .rows = 100,
                .to_stride = 128,
                .from_stride = 70,
            });
        }
        ready = cluster_dma_start(&(cluster_dma_t){ /* weights */
            .to = cluster_l1(L1_WEIGHTS),
            .from = net_gemm_weights + k * 8384u,
            .bytes = 8384,
            .rows = 1,
        });
        cluster_dma_wait(ready);
        const snitch_ita_task_t task = {
            .rows = 128,
            .cols = ((k + 1u < 3u ? 64u : 2u) + 63u) & ~63u,
            .inner = 128,
            .operation = SNITCH_ITA_OP_LINEAR,
            .bias_kind = SNITCH_ITA_BIAS_COLS,
            .requant.mult = 37,
            .requant.shift = 11,
            .requant.add = 0,
            .activation = SNITCH_ITA_ACT_IDENTITY,
            .left = HTVM_L1_BASE + L1_IN,
            .left_stride = 128,
            .right = HTVM_L1_BASE + L1_WEIGHTS,
            .right_stride = 128,
            .bias = HTVM_L1_BASE + L1_WEIGHTS + 8192,
            .out = HTVM_L1_BASE + L1_OUT,
            .out_stride = 64,
        };
        running = snitch_ita_program(&task);
        code = snitch_ita_wait_for(running);
        if (code != 0) {
            return code;
        }
        cluster_dma_start(&(cluster_dma_t){ /* result */
            .to = out + k * 64u,
            .from = cluster_l1(L1_OUT),
            .bytes = (k + 1u < 3u ? 64u : 2u),
            .rows = 100,
            .from_stride = 64,
            .to_stride = 130,
        });
    }
    cluster_dma_wait_all();
    return 0;
}

/* ==== overlapped, all of L1 ==== */

/* gemm: gemm 100x70 times 70x130
 * on the integer transformer accelerator 16x64; tile k=64, y=64 (6 in all, two of them in L1)
 * predicted: 4521 cycles */
int32_t net_gemm(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 16768, L1_OUT = 33152, L1_WEIGHTS = 0 }; /* byte offsets in L1 */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int16_t pad;
    } y_tiles[2] = { /* rows of the result, rows that they read, rows of zeros above */
        {0, 64, 0, 64, 0},
        {64, 36, 64, 36, 0},
    };
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    uint32_t running[2] = {0}; /* tasks given to integer transformer accelerator 16x64 */
    int32_t code;

    /* Several tiles are under way at a time, each at a different stage:
     *
     *   step     load        start           finish, store
     *   0        tile 0      -               -               prologue
     *   1        tile 1      tile 0          -               prologue
     *   2 to 5   tile step   tile step - 1   tile step - 2   steady state
     *   6        -           tile 5          tile 4          epilogue
     *   7        -           -               tile 5          epilogue
     */
    for (uint32_t step = 0; step < 8u; ++step) {
        if (step >= 1u && step < 7u) { /* start */
            const uint32_t tile = step - 1u;
            const uint32_t y = tile / 3u;
            const uint32_t k = tile % 3u;
            cluster_dma_wait(ready);
            const snitch_ita_task_t task = {
                .rows = (y_tiles[y].out_size + 63u) & ~63u,
                .cols = ((k + 1u < 3u ? 64u : 2u) + 63u) & ~63u,
                .inner = 128,
                .operation = SNITCH_ITA_OP_LINEAR,
                .bias_kind = SNITCH_ITA_BIAS_COLS,
                .requant.mult = 37,
                .requant.shift = 11,
                .requant.add = 0,
                .activation = SNITCH_ITA_ACT_IDENTITY,
                .left = HTVM_L1_BASE + L1_IN + y % 2u * 8192u,
                .left_stride = 128,
                .right = HTVM_L1_BASE + L1_WEIGHTS + tile % 2u * 8384u,
                .right_stride = 128,
                .bias = HTVM_L1_BASE + L1_WEIGHTS + tile % 2u * 8384u + 8192,
                .out = HTVM_L1_BASE + L1_OUT + tile % 2u * 4096u,
                .out_stride = 64,
            };
            running[tile % 2u] = snitch_ita_program(&task);
        }
        if (step >= 2u) { /* finish, store */
            const uint32_t tile = step - 2u;
            const uint32_t y = tile / 3u;
            const uint32_t k = tile % 3u;
            code = snitch_ita_wait_for(running[tile % 2u]);
            if (code != 0) {
                return code;
            }
            cluster_dma_start(&(cluster_dma_t){ /* result */
                .to = out + y_tiles[y].out_start * 130u + k * 64u,
                .from = cluster_l1(L1_OUT + tile % 2u * 4096u),
                .bytes = (k + 1u < 3u ? 64u : 2u),
                .rows = y_tiles[y].out_size,
                .from_stride = 64,
                .to_stride = 130,
            });
        }
        if (step < 6u) { /* load */
            const uint32_t tile = step;
            const uint32_t y = tile / 3u;
            const uint32_t k = tile % 3u;
            if (k == 0u) { /* rows of in */
                cluster_dma_start(&(cluster_dma_t){
                    .to = cluster_l1(L1_IN + y % 2u * 8192u),
                    .from = in + y_tiles[y].in_start * 70u,
                    .bytes = 70,
                    .rows = y_tiles[y].in_size,
                    .to_stride = 128,
                    .from_stride = 70,
                });
            }
            ready = cluster_dma_start(&(cluster_dma_t){ /* weights */
                .to = cluster_l1(L1_WEIGHTS + tile % 2u * 8384u),
                .from = net_gemm_weights + k * 8384u,
                .bytes = 8384,
                .rows = 1,
            });
        }
    }
    cluster_dma_wait_all();
    return 0;
}

/* ==== overlapped, 40000 B of L1 ==== */

/* gemm: gemm 100x70 times 70x130
 * on the integer transformer accelerator 16x64; tile k=64, y=64 (6 in all, two of them in L1)
 * predicted: 5000 cycles */
int32_t net_gemm(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 16768, L1_OUT = 24960, L1_WEIGHTS = 0 }; /* byte offsets in L1 */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int16_t pad;
    } y_tiles[2] = { /* rows of the result, rows that they read, rows of zeros above */
        {0, 64, 0, 64, 0},
        {64, 36, 64, 36, 0},
    };
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    uint32_t running[2] = {0}; /* tasks given to integer transformer accelerator 16x64 */
    int32_t code;

    /* Several tiles are under way at a time, each at a different stage:
     *
     *   step     load        start           finish, store
     *   0        tile 0      -               -               prologue
     *   1        tile 1      tile 0          -               prologue
     *   2 to 5   tile step   tile step - 1   tile step - 2   steady state
     *   6        -           tile 5          tile 4          epilogue
     *   7        -           -               tile 5          epilogue
     */
    for (uint32_t step = 0; step < 8u; ++step) {
        if (step >= 1u && step < 7u) { /* start */
            const uint32_t tile = step - 1u;
            const uint32_t y = tile / 3u;
            const uint32_t k = tile % 3u;
            cluster_dma_wait(ready);
            const snitch_ita_task_t task = {
                .rows = (y_tiles[y].out_size + 63u) & ~63u,
                .cols = ((k + 1u < 3u ? 64u : 2u) + 63u) & ~63u,
                .inner = 128,
                .operation = SNITCH_ITA_OP_LINEAR,
                .bias_kind = SNITCH_ITA_BIAS_COLS,
                .requant.mult = 37,
                .requant.shift = 11,
                .requant.add = 0,
                .activation = SNITCH_ITA_ACT_IDENTITY,
                .left = HTVM_L1_BASE + L1_IN,
                .left_stride = 128,
                .right = HTVM_L1_BASE + L1_WEIGHTS + tile % 2u * 8384u,
                .right_stride = 128,
                .bias = HTVM_L1_BASE + L1_WEIGHTS + tile % 2u * 8384u + 8192,
                .out = HTVM_L1_BASE + L1_OUT + tile % 2u * 4096u,
                .out_stride = 64,
            };
            running[tile % 2u] = snitch_ita_program(&task);
        }
        if (step >= 2u) { /* finish, store */
            const uint32_t tile = step - 2u;
            const uint32_t y = tile / 3u;
            const uint32_t k = tile % 3u;
            code = snitch_ita_wait_for(running[tile % 2u]);
            if (code != 0) {
                return code;
            }
            cluster_dma_start(&(cluster_dma_t){ /* result */
                .to = out + y_tiles[y].out_start * 130u + k * 64u,
                .from = cluster_l1(L1_OUT + tile % 2u * 4096u),
                .bytes = (k + 1u < 3u ? 64u : 2u),
                .rows = y_tiles[y].out_size,
                .from_stride = 64,
                .to_stride = 130,
            });
        }
        if (step < 6u) { /* load */
            const uint32_t tile = step;
            const uint32_t y = tile / 3u;
            const uint32_t k = tile % 3u;
            if (k == 0u && tile != 0u) { /* the rows to overwrite are still being read */
                code = snitch_ita_wait_for(running[(tile - 1u) % 2u]);
                if (code != 0) {
                    return code;
                }
            }
            if (k == 0u) { /* rows of in */
                cluster_dma_start(&(cluster_dma_t){
                    .to = cluster_l1(L1_IN),
                    .from = in + y_tiles[y].in_start * 70u,
                    .bytes = 70,
                    .rows = y_tiles[y].in_size,
                    .to_stride = 128,
                    .from_stride = 70,
                });
            }
            ready = cluster_dma_start(&(cluster_dma_t){ /* weights */
                .to = cluster_l1(L1_WEIGHTS + tile % 2u * 8384u),
                .from = net_gemm_weights + k * 8384u,
                .bytes = 8384,
                .rows = 1,
            });
        }
    }
    cluster_dma_wait_all();
    return 0;
}
