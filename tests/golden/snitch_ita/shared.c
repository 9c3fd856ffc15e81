/* gemm 128x64 times 64x64
 * on the integer transformer accelerator 16x64; tile k=64, y=128 (1 in all)
 * predicted: 1189 cycles
 * shared by 4 layers: mha.head0.query, mha.head0.key, mha.head1.query, mha.head1.key */
int32_t net_shared_gemm_1(const int8_t *in, const uint8_t *weights, uint32_t l1_in, uint32_t l1_out,
    uint32_t l1_weights, int32_t mult, int32_t add)
{
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    uint32_t running = 0; /* tasks given to integer transformer accelerator 16x64 */
    int32_t code;

    cluster_dma_start(&(cluster_dma_t){ /* rows of in */
        .to = cluster_l1(l1_in),
        .from = in,
        .bytes = 8192,
        .rows = 1,
    });
    ready = cluster_dma_start(&(cluster_dma_t){ /* weights */
        .to = cluster_l1(l1_weights),
        .from = weights,
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
        .requant.mult = mult,
        .requant.shift = 14,
        .requant.add = add,
        .activation = SNITCH_ITA_ACT_IDENTITY,
        .left = HTVM_L1_BASE + l1_in,
        .left_stride = 64,
        .right = HTVM_L1_BASE + l1_weights,
        .right_stride = 64,
        .bias = HTVM_L1_BASE + l1_weights + 4096,
        .out = HTVM_L1_BASE + l1_out,
        .out_stride = 64,
    };
    running = snitch_ita_program(&task);
    code = snitch_ita_wait_for(running);
    if (code != 0) {
        return code;
    }
    return 0;
}

/* gemm 128x64 times 64x64
 * on the integer transformer accelerator 16x64; tile k=64, y=128 (1 in all)
 * predicted: 1189 cycles
 * shared by 2 layers: mha.head0.value, mha.head1.value */
int32_t net_shared_gemm_2(const int8_t *in, const uint8_t *weights, uint32_t l1_in, uint32_t l1_out,
    uint32_t l1_weights)
{
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    uint32_t running = 0; /* tasks given to integer transformer accelerator 16x64 */
    int32_t code;

    cluster_dma_start(&(cluster_dma_t){ /* rows of in */
        .to = cluster_l1(l1_in),
        .from = in,
        .bytes = 8192,
        .rows = 1,
    });
    ready = cluster_dma_start(&(cluster_dma_t){ /* weights */
        .to = cluster_l1(l1_weights),
        .from = weights,
        .bytes = 4288,
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
        .left = HTVM_L1_BASE + l1_weights,
        .left_stride = 64,
        .right = HTVM_L1_BASE + l1_in,
        .right_stride = 64,
        .bias = HTVM_L1_BASE + l1_weights + 4096,
        .out = HTVM_L1_BASE + l1_out,
        .out_stride = 128,
    };
    running = snitch_ita_program(&task);
    code = snitch_ita_wait_for(running);
    if (code != 0) {
        return code;
    }
    return 0;
}

/* attend 128 queries, 128 keys, head size 64
 * on the integer transformer accelerator 16x64; tile k=64, y=128 (1 in all)
 * predicted: 3959 cycles
 * shared by 2 layers: mha.head0.context, mha.head1.context */
int32_t net_shared_attend_1(uint32_t l1_query, uint32_t l1_key, uint32_t l1_value, uint32_t l1_out,
    uint32_t l1_scratch)
{
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
            .left = HTVM_L1_BASE + l1_query + row * 64u,
            .left_stride = 64,
            .right = HTVM_L1_BASE + l1_key,
            .right_stride = 64,
            .out = HTVM_L1_BASE + l1_scratch,
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
            .left = HTVM_L1_BASE + l1_scratch,
            .left_stride = 128,
            .right = HTVM_L1_BASE + l1_value,
            .right_stride = 128,
            .out = HTVM_L1_BASE + l1_out + row * 64u,
            .out_stride = 64,
        };
        (void)snitch_ita_program(&scores);
        running = snitch_ita_program(&context);
    }
    code = snitch_ita_wait_for(running);
    if (code != 0) {
        return code;
    }
    return 0;
}

/* gemm 128x64 times 64x64
 * on the integer transformer accelerator 16x64; tile k=64, y=128 (1 in all)
 * predicted: 1011 cycles
 * shared by 2 layers: mha.head0.output, mha.head1.output */
int32_t net_shared_gemm_3(const uint8_t *weights, uint32_t l1_in, uint32_t l1_out,
    uint32_t l1_weights, int32_t mult, int32_t add)
{
    uint32_t ready = 0; /* the last transfer that loads the next tile */
    uint32_t running = 0; /* tasks given to integer transformer accelerator 16x64 */
    int32_t code;

    ready = cluster_dma_start(&(cluster_dma_t){ /* weights */
        .to = cluster_l1(l1_weights),
        .from = weights,
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
        .requant.mult = mult,
        .requant.shift = 14,
        .requant.add = add,
        .activation = SNITCH_ITA_ACT_IDENTITY,
        .left = HTVM_L1_BASE + l1_in,
        .left_stride = 64,
        .right = HTVM_L1_BASE + l1_weights,
        .right_stride = 64,
        .bias = HTVM_L1_BASE + l1_weights + 4096,
        .out = HTVM_L1_BASE + l1_out,
        .out_stride = 64,
    };
    running = snitch_ita_program(&task);
    code = snitch_ita_wait_for(running);
    if (code != 0) {
        return code;
    }
    return 0;
}

/* mha: add 64x128x1
 * on the cluster of 8 cores; tile k=64, y=128 (1 in all)
 * predicted: 11353 cycles */
int32_t net_mha(int8_t *out)
{
    enum { L1_IN0 = 0, L1_IN1 = 8192, L1_OUT = 16384 }; /* byte offsets in L1 */

    const cluster_add_t args = {
        .in = {cluster_l1(L1_IN0), cluster_l1(L1_IN1)},
        .out = cluster_l1(L1_OUT),
        .operands = 2,
        .elements = 8192,
        .flags = 0,
        .requant.mul = 3,
        .requant.add = 4,
        .requant.shift = 3,
        .requant.low = -128,
        .requant.high = 127,
    };
    cluster_run(cluster_add, &args);
    cluster_dma_start(&(cluster_dma_t){ /* result */
        .to = out,
        .from = cluster_l1(L1_OUT),
        .bytes = 8192,
        .rows = 1,
    });
    cluster_dma_wait_all();
    return 0;
}

/* calls, with what is passed after the tensors:
 * mha.head0.query: net_shared_gemm_1(weights = net_mha_head0_query_weights, l1_in = 0, l1_out = 8192, l1_weights = 16384, mult = 114, add = 0)
 * mha.head0.key: net_shared_gemm_1(weights = net_mha_head0_key_weights, l1_in = 0, l1_out = 16384, l1_weights = 24576, mult = 70, add = -3)
 * mha.head0.value: net_shared_gemm_2(weights = net_mha_head0_value_weights, l1_in = 0, l1_out = 24576, l1_weights = 32768)
 * mha.head0.context: net_shared_attend_1(l1_query = 8192, l1_key = 16384, l1_value = 24576, l1_out = 32768, l1_scratch = 0)
 * mha.head0.output: net_shared_gemm_3(weights = net_mha_head0_output_weights, l1_in = 32768, l1_out = 0, l1_weights = 8192, mult = 112, add = 1)
 * mha.head1.query: net_shared_gemm_1(weights = net_mha_head1_query_weights, l1_in = 8192, l1_out = 16384, l1_weights = 24576, mult = 114, add = 0)
 * mha.head1.key: net_shared_gemm_1(weights = net_mha_head1_key_weights, l1_in = 8192, l1_out = 24576, l1_weights = 32768, mult = 70, add = -3)
 * mha.head1.value: net_shared_gemm_2(weights = net_mha_head1_value_weights, l1_in = 8192, l1_out = 32768, l1_weights = 40960)
 * mha.head1.context: net_shared_attend_1(l1_query = 16384, l1_key = 24576, l1_value = 32768, l1_out = 40960, l1_scratch = 8192)
 * mha.head1.output: net_shared_gemm_3(weights = net_mha_head1_output_weights, l1_in = 40960, l1_out = 8192, l1_weights = 16384, mult = 115, add = -1)
 * mha: net_mha()
 */
