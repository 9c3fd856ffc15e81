/* constant: net_first_rows0_weights[33536], uint8, aligned to 16: weights and biases of first.rows0 */
/* first.rows0: gemm 64x128 times 128x256
 * on the integer transformer accelerator 16x64; tile k=64, y=64 (4 in all, two of them in L1)
 * predicted: 3102 cycles */
int32_t net_first_rows0(const int8_t *in)
{
    enum { L1_IN = 66304, L1_OUT = 49920, L1_WEIGHTS = 33152, L1_NEXT = 0 }; /* byte offsets in L1 */
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    uint32_t running[2] = {0}; /* tasks given to integer transformer accelerator 16x64 */
    int32_t code;

    /* Several tiles are under way at a time, each at a different stage:
     *
     *   step     load        start           finish
     *   0        tile 0      -               -               prologue
     *   1        tile 1      tile 0          -               prologue
     *   2 to 3   tile step   tile step - 1   tile step - 2   steady state
     *   4        -           tile 3          tile 2          epilogue
     *   5        -           -               tile 3          epilogue
     */
    for (uint32_t step = 0; step < 6u; ++step) {
        if (step >= 1u && step < 5u) { /* start */
            const uint32_t tile = step - 1u;
            const uint32_t k = tile;
            cluster_dma_wait(ready);
            const snitch_ita_task_t task = {
                .rows = 64,
                .cols = 64,
                .inner = 128,
                .operation = SNITCH_ITA_OP_LINEAR,
                .bias_kind = SNITCH_ITA_BIAS_COLS,
                .requant.mult = 3,
                .requant.shift = 8,
                .requant.add = 0,
                .activation = SNITCH_ITA_ACT_RELU,
                .act_requant.mult = 1,
                .act_requant.shift = 0,
                .act_requant.add = 0,
                .left = HTVM_L1_BASE + L1_IN,
                .left_stride = 128,
                .right = HTVM_L1_BASE + L1_WEIGHTS + tile % 2u * 8384u,
                .right_stride = 128,
                .bias = HTVM_L1_BASE + L1_WEIGHTS + tile % 2u * 8384u + 8192,
                .out = HTVM_L1_BASE + L1_OUT + k * 64u,
                .out_stride = 256,
            };
            running[tile % 2u] = snitch_ita_program(&task);
            if (tile == 3u) { /* constants of the next layer */
                cluster_dma_start(&(cluster_dma_t){
                    .to = cluster_l1(L1_NEXT),
                    .from = net_second_rows0_weights,
                    .bytes = 16576,
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
        if (step < 4u) { /* load */
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
                .to = cluster_l1(L1_WEIGHTS + tile % 2u * 8384u),
                .from = net_first_rows0_weights + k * 8384u,
                .bytes = 8384,
                .rows = 1,
            });
        }
    }
    cluster_dma_wait_all();
    return 0;
}

/* constant: net_second_rows0_weights[33152], uint8, aligned to 16: weights and biases of second.rows0 */
/* second.rows0: gemm 64x256 times 256x128
 * on the integer transformer accelerator 16x64; tile k=64, y=64 (2 in all, two of them in L1)
 * predicted: 2658 cycles */
int32_t net_second_rows0(void)
{
    enum { L1_IN = 49920, L1_OUT = 66304, L1_WEIGHTS = 0, L1_NEXT = 33152 }; /* byte offsets in L1 */
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
            if (tile != 0u) {
                cluster_dma_wait(ready);
            }
            const snitch_ita_task_t task = {
                .rows = 64,
                .cols = 64,
                .inner = 256,
                .operation = SNITCH_ITA_OP_LINEAR,
                .bias_kind = SNITCH_ITA_BIAS_COLS,
                .requant.mult = 3,
                .requant.shift = 9,
                .requant.add = 0,
                .activation = SNITCH_ITA_ACT_IDENTITY,
                .left = HTVM_L1_BASE + L1_IN,
                .left_stride = 256,
                .right = HTVM_L1_BASE + L1_WEIGHTS + tile % 2u * 16576u,
                .right_stride = 256,
                .bias = HTVM_L1_BASE + L1_WEIGHTS + tile % 2u * 16576u + 16384,
                .out = HTVM_L1_BASE + L1_OUT + k * 64u,
                .out_stride = 128,
            };
            running[tile % 2u] = snitch_ita_program(&task);
            if (tile == 1u) { /* constants of the next layer */
                cluster_dma_start(&(cluster_dma_t){
                    .to = cluster_l1(L1_NEXT),
                    .from = net_first_rows1_weights,
                    .bytes = 8384,
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
            if (tile != 0u) { /* weights */
                ready = cluster_dma_start(&(cluster_dma_t){
                    .to = cluster_l1(L1_WEIGHTS + tile % 2u * 16576u),
                    .from = net_second_rows0_weights + k * 16576u,
                    .bytes = 16576,
                    .rows = 1,
                });
            }
        }
    }
    cluster_dma_wait_all();
    return 0;
}

/* sum.rows0: add 128x64x1
 * on the cluster of 8 cores; tile k=128, y=64 (1 in all)
 * predicted: 363 cycles */
int32_t net_sum_rows0_start(const int8_t *in0)
{
    enum { L1_IN0 = 82688, L1_IN1 = 66304, L1_OUT = 90880 }; /* byte offsets in L1 */
    uint32_t ready = 0; /* the last transfer that loads the next tile */

    ready = cluster_dma_start(&(cluster_dma_t){ /* rows of in0 */
        .to = cluster_l1(L1_IN0),
        .from = in0,
        .bytes = 8192,
        .rows = 1,
    });
    cluster_dma_wait(ready);
    const cluster_add_t args = {
        .in = {cluster_l1(L1_IN0), cluster_l1(L1_IN1)},
        .out = cluster_l1(L1_OUT),
        .operands = 2,
        .elements = 8192,
        .flags = 0,
        .requant.mul = 1,
        .requant.add = 0,
        .requant.shift = 1,
        .requant.low = -128,
        .requant.high = 127,
    };
    cluster_start(cluster_add, &args, sizeof args);
    return 0;
}

/* constant: net_first_rows1_weights[33536], uint8, aligned to 16: weights and biases of first.rows1 */
/* first.rows1: gemm 64x128 times 128x256
 * on the integer transformer accelerator 16x64; tile k=64, y=64 (4 in all, two of them in L1)
 * predicted: 2921 cycles */
int32_t net_first_rows1(const int8_t *in)
{
    enum { L1_IN = 74496, L1_OUT = 49920, L1_WEIGHTS = 33152, L1_NEXT = 0 }; /* byte offsets in L1 */
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    uint32_t running[2] = {0}; /* tasks given to integer transformer accelerator 16x64 */
    int32_t code;

    /* Several tiles are under way at a time, each at a different stage:
     *
     *   step     load        start           finish
     *   0        tile 0      -               -               prologue
     *   1        tile 1      tile 0          -               prologue
     *   2 to 3   tile step   tile step - 1   tile step - 2   steady state
     *   4        -           tile 3          tile 2          epilogue
     *   5        -           -               tile 3          epilogue
     */
    for (uint32_t step = 0; step < 6u; ++step) {
        if (step >= 1u && step < 5u) { /* start */
            const uint32_t tile = step - 1u;
            const uint32_t k = tile;
            cluster_dma_wait(ready);
            const snitch_ita_task_t task = {
                .rows = 64,
                .cols = 64,
                .inner = 128,
                .operation = SNITCH_ITA_OP_LINEAR,
                .bias_kind = SNITCH_ITA_BIAS_COLS,
                .requant.mult = 3,
                .requant.shift = 8,
                .requant.add = 0,
                .activation = SNITCH_ITA_ACT_RELU,
                .act_requant.mult = 1,
                .act_requant.shift = 0,
                .act_requant.add = 0,
                .left = HTVM_L1_BASE + L1_IN,
                .left_stride = 128,
                .right = HTVM_L1_BASE + L1_WEIGHTS + tile % 2u * 8384u,
                .right_stride = 128,
                .bias = HTVM_L1_BASE + L1_WEIGHTS + tile % 2u * 8384u + 8192,
                .out = HTVM_L1_BASE + L1_OUT + k * 64u,
                .out_stride = 256,
            };
            running[tile % 2u] = snitch_ita_program(&task);
            if (tile == 3u) { /* constants of the next layer */
                cluster_dma_start(&(cluster_dma_t){
                    .to = cluster_l1(L1_NEXT),
                    .from = net_second_rows1_weights,
                    .bytes = 16576,
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
        if (step < 4u) { /* load */
            const uint32_t tile = step;
            const uint32_t k = tile;
            if (tile == 0u) { /* rows of in */
                ready = cluster_dma_start(&(cluster_dma_t){
                    .to = cluster_l1(L1_IN),
                    .from = in + 8192,
                    .bytes = 8192,
                    .rows = 1,
                });
            }
            if (tile != 0u) { /* weights */
                ready = cluster_dma_start(&(cluster_dma_t){
                    .to = cluster_l1(L1_WEIGHTS + tile % 2u * 8384u),
                    .from = net_first_rows1_weights + k * 8384u,
                    .bytes = 8384,
                    .rows = 1,
                });
            }
        }
    }
    cluster_dma_wait_all();
    return 0;
}

/* constant: net_second_rows1_weights[33152], uint8, aligned to 16: weights and biases of second.rows1 */
/* second.rows1: gemm 64x256 times 256x128
 * on the integer transformer accelerator 16x64; tile k=64, y=64 (2 in all, two of them in L1)
 * predicted: 2658 cycles */
int32_t net_second_rows1(void)
{
    enum { L1_IN = 49920, L1_OUT = 33152, L1_WEIGHTS = 0 }; /* byte offsets in L1 */
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
            if (tile != 0u) {
                cluster_dma_wait(ready);
            }
            const snitch_ita_task_t task = {
                .rows = 64,
                .cols = 64,
                .inner = 256,
                .operation = SNITCH_ITA_OP_LINEAR,
                .bias_kind = SNITCH_ITA_BIAS_COLS,
                .requant.mult = 3,
                .requant.shift = 9,
                .requant.add = 0,
                .activation = SNITCH_ITA_ACT_IDENTITY,
                .left = HTVM_L1_BASE + L1_IN,
                .left_stride = 256,
                .right = HTVM_L1_BASE + L1_WEIGHTS + tile % 2u * 16576u,
                .right_stride = 256,
                .bias = HTVM_L1_BASE + L1_WEIGHTS + tile % 2u * 16576u + 16384,
                .out = HTVM_L1_BASE + L1_OUT + k * 64u,
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
            if (tile != 0u) { /* weights */
                ready = cluster_dma_start(&(cluster_dma_t){
                    .to = cluster_l1(L1_WEIGHTS + tile % 2u * 16576u),
                    .from = net_second_rows1_weights + k * 16576u,
                    .bytes = 16576,
                    .rows = 1,
                });
            }
        }
    }
    return 0;
}

/* sum.rows0: add 128x64x1
 * on the cluster of 8 cores; tile k=128, y=64 (1 in all)
 * predicted: 6968 cycles */
int32_t net_sum_rows0(void)
{

    cluster_join();
    return 0;
}

/* sum.rows1: add 128x64x1
 * on the cluster of 8 cores; tile k=128, y=64 (1 in all)
 * predicted: 11353 cycles */
int32_t net_sum_rows1(const int8_t *in0)
{
    enum { L1_IN0 = 0, L1_IN1 = 33152, L1_OUT = 8192 }; /* byte offsets in L1 */
    uint32_t ready = 0; /* the last transfer that loads the next tile */

    ready = cluster_dma_start(&(cluster_dma_t){ /* rows of in0 */
        .to = cluster_l1(L1_IN0),
        .from = in0 + 8192,
        .bytes = 8192,
        .rows = 1,
    });
    cluster_dma_wait(ready);
    const cluster_add_t args = {
        .in = {cluster_l1(L1_IN0), cluster_l1(L1_IN1)},
        .out = cluster_l1(L1_OUT),
        .operands = 2,
        .elements = 8192,
        .flags = 0,
        .requant.mul = 1,
        .requant.add = 0,
        .requant.shift = 1,
        .requant.low = -128,
        .requant.high = 127,
    };
    cluster_run(cluster_add, &args);
    return 0;
}

/* constant: net_norm_rows1_constants[1024], uint8, aligned to 16: constants of norm.rows1 */
/* norm.rows1: rows 128x64x1
 * on the cluster of 8 cores; tile k=128, y=64 (1 in all)
 * predicted: 9559 cycles */
int32_t net_norm_rows1(int8_t *out)
{
    enum { L1_IN = 8192, L1_OUT = 0, L1_WEIGHTS = 16384 }; /* byte offsets in L1 */
    uint32_t ready = 0; /* the last transfer that loads the next tile */

    ready = cluster_dma_start(&(cluster_dma_t){ /* weights */
        .to = cluster_l1(L1_WEIGHTS),
        .from = net_norm_rows1_constants,
        .bytes = 1024,
        .rows = 1,
    });
    cluster_dma_wait(ready);
    const cluster_norm_t args = {
        .in = cluster_l1(L1_IN),
        .out = cluster_l1(L1_OUT),
        .weight = cluster_l1(L1_WEIGHTS),
        .bias = cluster_l1(L1_WEIGHTS + 512),
        .rows = 64,
        .n = 128,
        .shift = 6,
        .flags = 0,
    };
    cluster_run(cluster_affine_norm, &args);
    cluster_dma_start(&(cluster_dma_t){ /* result */
        .to = out + 8192,
        .from = cluster_l1(L1_OUT),
        .bytes = 8192,
        .rows = 1,
    });
    cluster_dma_wait_all();
    return 0;
}

/* constant: net_norm_rows0_constants[1024], uint8, aligned to 16: constants of norm.rows0 */
/* norm.rows0: rows 128x64x1
 * on the cluster of 8 cores; tile k=128, y=64 (1 in all)
 * predicted: 9559 cycles */
int32_t net_norm_rows0(int8_t *out)
{
    enum { L1_IN = 90880, L1_OUT = 0, L1_WEIGHTS = 8192 }; /* byte offsets in L1 */
    uint32_t ready = 0; /* the last transfer that loads the next tile */

    ready = cluster_dma_start(&(cluster_dma_t){ /* weights */
        .to = cluster_l1(L1_WEIGHTS),
        .from = net_norm_rows0_constants,
        .bytes = 1024,
        .rows = 1,
    });
    cluster_dma_wait(ready);
    const cluster_norm_t args = {
        .in = cluster_l1(L1_IN),
        .out = cluster_l1(L1_OUT),
        .weight = cluster_l1(L1_WEIGHTS),
        .bias = cluster_l1(L1_WEIGHTS + 512),
        .rows = 64,
        .n = 128,
        .shift = 6,
        .flags = 0,
    };
    cluster_run(cluster_affine_norm, &args);
    cluster_dma_start(&(cluster_dma_t){ /* result */
        .to = out,
        .from = cluster_l1(L1_OUT),
        .bytes = 8192,
        .rows = 1,
    });
    cluster_dma_wait_all();
    return 0;
}
