/* mha.head0.query: gemm 128x64 times 64x64
 * on the integer transformer accelerator 16x64; tile k=64, y=128 (1 in all)
 * predicted: 1189 cycles */
int32_t net_mha_head0_query(const int8_t *in)
{
    enum { L1_IN = 0, L1_OUT = 8192, L1_WEIGHTS = 16384, L1_NEXT = 24576 }; /* byte offsets in L1 */
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    uint32_t running = 0; /* tasks given to integer transformer accelerator 16x64 */
    int32_t code;

    cluster_dma_start(&(cluster_dma_t){ /* rows of in */
        .to = cluster_l1(L1_IN),
        .from = in,
        .bytes = 8192,
        .rows = 1,
    });
    ready = cluster_dma_start(&(cluster_dma_t){ /* weights */
        .to = cluster_l1(L1_WEIGHTS),
        .from = net_mha_head0_query_weights,
        .bytes = 4288,
        .rows = 1,
    });
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
        .right = HTVM_L1_BASE + L1_WEIGHTS,
        .right_stride = 64,
        .bias = HTVM_L1_BASE + L1_WEIGHTS + 4096,
        .out = HTVM_L1_BASE + L1_OUT,
        .out_stride = 64,
    };
    running = snitch_ita_program(&task);
    cluster_dma_start(&(cluster_dma_t){ /* constants of the next layer */
        .to = cluster_l1(L1_NEXT),
        .from = net_mha_head0_key_weights,
        .bytes = 4288,
        .rows = 1,
    });
    code = snitch_ita_wait_for(running);
    if (code != 0) {
        return code;
    }
    cluster_dma_wait_all();
    return 0;
}

/* mha.head0.key: gemm 128x64 times 64x64
 * on the integer transformer accelerator 16x64; tile k=64, y=128 (1 in all)
 * predicted: 1072 cycles */
int32_t net_mha_head0_key(const int8_t *in)
{
    enum { L1_IN = 0, L1_OUT = 16384, L1_WEIGHTS = 24576, L1_NEXT = 32768 }; /* byte offsets in L1 */
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    uint32_t running = 0; /* tasks given to integer transformer accelerator 16x64 */
    int32_t code;

    ready = cluster_dma_start(&(cluster_dma_t){ /* rows of in */
        .to = cluster_l1(L1_IN),
        .from = in,
        .bytes = 8192,
        .rows = 1,
    });
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
        .right = HTVM_L1_BASE + L1_WEIGHTS,
        .right_stride = 64,
        .bias = HTVM_L1_BASE + L1_WEIGHTS + 4096,
        .out = HTVM_L1_BASE + L1_OUT,
        .out_stride = 64,
    };
    running = snitch_ita_program(&task);
    cluster_dma_start(&(cluster_dma_t){ /* constants of the next layer */
        .to = cluster_l1(L1_NEXT),
        .from = net_mha_head0_value_weights,
        .bytes = 4288,
        .rows = 1,
    });
    code = snitch_ita_wait_for(running);
    if (code != 0) {
        return code;
    }
    cluster_dma_wait_all();
    return 0;
}

/* mha.head0.value: gemm 128x64 times 64x64
 * on the integer transformer accelerator 16x64; tile k=64, y=128 (1 in all)
 * predicted: 1072 cycles */
int32_t net_mha_head0_value(const int8_t *in)
{
    enum { L1_IN = 0, L1_OUT = 24576, L1_WEIGHTS = 32768 }; /* byte offsets in L1 */
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    uint32_t running = 0; /* tasks given to integer transformer accelerator 16x64 */
    int32_t code;

    ready = cluster_dma_start(&(cluster_dma_t){ /* rows of in */
        .to = cluster_l1(L1_IN),
        .from = in,
        .bytes = 8192,
        .rows = 1,
    });
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
        .left = HTVM_L1_BASE + L1_WEIGHTS,
        .left_stride = 64,
        .right = HTVM_L1_BASE + L1_IN,
        .right_stride = 64,
        .bias = HTVM_L1_BASE + L1_WEIGHTS + 4096,
        .out = HTVM_L1_BASE + L1_OUT,
        .out_stride = 128,
    };
    running = snitch_ita_program(&task);
    code = snitch_ita_wait_for(running);
    if (code != 0) {
        return code;
    }
    return 0;
}

/* mha.head0.context: attend 128 queries, 128 keys, head size 64
 * on the integer transformer accelerator 16x64; tile k=64, y=128 (1 in all)
 * predicted: 3959 cycles */
int32_t net_mha_head0_context(void)
{
    enum { L1_QUERY = 8192, L1_KEY = 16384, L1_VALUE = 24576, L1_OUT = 32768, L1_NEXT = 40960, L1_SCRATCH = 0 }; /* byte offsets in L1 */
    uint32_t running = 0; /* tasks given to integer transformer accelerator 16x64 */
    int32_t code;

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
            .left = HTVM_L1_BASE + L1_QUERY + row * 64u,
            .left_stride = 64,
            .right = HTVM_L1_BASE + L1_KEY,
            .right_stride = 64,
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
            .right = HTVM_L1_BASE + L1_VALUE,
            .right_stride = 128,
            .out = HTVM_L1_BASE + L1_OUT + row * 64u,
            .out_stride = 64,
        };
        (void)snitch_ita_program(&scores);
        running = snitch_ita_program(&context);
    }
    cluster_dma_start(&(cluster_dma_t){ /* constants of the next layer */
        .to = cluster_l1(L1_NEXT),
        .from = net_mha_head0_output_weights,
        .bytes = 4288,
        .rows = 1,
    });
    code = snitch_ita_wait_for(running);
    if (code != 0) {
        return code;
    }
    cluster_dma_wait_all();
    return 0;
}

/* mha.head0.output: gemm 128x64 times 64x64
 * on the integer transformer accelerator 16x64; tile k=64, y=128 (1 in all)
 * predicted: 1072 cycles */
int32_t net_mha_head0_output(int8_t *out)
{
    enum { L1_IN = 32768, L1_OUT = 0, L1_WEIGHTS = 40960, L1_NEXT = 16384 }; /* byte offsets in L1 */
    uint32_t running = 0; /* tasks given to integer transformer accelerator 16x64 */
    int32_t code;

    const snitch_ita_task_t task = {
        .rows = 128,
        .cols = 64,
        .inner = 64,
        .operation = SNITCH_ITA_OP_LINEAR,
        .bias_kind = SNITCH_ITA_BIAS_COLS,
        .requant.mult = 112,
        .requant.shift = 14,
        .requant.add = 1,
        .activation = SNITCH_ITA_ACT_IDENTITY,
        .left = HTVM_L1_BASE + L1_IN,
        .left_stride = 64,
        .right = HTVM_L1_BASE + L1_WEIGHTS,
        .right_stride = 64,
        .bias = HTVM_L1_BASE + L1_WEIGHTS + 4096,
        .out = HTVM_L1_BASE + L1_OUT,
        .out_stride = 64,
    };
    running = snitch_ita_program(&task);
    cluster_dma_start(&(cluster_dma_t){ /* constants of the next layer */
        .to = cluster_l1(L1_NEXT),
        .from = net_mha_head1_query_weights,
        .bytes = 4288,
        .rows = 1,
    });
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

/* mha.head1.query: gemm 128x64 times 64x64
 * on the integer transformer accelerator 16x64; tile k=64, y=128 (1 in all)
 * predicted: 1072 cycles */
int32_t net_mha_head1_query(const int8_t *in)
{
    enum { L1_IN = 0, L1_OUT = 8192, L1_WEIGHTS = 16384, L1_NEXT = 24576 }; /* byte offsets in L1 */
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    uint32_t running = 0; /* tasks given to integer transformer accelerator 16x64 */
    int32_t code;

    ready = cluster_dma_start(&(cluster_dma_t){ /* rows of in */
        .to = cluster_l1(L1_IN),
        .from = in,
        .bytes = 8192,
        .rows = 1,
    });
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
        .right = HTVM_L1_BASE + L1_WEIGHTS,
        .right_stride = 64,
        .bias = HTVM_L1_BASE + L1_WEIGHTS + 4096,
        .out = HTVM_L1_BASE + L1_OUT,
        .out_stride = 64,
    };
    running = snitch_ita_program(&task);
    cluster_dma_start(&(cluster_dma_t){ /* constants of the next layer */
        .to = cluster_l1(L1_NEXT),
        .from = net_mha_head1_key_weights,
        .bytes = 4288,
        .rows = 1,
    });
    code = snitch_ita_wait_for(running);
    if (code != 0) {
        return code;
    }
    cluster_dma_wait_all();
    return 0;
}

/* mha.head1.key: gemm 128x64 times 64x64
 * on the integer transformer accelerator 16x64; tile k=64, y=128 (1 in all)
 * predicted: 1072 cycles */
int32_t net_mha_head1_key(const int8_t *in)
{
    enum { L1_IN = 0, L1_OUT = 16384, L1_WEIGHTS = 24576, L1_NEXT = 32768 }; /* byte offsets in L1 */
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    uint32_t running = 0; /* tasks given to integer transformer accelerator 16x64 */
    int32_t code;

    ready = cluster_dma_start(&(cluster_dma_t){ /* rows of in */
        .to = cluster_l1(L1_IN),
        .from = in,
        .bytes = 8192,
        .rows = 1,
    });
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
        .right = HTVM_L1_BASE + L1_WEIGHTS,
        .right_stride = 64,
        .bias = HTVM_L1_BASE + L1_WEIGHTS + 4096,
        .out = HTVM_L1_BASE + L1_OUT,
        .out_stride = 64,
    };
    running = snitch_ita_program(&task);
    cluster_dma_start(&(cluster_dma_t){ /* constants of the next layer */
        .to = cluster_l1(L1_NEXT),
        .from = net_mha_head1_value_weights,
        .bytes = 4288,
        .rows = 1,
    });
    code = snitch_ita_wait_for(running);
    if (code != 0) {
        return code;
    }
    cluster_dma_wait_all();
    return 0;
}

/* mha.head1.value: gemm 128x64 times 64x64
 * on the integer transformer accelerator 16x64; tile k=64, y=128 (1 in all)
 * predicted: 1072 cycles */
int32_t net_mha_head1_value(const int8_t *in)
{
    enum { L1_IN = 0, L1_OUT = 24576, L1_WEIGHTS = 32768 }; /* byte offsets in L1 */
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    uint32_t running = 0; /* tasks given to integer transformer accelerator 16x64 */
    int32_t code;

    ready = cluster_dma_start(&(cluster_dma_t){ /* rows of in */
        .to = cluster_l1(L1_IN),
        .from = in,
        .bytes = 8192,
        .rows = 1,
    });
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
        .left = HTVM_L1_BASE + L1_WEIGHTS,
        .left_stride = 64,
        .right = HTVM_L1_BASE + L1_IN,
        .right_stride = 64,
        .bias = HTVM_L1_BASE + L1_WEIGHTS + 4096,
        .out = HTVM_L1_BASE + L1_OUT,
        .out_stride = 128,
    };
    running = snitch_ita_program(&task);
    code = snitch_ita_wait_for(running);
    if (code != 0) {
        return code;
    }
    return 0;
}

/* mha.head1.context: attend 128 queries, 128 keys, head size 64
 * on the integer transformer accelerator 16x64; tile k=64, y=128 (1 in all)
 * predicted: 3959 cycles */
int32_t net_mha_head1_context(void)
{
    enum { L1_QUERY = 8192, L1_KEY = 16384, L1_VALUE = 24576, L1_OUT = 32768, L1_NEXT = 40960, L1_SCRATCH = 0 }; /* byte offsets in L1 */
    uint32_t running = 0; /* tasks given to integer transformer accelerator 16x64 */
    int32_t code;

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
            .left = HTVM_L1_BASE + L1_QUERY + row * 64u,
            .left_stride = 64,
            .right = HTVM_L1_BASE + L1_KEY,
            .right_stride = 64,
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
            .right = HTVM_L1_BASE + L1_VALUE,
            .right_stride = 128,
            .out = HTVM_L1_BASE + L1_OUT + row * 64u,
            .out_stride = 64,
        };
        (void)snitch_ita_program(&scores);
        running = snitch_ita_program(&context);
    }
    cluster_dma_start(&(cluster_dma_t){ /* constants of the next layer */
        .to = cluster_l1(L1_NEXT),
        .from = net_mha_head1_output_weights,
        .bytes = 4288,
        .rows = 1,
    });
    code = snitch_ita_wait_for(running);
    if (code != 0) {
        return code;
    }
    cluster_dma_wait_all();
    return 0;
}

/* mha.head1.output: gemm 128x64 times 64x64
 * on the integer transformer accelerator 16x64; tile k=64, y=128 (1 in all)
 * predicted: 1072 cycles */
int32_t net_mha_head1_output(int8_t *out)
{
    enum { L1_IN = 32768, L1_OUT = 0, L1_WEIGHTS = 40960, L1_NEXT = 16384 }; /* byte offsets in L1 */
    uint32_t running = 0; /* tasks given to integer transformer accelerator 16x64 */
    int32_t code;

    const snitch_ita_task_t task = {
        .rows = 128,
        .cols = 64,
        .inner = 64,
        .operation = SNITCH_ITA_OP_LINEAR,
        .bias_kind = SNITCH_ITA_BIAS_COLS,
        .requant.mult = 115,
        .requant.shift = 14,
        .requant.add = -1,
        .activation = SNITCH_ITA_ACT_IDENTITY,
        .left = HTVM_L1_BASE + L1_IN,
        .left_stride = 64,
        .right = HTVM_L1_BASE + L1_WEIGHTS,
        .right_stride = 64,
        .bias = HTVM_L1_BASE + L1_WEIGHTS + 4096,
        .out = HTVM_L1_BASE + L1_OUT,
        .out_stride = 64,
    };
    running = snitch_ita_program(&task);
    cluster_dma_start(&(cluster_dma_t){ /* constants of the next layer */
        .to = cluster_l1(L1_NEXT),
        .from = net_mha_weights,
        .bytes = 8192,
        .rows = 1,
    });
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

/* mha: add 64x128x1
 * on the integer transformer accelerator 16x64; tile k=64, y=64 (2 in all, two of them in L1)
 * predicted: 1922 cycles */
int32_t net_mha(const int8_t *in0, const int8_t *in1, int8_t *out)
{
    enum { L1_IN0 = 0, L1_IN1 = 64, L1_OUT = 24576, L1_WEIGHTS = 16384 }; /* byte offsets in L1 */
    static const struct {
        uint16_t out_start, out_size, in_start, in_size;
        int16_t pad;
    } y_tiles[2] = { /* rows of the result, rows that they read, rows of zeros above */
        {0, 64, 0, 64, 0},
        {64, 64, 64, 64, 0},
    };
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    uint32_t running[2] = {0}; /* tasks given to integer transformer accelerator 16x64 */
    int32_t code;

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
            const snitch_ita_task_t task = {
                .rows = 64,
                .cols = 64,
                .inner = 128,
                .operation = SNITCH_ITA_OP_LINEAR,
                .bias_kind = SNITCH_ITA_BIAS_NONE,
                .requant.mult = 3,
                .requant.shift = 3,
                .requant.add = 0,
                .activation = SNITCH_ITA_ACT_IDENTITY,
                .left = HTVM_L1_BASE + L1_IN0 + y % 2u * 8192u,
                .left_stride = 128,
                .right = HTVM_L1_BASE + L1_WEIGHTS,
                .right_stride = 128,
                .out = HTVM_L1_BASE + L1_OUT + tile % 2u * 4096u,
                .out_stride = 64,
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
                .to = out + y_tiles[y].out_start * 64u,
                .from = cluster_l1(L1_OUT + tile % 2u * 4096u),
                .bytes = 4096,
                .rows = 1,
            });
        }
        if (step < 2u) { /* load */
            const uint32_t tile = step;
            const uint32_t y = tile;
            cluster_dma_start(&(cluster_dma_t){ /* rows of in0 */
                .to = cluster_l1(L1_IN0 + y % 2u * 8192u),
                .from = in0 + y_tiles[y].in_start * 64u,
                .bytes = 64,
                .rows = 64,
                .to_stride = 128,
                .from_stride = 64,
            });
            ready = cluster_dma_start(&(cluster_dma_t){ /* rows of in1 */
                .to = cluster_l1(L1_IN1 + y % 2u * 8192u),
                .from = in1 + y_tiles[y].in_start * 64u,
                .bytes = 64,
                .rows = 64,
                .to_stride = 128,
                .from_stride = 64,
            });
        }
    }
    cluster_dma_wait_all();
    return 0;
}
