/* mha.query: gemm 128x64 times 64x128
 * on the integer transformer accelerator 16x64; tile k=64, y=128 (2 in all, two of them in L1)
 * predicted: 1790 cycles */
int32_t net_mha_query(const int8_t *in)
{
    enum { L1_IN = 41344, L1_OUT = 0, L1_WEIGHTS = 16384, L1_NEXT = 32768 }; /* byte offsets in L1 */
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    uint32_t running[2] = {0}; /* tasks given to integer transformer accelerator 16x64 */
    int32_t code;

    /* Several tiles are under way at a time, each at a different stage:
     *
     *   step   load     start    finish
     *   0      tile 0   -        -        prologue
     *   1      tile 1   tile 0   -        prologue
     *   2      -        tile 1   tile 0   epilogue
     *   3      -        -        tile 1   epilogue
     *   There are too few tiles for a steady state.
     */
    for (uint32_t step = 0; step < 4u; ++step) {
        if (step >= 1u && step < 3u) { /* start */
            const uint32_t tile = step - 1u;
            const uint32_t k = tile;
            cluster_dma_wait(ready);
            const snitch_ita_task_t task = {
                .rows = 128,
                .cols = 64,
                .inner = 64,
                .operation = SNITCH_ITA_OP_LINEAR,
                .bias_kind = SNITCH_ITA_BIAS_COLS,
                .requant.mult = 114,
                .requant.shift = 14,
                .requant.add = 0,
                .activation = SNITCH_ITA_ACT_IDENTITY,
                .left = HTVM_L1_BASE + L1_IN,
                .left_stride = 64,
                .right = HTVM_L1_BASE + L1_WEIGHTS + tile % 2u * 4288u,
                .right_stride = 64,
                .bias = HTVM_L1_BASE + L1_WEIGHTS + tile % 2u * 4288u + 4096,
                .out = HTVM_L1_BASE + L1_OUT + k * 64u,
                .out_stride = 128,
            };
            running[tile % 2u] = snitch_ita_program(&task);
            if (tile == 1u) { /* constants of the next layer */
                cluster_dma_start(&(cluster_dma_t){
                    .to = cluster_l1(L1_NEXT),
                    .from = net_mha_key_weights,
                    .bytes = 4288,
                    .rows = 1,
                });
            }
        }
        if (step >= 2u) { /* finish */
            const uint32_t tile = step - 2u;
            code = snitch_ita_wait_for(running[tile % 2u]);
            if (code != 0) {
                return code;
            }
        }
        if (step < 2u) { /* load */
            const uint32_t tile = step;
            const uint32_t k = tile;
            if (tile == 0u) { /* rows of in */
                cluster_dma_start(&(cluster_dma_t){
                    .to = cluster_l1(L1_IN),
                    .from = in,
                    .bytes = 8192,
                    .rows = 1,
                });
            }
            ready = cluster_dma_start(&(cluster_dma_t){ /* weights */
                .to = cluster_l1(L1_WEIGHTS + tile % 2u * 4288u),
                .from = net_mha_query_weights + k * 4288u,
                .bytes = 4288,
                .rows = 1,
            });
        }
    }
    cluster_dma_wait_all();
    return 0;
}

/* mha.key: gemm 128x64 times 64x128
 * on the integer transformer accelerator 16x64; tile k=64, y=128 (2 in all, two of them in L1)
 * predicted: 1673 cycles */
int32_t net_mha_key(const int8_t *in)
{
    enum { L1_IN = 57728, L1_OUT = 16384, L1_WEIGHTS = 32768, L1_NEXT = 49152 }; /* byte offsets in L1 */
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    uint32_t running[2] = {0}; /* tasks given to integer transformer accelerator 16x64 */
    int32_t code;

    /* Several tiles are under way at a time, each at a different stage:
     *
     *   step   load     start    finish
     *   0      tile 0   -        -        prologue
     *   1      tile 1   tile 0   -        prologue
     *   2      -        tile 1   tile 0   epilogue
     *   3      -        -        tile 1   epilogue
     *   There are too few tiles for a steady state.
     */
    for (uint32_t step = 0; step < 4u; ++step) {
        if (step >= 1u && step < 3u) { /* start */
            const uint32_t tile = step - 1u;
            const uint32_t k = tile;
            cluster_dma_wait(ready);
            const snitch_ita_task_t task = {
                .rows = 128,
                .cols = 64,
                .inner = 64,
                .operation = SNITCH_ITA_OP_LINEAR,
                .bias_kind = SNITCH_ITA_BIAS_COLS,
                .requant.mult = 70,
                .requant.shift = 14,
                .requant.add = -3,
                .activation = SNITCH_ITA_ACT_IDENTITY,
                .left = HTVM_L1_BASE + L1_IN,
                .left_stride = 64,
                .right = HTVM_L1_BASE + L1_WEIGHTS + tile % 2u * 4288u,
                .right_stride = 64,
                .bias = HTVM_L1_BASE + L1_WEIGHTS + tile % 2u * 4288u + 4096,
                .out = HTVM_L1_BASE + L1_OUT + k * 64u,
                .out_stride = 128,
            };
            running[tile % 2u] = snitch_ita_program(&task);
            if (tile == 1u) { /* constants of the next layer */
                cluster_dma_start(&(cluster_dma_t){
                    .to = cluster_l1(L1_NEXT),
                    .from = net_mha_value_weights,
                    .bytes = 4288,
                    .rows = 1,
                });
            }
        }
        if (step >= 2u) { /* finish */
            const uint32_t tile = step - 2u;
            code = snitch_ita_wait_for(running[tile % 2u]);
            if (code != 0) {
                return code;
            }
        }
        if (step < 2u) { /* load */
            const uint32_t tile = step;
            const uint32_t k = tile;
            if (tile == 0u) { /* rows of in */
                ready = cluster_dma_start(&(cluster_dma_t){
                    .to = cluster_l1(L1_IN),
                    .from = in,
                    .bytes = 8192,
                    .rows = 1,
                });
            }
            if (tile != 0u) { /* weights */
                ready = cluster_dma_start(&(cluster_dma_t){
                    .to = cluster_l1(L1_WEIGHTS + tile % 2u * 4288u),
                    .from = net_mha_key_weights + k * 4288u,
                    .bytes = 4288,
                    .rows = 1,
                });
            }
        }
    }
    cluster_dma_wait_all();
    return 0;
}

/* mha.value: gemm 128x64 times 64x128
 * on the integer transformer accelerator 16x64; tile k=64, y=128 (2 in all, two of them in L1)
 * predicted: 1673 cycles */
int32_t net_mha_value(const int8_t *in)
{
    enum { L1_IN = 57728, L1_OUT = 32768, L1_WEIGHTS = 49152 }; /* byte offsets in L1 */
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    uint32_t running[2] = {0}; /* tasks given to integer transformer accelerator 16x64 */
    int32_t code;

    /* Several tiles are under way at a time, each at a different stage:
     *
     *   step   load     start    finish
     *   0      tile 0   -        -        prologue
     *   1      tile 1   tile 0   -        prologue
     *   2      -        tile 1   tile 0   epilogue
     *   3      -        -        tile 1   epilogue
     *   There are too few tiles for a steady state.
     */
    for (uint32_t step = 0; step < 4u; ++step) {
        if (step >= 1u && step < 3u) { /* start */
            const uint32_t tile = step - 1u;
            const uint32_t k = tile;
            cluster_dma_wait(ready);
            const snitch_ita_task_t task = {
                .rows = 64,
                .cols = 128,
                .inner = 64,
                .operation = SNITCH_ITA_OP_LINEAR,
                .bias_kind = SNITCH_ITA_BIAS_ROWS,
                .requant.mult = 58,
                .requant.shift = 14,
                .requant.add = -2,
                .activation = SNITCH_ITA_ACT_IDENTITY,
                .left = HTVM_L1_BASE + L1_WEIGHTS + tile % 2u * 4288u,
                .left_stride = 64,
                .right = HTVM_L1_BASE + L1_IN,
                .right_stride = 64,
                .bias = HTVM_L1_BASE + L1_WEIGHTS + tile % 2u * 4288u + 4096,
                .out = HTVM_L1_BASE + L1_OUT + (k * 64u) * 128u,
                .out_stride = 128,
            };
            running[tile % 2u] = snitch_ita_program(&task);
        }
        if (step >= 2u) { /* finish */
            const uint32_t tile = step - 2u;
            code = snitch_ita_wait_for(running[tile % 2u]);
            if (code != 0) {
                return code;
            }
        }
        if (step < 2u) { /* load */
            const uint32_t tile = step;
            const uint32_t k = tile;
            if (tile == 0u) { /* rows of in */
                ready = cluster_dma_start(&(cluster_dma_t){
                    .to = cluster_l1(L1_IN),
                    .from = in,
                    .bytes = 8192,
                    .rows = 1,
                });
            }
            if (tile != 0u) { /* weights */
                ready = cluster_dma_start(&(cluster_dma_t){
                    .to = cluster_l1(L1_WEIGHTS + tile % 2u * 4288u),
                    .from = net_mha_value_weights + k * 4288u,
                    .bytes = 4288,
                    .rows = 1,
                });
            }
        }
    }
    return 0;
}

/* mha.context: attend 128 queries, 128 keys, head size 128
 * on the integer transformer accelerator 16x64; tile k=128, y=128 (1 in all)
 * predicted: 7733 cycles */
int32_t net_mha_context(void)
{
    enum { L1_QUERY = 0, L1_KEY = 16384, L1_VALUE = 32768, L1_OUT = 49152, L1_NEXT = 65536, L1_SCRATCH = 73920 }; /* byte offsets in L1 */
    uint32_t running = 0; /* tasks given to integer transformer accelerator 16x64 */
    int32_t code;

    for (uint32_t head = 0; head < 2u; ++head) {
        for (uint32_t row = 0; row < 128; row += 64u) {
            const snitch_ita_task_t scores = {
                .rows = 64,
                .activation = SNITCH_ITA_ACT_IDENTITY,
                .cols = 128,
                .inner = 64,
                .length = 128,
                .operation = SNITCH_ITA_OP_QK,
                .bias_kind = SNITCH_ITA_BIAS_NONE,
                .flags = 0,
                .requant.mult = 9,
                .requant.shift = 15,
                .requant.add = -3,
                .left = HTVM_L1_BASE + L1_QUERY + row * 128u + head * 64u,
                .left_stride = 128,
                .right = HTVM_L1_BASE + L1_KEY + head * 64u,
                .right_stride = 128,
                .out = HTVM_L1_BASE + L1_SCRATCH,
                .out_stride = 128,
            };
            const snitch_ita_task_t context = {
                .rows = 64,
                .activation = SNITCH_ITA_ACT_IDENTITY,
                .cols = 64,
                .inner = 128,
                .operation = SNITCH_ITA_OP_AV,
                .bias_kind = SNITCH_ITA_BIAS_NONE,
                .requant.mult = 183,
                .requant.shift = 15,
                .requant.add = -3,
                .left = HTVM_L1_BASE + L1_SCRATCH,
                .left_stride = 128,
                .right = HTVM_L1_BASE + L1_VALUE + (head * 64u) * 128u,
                .right_stride = 128,
                .out = HTVM_L1_BASE + L1_OUT + row * 128u + head * 64u,
                .out_stride = 128,
            };
            (void)snitch_ita_program(&scores);
            running = snitch_ita_program(&context);
        }
    }
    cluster_dma_start(&(cluster_dma_t){ /* constants of the next layer */
        .to = cluster_l1(L1_NEXT),
        .from = net_mha_weights,
        .bytes = 8384,
        .rows = 1,
    });
    code = snitch_ita_wait_for(running);
    if (code != 0) {
        return code;
    }
    cluster_dma_wait_all();
    return 0;
}

/* mha: gemm 128x128 times 128x64
 * on the integer transformer accelerator 16x64; tile k=64, y=128 (1 in all)
 * predicted: 1696 cycles */
int32_t net_mha(int8_t *out)
{
    enum { L1_IN = 49152, L1_OUT = 0, L1_WEIGHTS = 65536 }; /* byte offsets in L1 */
    uint32_t running = 0; /* tasks given to integer transformer accelerator 16x64 */
    int32_t code;

    const snitch_ita_task_t task = {
        .rows = 128,
        .cols = 64,
        .inner = 128,
        .operation = SNITCH_ITA_OP_LINEAR,
        .bias_kind = SNITCH_ITA_BIAS_COLS,
        .requant.mult = 112,
        .requant.shift = 14,
        .requant.add = 1,
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
        .to = out,
        .from = cluster_l1(L1_OUT),
        .bytes = 8192,
        .rows = 1,
    });
    cluster_dma_wait_all();
    return 0;
}
