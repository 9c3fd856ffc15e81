/* ==== published, all of L1 ==== */

/* gemm: gemm 192x128 times 128x192
 * on the integer transformer accelerator 16x64; tile k=192, y=192 (1 in all)
 * predicted: 7474 cycles */
int32_t net_gemm(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 0, L1_OUT = 24576, L1_WEIGHTS = 61440 }; /* byte offsets in L1 */
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    uint32_t running = 0; /* tasks given to integer transformer accelerator 16x64 */
    int32_t code;

    cluster_dma_start(&(cluster_dma_t){ /* rows of in */
        .to = cluster_l1(L1_IN),
        .from = in,
        .bytes = 24576,
        .rows = 1,
    });
    ready = cluster_dma_start(&(cluster_dma_t){ /* weights */
        .to = cluster_l1(L1_WEIGHTS),
        .from = net_gemm_weights,
        .bytes = 25152,
        .rows = 1,
    });
    cluster_dma_wait(ready);
    const snitch_ita_task_t task = {
        .rows = 192,
        .cols = 192,
        .inner = 128,
        .operation = SNITCH_ITA_OP_LINEAR,
        .bias_kind = SNITCH_ITA_BIAS_COLS,
        .requant.mult = 37,
        .requant.shift = 11,
        .requant.add = 0,
        .activation = SNITCH_ITA_ACT_GELU,
        .act_requant.mult = 200,
        .act_requant.shift = 18,
        .act_requant.add = -3,
        .gelu_b = -37,
        .gelu_c = 1200,
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
        .bytes = 36864,
        .rows = 1,
    });
    cluster_dma_wait_all();
    return 0;
}

/* ==== published, 40000 B of L1 ==== */

/* gemm: gemm 192x128 times 128x192
 * on the integer transformer accelerator 16x64; tile k=64, y=128 (6 in all)
 * predicted: 9677 cycles */
int32_t net_gemm(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 0, L1_OUT = 16384, L1_WEIGHTS = 24576 }; /* byte offsets in L1 */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int16_t pad;
    } y_tiles[2] = { /* rows of the result, rows that they read, rows of zeros above */
        {0, 128, 0, 128, 0},
        {128, 64, 128, 64, 0},
    };
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    uint32_t running = 0; /* tasks given to integer transformer accelerator 16x64 */
    int32_t code;

    for (uint32_t step = 0; step < 6u; ++step) {
        const uint32_t tile = step;
        const uint32_t y = tile / 3u;
        const uint32_t k = tile % 3u;
        if (k == 0u) { /* rows of in */
            cluster_dma_start(&(cluster_dma_t){
                .to = cluster_l1(L1_IN),
                .from = in + y_tiles[y].in_start * 128u,
                .bytes = y_tiles[y].in_size * 128,
                .rows = 1,
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
            .rows = (y_tiles[y].out_size + 63u) & ~63u,
            .cols = 64,
            .inner = 128,
            .operation = SNITCH_ITA_OP_LINEAR,
            .bias_kind = SNITCH_ITA_BIAS_COLS,
            .requant.mult = 37,
            .requant.shift = 11,
            .requant.add = 0,
            .activation = SNITCH_ITA_ACT_GELU,
            .act_requant.mult = 200,
            .act_requant.shift = 18,
            .act_requant.add = -3,
            .gelu_b = -37,
            .gelu_c = 1200,
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
            .to = out + y_tiles[y].out_start * 192u + k * 64u,
            .from = cluster_l1(L1_OUT),
            .bytes = 64,
            .rows = y_tiles[y].out_size,
            .from_stride = 64,
            .to_stride = 192,
        });
    }
    cluster_dma_wait_all();
    return 0;
}

/* ==== overlapped, all of L1 ==== */

/* gemm: gemm 192x128 times 128x192
 * on the integer transformer accelerator 16x64; tile k=64, y=64 (9 in all, two of them in L1)
 * predicted: 6471 cycles */
int32_t net_gemm(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 16768, L1_OUT = 33152, L1_WEIGHTS = 0 }; /* byte offsets in L1 */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int16_t pad;
    } y_tiles[3] = { /* rows of the result, rows that they read, rows of zeros above */
        {0, 64, 0, 64, 0},
        {64, 64, 64, 64, 0},
        {128, 64, 128, 64, 0},
    };
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    uint32_t running[2] = {0}; /* tasks given to integer transformer accelerator 16x64 */
    int32_t code;

    /* Several tiles are under way at a time, each at a different stage:
     *
     *   step     load        start           finish, store
     *   0        tile 0      -               -               prologue
     *   1        tile 1      tile 0          -               prologue
     *   2 to 8   tile step   tile step - 1   tile step - 2   steady state
     *   9        -           tile 8          tile 7          epilogue
     *   10       -           -               tile 8          epilogue
     */
    for (uint32_t step = 0; step < 11u; ++step) {
        if (step >= 1u && step < 10u) { /* start */
            const uint32_t tile = step - 1u;
            const uint32_t y = tile / 3u;
            cluster_dma_wait(ready);
            const snitch_ita_task_t task = {
                .rows = 64,
                .cols = 64,
                .inner = 128,
                .operation = SNITCH_ITA_OP_LINEAR,
                .bias_kind = SNITCH_ITA_BIAS_COLS,
                .requant.mult = 37,
                .requant.shift = 11,
                .requant.add = 0,
                .activation = SNITCH_ITA_ACT_GELU,
                .act_requant.mult = 200,
                .act_requant.shift = 18,
                .act_requant.add = -3,
                .gelu_b = -37,
                .gelu_c = 1200,
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
                .to = out + y_tiles[y].out_start * 192u + k * 64u,
                .from = cluster_l1(L1_OUT + tile % 2u * 4096u),
                .bytes = 64,
                .rows = 64,
                .from_stride = 64,
                .to_stride = 192,
            });
        }
        if (step < 9u) { /* load */
            const uint32_t tile = step;
            const uint32_t y = tile / 3u;
            const uint32_t k = tile % 3u;
            if (k == 0u) { /* rows of in */
                cluster_dma_start(&(cluster_dma_t){
                    .to = cluster_l1(L1_IN + y % 2u * 8192u),
                    .from = in + y_tiles[y].in_start * 128u,
                    .bytes = 8192,
                    .rows = 1,
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

/* gemm: gemm 192x128 times 128x192
 * on the integer transformer accelerator 16x64; tile k=64, y=64 (9 in all, two of them in L1)
 * predicted: 7491 cycles */
int32_t net_gemm(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 16768, L1_OUT = 24960, L1_WEIGHTS = 0 }; /* byte offsets in L1 */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int16_t pad;
    } y_tiles[3] = { /* rows of the result, rows that they read, rows of zeros above */
        {0, 64, 0, 64, 0},
        {64, 64, 64, 64, 0},
        {128, 64, 128, 64, 0},
    };
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    uint32_t running[2] = {0}; /* tasks given to integer transformer accelerator 16x64 */
    int32_t code;

    /* Several tiles are under way at a time, each at a different stage:
     *
     *   step     load        start           finish, store
     *   0        tile 0      -               -               prologue
     *   1        tile 1      tile 0          -               prologue
     *   2 to 8   tile step   tile step - 1   tile step - 2   steady state
     *   9        -           tile 8          tile 7          epilogue
     *   10       -           -               tile 8          epilogue
     */
    for (uint32_t step = 0; step < 11u; ++step) {
        if (step >= 1u && step < 10u) { /* start */
            const uint32_t tile = step - 1u;
            cluster_dma_wait(ready);
            const snitch_ita_task_t task = {
                .rows = 64,
                .cols = 64,
                .inner = 128,
                .operation = SNITCH_ITA_OP_LINEAR,
                .bias_kind = SNITCH_ITA_BIAS_COLS,
                .requant.mult = 37,
                .requant.shift = 11,
                .requant.add = 0,
                .activation = SNITCH_ITA_ACT_GELU,
                .act_requant.mult = 200,
                .act_requant.shift = 18,
                .act_requant.add = -3,
                .gelu_b = -37,
                .gelu_c = 1200,
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
                .to = out + y_tiles[y].out_start * 192u + k * 64u,
                .from = cluster_l1(L1_OUT + tile % 2u * 4096u),
                .bytes = 64,
                .rows = 64,
                .from_stride = 64,
                .to_stride = 192,
            });
        }
        if (step < 9u) { /* load */
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
                    .from = in + y_tiles[y].in_start * 128u,
                    .bytes = 8192,
                    .rows = 1,
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
