/* mha.query: gemm 150x70 times 70x64
 * on the integer transformer accelerator 16x64; tile k=64, y=64 (3 in all, two of them in L1)
 * predicted: 2635 cycles */
int32_t net_mha_query(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 0, L1_OUT = 33152, L1_WEIGHTS = 16384, L1_NEXT = 24768 }; /* byte offsets in L1 */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int16_t pad;
    } y_tiles[3] = { /* rows of the result, rows that they read, rows of zeros above */
        {0, 64, 0, 64, 0},
        {64, 64, 64, 64, 0},
        {128, 22, 128, 22, 0},
    };
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
            const uint32_t y = tile;
            cluster_dma_wait(ready);
            const snitch_ita_task_t task = {
                .rows = (y_tiles[y].out_size + 63u) & ~63u,
                .cols = 64,
                .inner = 128,
                .operation = SNITCH_ITA_OP_LINEAR,
                .bias_kind = SNITCH_ITA_BIAS_COLS,
                .requant.mult = 241,
                .requant.shift = 14,
                .requant.add = 1,
                .activation = SNITCH_ITA_ACT_IDENTITY,
                .left = HTVM_L1_BASE + L1_IN + y % 2u * 8192u,
                .left_stride = 128,
                .right = HTVM_L1_BASE + L1_WEIGHTS,
                .right_stride = 128,
                .bias = HTVM_L1_BASE + L1_WEIGHTS + 8192,
                .out = HTVM_L1_BASE + L1_OUT + tile % 2u * 4096u,
                .out_stride = 64,
            };
            running[tile % 2u] = snitch_ita_program(&task);
            if (tile == 2u) { /* constants of the next layer */
                cluster_dma_start(&(cluster_dma_t){
                    .to = cluster_l1(L1_NEXT),
                    .from = net_mha_key_weights,
                    .bytes = 8384,
                    .rows = 1,
                });
            }
        }
        if (step >= 2u) { /* finish, store */
            const uint32_t tile = step - 2u;
            const uint32_t y = tile;
            code = snitch_ita_wait_for(running[tile % 2u]);
            if (code != 0) {
                return code;
            }
            cluster_dma_start(&(cluster_dma_t){ /* result */
                .to = out + y_tiles[y].out_start * 64u,
                .from = cluster_l1(L1_OUT + tile % 2u * 4096u),
                .bytes = y_tiles[y].out_size * 64,
                .rows = 1,
            });
        }
        if (step < 3u) { /* load */
            const uint32_t tile = step;
            const uint32_t y = tile;
            ready = cluster_dma_start(&(cluster_dma_t){ /* rows of in */
                .to = cluster_l1(L1_IN + y % 2u * 8192u),
                .from = in + y_tiles[y].in_start * 70u,
                .bytes = 70,
                .rows = y_tiles[y].in_size,
                .to_stride = 128,
                .from_stride = 70,
            });
            if (tile == 0u) { /* weights */
                ready = cluster_dma_start(&(cluster_dma_t){
                    .to = cluster_l1(L1_WEIGHTS),
                    .from = net_mha_query_weights,
                    .bytes = 8384,
                    .rows = 1,
                });
            }
        }
    }
    cluster_dma_wait_all();
    return 0;
}

/* mha.key: gemm 150x70 times 70x64
 * on the integer transformer accelerator 16x64; tile k=64, y=64 (3 in all, two of them in L1)
 * predicted: 2454 cycles */
int32_t net_mha_key(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 0, L1_OUT = 16384, L1_WEIGHTS = 24768, L1_NEXT = 36864 }; /* byte offsets in L1 */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int16_t pad;
    } y_tiles[3] = { /* rows of the result, rows that they read, rows of zeros above */
        {0, 64, 0, 64, 0},
        {64, 64, 64, 64, 0},
        {128, 22, 128, 22, 0},
    };
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
            const uint32_t y = tile;
            cluster_dma_wait(ready);
            const snitch_ita_task_t task = {
                .rows = (y_tiles[y].out_size + 63u) & ~63u,
                .cols = 64,
                .inner = 128,
                .operation = SNITCH_ITA_OP_LINEAR,
                .bias_kind = SNITCH_ITA_BIAS_COLS,
                .requant.mult = 93,
                .requant.shift = 14,
                .requant.add = 2,
                .activation = SNITCH_ITA_ACT_IDENTITY,
                .left = HTVM_L1_BASE + L1_IN + y % 2u * 8192u,
                .left_stride = 128,
                .right = HTVM_L1_BASE + L1_WEIGHTS,
                .right_stride = 128,
                .bias = HTVM_L1_BASE + L1_WEIGHTS + 8192,
                .out = HTVM_L1_BASE + L1_OUT + tile % 2u * 4096u,
                .out_stride = 64,
            };
            running[tile % 2u] = snitch_ita_program(&task);
            if (tile == 2u) { /* constants of the next layer */
                cluster_dma_start(&(cluster_dma_t){
                    .to = cluster_l1(L1_NEXT),
                    .from = net_mha_value_weights,
                    .bytes = 8384,
                    .rows = 1,
                });
            }
        }
        if (step >= 2u) { /* finish, store */
            const uint32_t tile = step - 2u;
            const uint32_t y = tile;
            code = snitch_ita_wait_for(running[tile % 2u]);
            if (code != 0) {
                return code;
            }
            cluster_dma_start(&(cluster_dma_t){ /* result */
                .to = out + y_tiles[y].out_start * 64u,
                .from = cluster_l1(L1_OUT + tile % 2u * 4096u),
                .bytes = y_tiles[y].out_size * 64,
                .rows = 1,
            });
        }
        if (step < 3u) { /* load */
            const uint32_t tile = step;
            const uint32_t y = tile;
            ready = cluster_dma_start(&(cluster_dma_t){ /* rows of in */
                .to = cluster_l1(L1_IN + y % 2u * 8192u),
                .from = in + y_tiles[y].in_start * 70u,
                .bytes = 70,
                .rows = y_tiles[y].in_size,
                .to_stride = 128,
                .from_stride = 70,
            });
        }
    }
    cluster_dma_wait_all();
    return 0;
}

/* mha.value: gemm 150x70 times 70x64
 * on the integer transformer accelerator 16x64; tile k=64, y=150 (1 in all)
 * predicted: 2819 cycles */
int32_t net_mha_value(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 0, L1_OUT = 24576, L1_WEIGHTS = 36864 }; /* byte offsets in L1 */
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    uint32_t running = 0; /* tasks given to integer transformer accelerator 16x64 */
    int32_t code;

    ready = cluster_dma_start(&(cluster_dma_t){ /* rows of in */
        .to = cluster_l1(L1_IN),
        .from = in,
        .bytes = 70,
        .rows = 150,
        .to_stride = 128,
        .from_stride = 70,
    });
    cluster_dma_wait(ready);
    const snitch_ita_task_t task = {
        .rows = 64,
        .cols = 192,
        .inner = 128,
        .operation = SNITCH_ITA_OP_LINEAR,
        .bias_kind = SNITCH_ITA_BIAS_ROWS,
        .requant.mult = 235,
        .requant.shift = 14,
        .requant.add = -1,
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
        .to = out,
        .from = cluster_l1(L1_OUT),
        .bytes = 150,
        .rows = 64,
        .from_stride = 192,
        .to_stride = 150,
    });
    cluster_dma_wait_all();
    return 0;
}

/* mha.context: attend 150 queries, 150 keys, head size 64
 * on the integer transformer accelerator 16x64; tile k=64, y=64 (3 in all, two of them in L1)
 * predicted: 9031 cycles */
int32_t net_mha_context(const int8_t *query, const int8_t *key, const int8_t *value, int8_t *out)
{
    enum { L1_QUERY = 45056, L1_KEY = 0, L1_VALUE = 12288, L1_OUT = 36864, L1_SCRATCH = 24576 }; /* byte offsets in L1 */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int16_t pad;
    } y_tiles[3] = { /* rows of the result, rows that they read, rows of zeros above */
        {0, 64, 0, 64, 0},
        {64, 64, 64, 64, 0},
        {128, 22, 128, 22, 0},
    };
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
            const uint32_t y = tile;
            cluster_dma_wait(ready);
            for (uint32_t row = 0; row < y_tiles[y].out_size; row += 64u) {
                const snitch_ita_task_t scores = {
                    .rows = 64,
                    .activation = SNITCH_ITA_ACT_IDENTITY,
                    .cols = 192,
                    .inner = 64,
                    .length = 150,
                    .operation = SNITCH_ITA_OP_QK,
                    .bias_kind = SNITCH_ITA_BIAS_NONE,
                    .flags = 0,
                    .requant.mult = 87,
                    .requant.shift = 15,
                    .requant.add = -2,
                    .left = HTVM_L1_BASE + L1_QUERY + row * 64u,
                    .left_stride = 64,
                    .right = HTVM_L1_BASE + L1_KEY,
                    .right_stride = 64,
                    .out = HTVM_L1_BASE + L1_SCRATCH,
                    .out_stride = 192,
                };
                const snitch_ita_task_t context = {
                    .rows = 64,
                    .activation = SNITCH_ITA_ACT_IDENTITY,
                    .cols = 64,
                    .inner = 192,
                    .operation = SNITCH_ITA_OP_AV,
                    .bias_kind = SNITCH_ITA_BIAS_NONE,
                    .requant.mult = 90,
                    .requant.shift = 15,
                    .requant.add = 3,
                    .left = HTVM_L1_BASE + L1_SCRATCH,
                    .left_stride = 192,
                    .right = HTVM_L1_BASE + L1_VALUE,
                    .right_stride = 192,
                    .out = HTVM_L1_BASE + L1_OUT + tile % 2u * 4096u + row * 64u,
                    .out_stride = 64,
                };
                (void)snitch_ita_program(&scores);
                running[tile % 2u] = snitch_ita_program(&context);
            }
        }
        if (step >= 2u) { /* finish, store */
            const uint32_t tile = step - 2u;
            const uint32_t y = tile;
            code = snitch_ita_wait_for(running[tile % 2u]);
            if (code != 0) {
                return code;
            }
            cluster_dma_start(&(cluster_dma_t){ /* result */
                .to = out + y_tiles[y].out_start * 64u,
                .from = cluster_l1(L1_OUT + tile % 2u * 4096u),
                .bytes = y_tiles[y].out_size * 64,
                .rows = 1,
            });
        }
        if (step < 3u) { /* load */
            const uint32_t tile = step;
            const uint32_t y = tile;
            if (tile != 0u) { /* the rows to overwrite are still being read */
                code = snitch_ita_wait_for(running[(tile - 1u) % 2u]);
                if (code != 0) {
                    return code;
                }
            }
            ready = cluster_dma_start(&(cluster_dma_t){ /* rows of query */
                .to = cluster_l1(L1_QUERY),
                .from = query + y_tiles[y].in_start * 64u,
                .bytes = y_tiles[y].in_size * 64,
                .rows = 1,
            });
            if (tile == 0u) { /* key */
                ready = cluster_dma_start(&(cluster_dma_t){
                    .to = cluster_l1(L1_KEY),
                    .from = key,
                    .bytes = 9600,
                    .rows = 1,
                });
            }
            if (tile == 0u) { /* value */
                ready = cluster_dma_start(&(cluster_dma_t){
                    .to = cluster_l1(L1_VALUE),
                    .from = value,
                    .bytes = 150,
                    .rows = 64,
                    .to_stride = 192,
                    .from_stride = 150,
                });
            }
        }
    }
    cluster_dma_wait_all();
    return 0;
}

/* mha: gemm 150x64 times 64x70
 * on the integer transformer accelerator 16x64; tile k=70, y=64 (3 in all, two of them in L1)
 * predicted: 2596 cycles */
int32_t net_mha(const int8_t *in, int8_t *out)
{
    enum { L1_IN = 24960, L1_OUT = 0, L1_WEIGHTS = 16384 }; /* byte offsets in L1 */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int16_t pad;
    } y_tiles[3] = { /* rows of the result, rows that they read, rows of zeros above */
        {0, 64, 0, 64, 0},
        {64, 64, 64, 64, 0},
        {128, 22, 128, 22, 0},
    };
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
            const uint32_t y = tile;
            cluster_dma_wait(ready);
            const snitch_ita_task_t task = {
                .rows = (y_tiles[y].out_size + 63u) & ~63u,
                .cols = 128,
                .inner = 64,
                .operation = SNITCH_ITA_OP_LINEAR,
                .bias_kind = SNITCH_ITA_BIAS_COLS,
                .requant.mult = 200,
                .requant.shift = 14,
                .requant.add = -1,
                .activation = SNITCH_ITA_ACT_IDENTITY,
                .left = HTVM_L1_BASE + L1_IN + y % 2u * 4096u,
                .left_stride = 64,
                .right = HTVM_L1_BASE + L1_WEIGHTS,
                .right_stride = 64,
                .bias = HTVM_L1_BASE + L1_WEIGHTS + 8192,
                .out = HTVM_L1_BASE + L1_OUT + tile % 2u * 8192u,
                .out_stride = 128,
            };
            running[tile % 2u] = snitch_ita_program(&task);
        }
        if (step >= 2u) { /* finish, store */
            const uint32_t tile = step - 2u;
            const uint32_t y = tile;
            code = snitch_ita_wait_for(running[tile % 2u]);
            if (code != 0) {
                return code;
            }
            cluster_dma_start(&(cluster_dma_t){ /* result */
                .to = out + y_tiles[y].out_start * 70u,
                .from = cluster_l1(L1_OUT + tile % 2u * 8192u),
                .bytes = 70,
                .rows = y_tiles[y].out_size,
                .from_stride = 128,
                .to_stride = 70,
            });
        }
        if (step < 3u) { /* load */
            const uint32_t tile = step;
            const uint32_t y = tile;
            ready = cluster_dma_start(&(cluster_dma_t){ /* rows of in */
                .to = cluster_l1(L1_IN + y % 2u * 4096u),
                .from = in + y_tiles[y].in_start * 64u,
                .bytes = y_tiles[y].in_size * 64,
                .rows = 1,
            });
            if (tile == 0u) { /* weights */
                ready = cluster_dma_start(&(cluster_dma_t){
                    .to = cluster_l1(L1_WEIGHTS),
                    .from = net_mha_weights,
                    .bytes = 8576,
                    .rows = 1,
                });
            }
        }
    }
    cluster_dma_wait_all();
    return 0;
}
