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
        .bias_kind = SNITCH_ITA_BIAS_ROWS,
        .requant.mult = 37,
        .requant.shift = 11,
        .requant.add = 0,
        .activation = SNITCH_ITA_ACT_IDENTITY,
        .left = HTVM_L1_BASE + L1_WEIGHTS,
        .left_stride = 128,
        .right = HTVM_L1_BASE + L1_IN,
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

/* ==== published, 50000 B of L1 ==== */

/* gemm: gemm 192x128 times 128x192
 * on the integer transformer accelerator 16x64; tile k=64, y=192 (3 in all)
 * predicted: 8178 cycles */
int32_t net_gemm(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 0, L1_OUT = 24576, L1_WEIGHTS = 36864 }; /* byte offsets in L1 */
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
                .bytes = 24576,
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
            .rows = 64,
            .cols = 192,
            .inner = 128,
            .operation = SNITCH_ITA_OP_LINEAR,
            .bias_kind = SNITCH_ITA_BIAS_ROWS,
            .requant.mult = 37,
            .requant.shift = 11,
            .requant.add = 0,
            .activation = SNITCH_ITA_ACT_IDENTITY,
            .left = HTVM_L1_BASE + L1_WEIGHTS,
            .left_stride = 128,
            .right = HTVM_L1_BASE + L1_IN,
            .right_stride = 128,
            .bias = HTVM_L1_BASE + L1_WEIGHTS + 8192,
            .out = HTVM_L1_BASE + L1_OUT,
            .out_stride = 192,
        };
        running = snitch_ita_program(&task);
        code = snitch_ita_wait_for(running);
        if (code != 0) {
            return code;
        }
        cluster_dma_start(&(cluster_dma_t){ /* result */
            .to = out + (k * 64u) * 192u,
            .from = cluster_l1(L1_OUT),
            .bytes = 12288,
            .rows = 1,
        });
    }
    cluster_dma_wait_all();
    return 0;
}

/* ==== overlapped, all of L1 ==== */

/* gemm: gemm 192x128 times 128x192
 * on the integer transformer accelerator 16x64; tile k=64, y=192 (3 in all, two of them in L1)
 * predicted: 6805 cycles */
int32_t net_gemm(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 0, L1_OUT = 24576, L1_WEIGHTS = 49152 }; /* byte offsets in L1 */
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    uint32_t running[2] = {0}; /* tasks given to integer transformer accelerator 16x64 */
    int32_t code;

    /* Several tiles are under way at a time, each at a different stage:
     *
     *   step   load     start    finish, store
     *   0      tile 0   -        -               prologue
     *   1      tile 1   tile 0   -               prologue
     *   2      tile 2   tile 1   tile 0          steady state
     *   3      -        tile 2   tile 1          epilogue
     *   4      -        -        tile 2          epilogue
     */
    for (uint32_t step = 0; step < 5u; ++step) {
        if (step >= 1u && step < 4u) { /* start */
            const uint32_t tile = step - 1u;
            cluster_dma_wait(ready);
            const snitch_ita_task_t task = {
                .rows = 64,
                .cols = 192,
                .inner = 128,
                .operation = SNITCH_ITA_OP_LINEAR,
                .bias_kind = SNITCH_ITA_BIAS_ROWS,
                .requant.mult = 37,
                .requant.shift = 11,
                .requant.add = 0,
                .activation = SNITCH_ITA_ACT_IDENTITY,
                .left = HTVM_L1_BASE + L1_WEIGHTS + tile % 2u * 8384u,
                .left_stride = 128,
                .right = HTVM_L1_BASE + L1_IN,
                .right_stride = 128,
                .bias = HTVM_L1_BASE + L1_WEIGHTS + tile % 2u * 8384u + 8192,
                .out = HTVM_L1_BASE + L1_OUT + tile % 2u * 12288u,
                .out_stride = 192,
            };
            running[tile % 2u] = snitch_ita_program(&task);
        }
        if (step >= 2u) { /* finish, store */
            const uint32_t tile = step - 2u;
            const uint32_t k = tile;
            code = snitch_ita_wait_for(running[tile % 2u]);
            if (code != 0) {
                return code;
            }
            cluster_dma_start(&(cluster_dma_t){ /* result */
                .to = out + (k * 64u) * 192u,
                .from = cluster_l1(L1_OUT + tile % 2u * 12288u),
                .bytes = 12288,
                .rows = 1,
            });
        }
        if (step < 3u) { /* load */
            const uint32_t tile = step;
            const uint32_t k = tile;
            if (tile == 0u) { /* rows of in */
                cluster_dma_start(&(cluster_dma_t){
                    .to = cluster_l1(L1_IN),
                    .from = in,
                    .bytes = 24576,
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

/* ==== overlapped, 50000 B of L1 ==== */

/* gemm: gemm 192x128 times 128x192
 * on the integer transformer accelerator 16x64; tile k=64, y=192 (3 in all)
 * predicted: 8178 cycles */
int32_t net_gemm(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 0, L1_OUT = 24576, L1_WEIGHTS = 36864 }; /* byte offsets in L1 */
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
                .bytes = 24576,
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
            .rows = 64,
            .cols = 192,
            .inner = 128,
            .operation = SNITCH_ITA_OP_LINEAR,
            .bias_kind = SNITCH_ITA_BIAS_ROWS,
            .requant.mult = 37,
            .requant.shift = 11,
            .requant.add = 0,
            .activation = SNITCH_ITA_ACT_IDENTITY,
            .left = HTVM_L1_BASE + L1_WEIGHTS,
            .left_stride = 128,
            .right = HTVM_L1_BASE + L1_IN,
            .right_stride = 128,
            .bias = HTVM_L1_BASE + L1_WEIGHTS + 8192,
            .out = HTVM_L1_BASE + L1_OUT,
            .out_stride = 192,
        };
        running = snitch_ita_program(&task);
        code = snitch_ita_wait_for(running);
        if (code != 0) {
            return code;
        }
        cluster_dma_start(&(cluster_dma_t){ /* result */
            .to = out + (k * 64u) * 192u,
            .from = cluster_l1(L1_OUT),
            .bytes = 12288,
            .rows = 1,
        });
    }
    cluster_dma_wait_all();
    return 0;
}
