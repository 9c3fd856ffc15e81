/* prologue: mapped 5x6x7, x to mapped.core
 * on the cluster's cores */
int32_t net_x_mapped_to_core(const int8_t *in, int8_t *out)
{
    uint8_t *const first = cluster_l1(256u);
    uint8_t *const second = cluster_l1(468u);
    uint8_t *const table = cluster_l1(0u);

    cluster_dma_start(&(cluster_dma_t){.to = table, .from = net_x_mapped_to_core_table, .bytes = 256u, .rows = 1});
    cluster_dma_start(&(cluster_dma_t){
        .to = first, .from = in, .bytes = 42u, .rows = 5,
        .to_stride = 42u, .from_stride = 42u,
    });
    cluster_dma_wait_all();
    const cluster_map_t map = {.in = first, .out = first, .table = table, .elements = 42u * 5u};
    cluster_run(cluster_map, &map);
    const cluster_transpose_t transpose = {
        .in = first, .out = second, .rows = 5u, .columns = 42u,
    };
    cluster_run(cluster_transpose, &transpose);
    cluster_dma_start(&(cluster_dma_t){
        .to = out, .from = second, .bytes = 42u * 5u, .rows = 1,
    });
    cluster_dma_wait_all();
    return 0;
}

/* prologue: x 5x6x7, x to x.core
 * on the cluster's cores */
int32_t net_x_to_core(const int8_t *in, int8_t *out)
{
    uint8_t *const first = cluster_l1(256u);
    uint8_t *const second = cluster_l1(468u);

    cluster_dma_start(&(cluster_dma_t){
        .to = first, .from = in, .bytes = 42u, .rows = 5,
        .to_stride = 42u, .from_stride = 42u,
    });
    cluster_dma_wait_all();
    const cluster_transpose_t transpose = {
        .in = first, .out = second, .rows = 5u, .columns = 42u,
    };
    cluster_run(cluster_transpose, &transpose);
    cluster_dma_start(&(cluster_dma_t){
        .to = out, .from = second, .bytes = 42u * 5u, .rows = 1,
    });
    cluster_dma_wait_all();
    return 0;
}

/* epilogue: x 5x6x7, x.core to x
 * on the cluster's cores */
int32_t net_x_from_core(const int8_t *in, int8_t *out)
{
    uint8_t *const first = cluster_l1(256u);
    uint8_t *const second = cluster_l1(468u);

    cluster_dma_start(&(cluster_dma_t){
        .to = first, .from = in, .bytes = 42u * 5u, .rows = 1,
    });
    cluster_dma_wait_all();
    const cluster_transpose_t transpose = {
        .in = first, .out = second, .rows = 42u, .columns = 5u,
    };
    cluster_run(cluster_transpose, &transpose);
    cluster_dma_start(&(cluster_dma_t){
        .to = out, .from = second, .bytes = 42u, .rows = 5,
        .to_stride = 42u, .from_stride = 42u,
    });
    cluster_dma_wait_all();
    return 0;
}

/* prologue: mapped 3x150x190, x to mapped.core
 * on the cluster's cores, 18900 of 28500 pixels at a time */
int32_t net_x_mapped_to_core(const int8_t *in, int8_t *out)
{
    uint8_t *const first = cluster_l1(256u);
    uint8_t *const second = cluster_l1(56956u);
    uint8_t *const table = cluster_l1(0u);

    cluster_dma_start(&(cluster_dma_t){.to = table, .from = net_x_mapped_to_core_table, .bytes = 256u, .rows = 1});
    for (uint32_t begin = 0; begin < 28500u; begin += 18900u) {
        const uint32_t left = 28500u - begin, pixels = left < 18900u ? left : 18900u;
        cluster_dma_start(&(cluster_dma_t){
            .to = first, .from = in + begin, .bytes = pixels, .rows = 3,
            .to_stride = pixels, .from_stride = 28500u,
        });
        cluster_dma_wait_all();
        const cluster_map_t map = {.in = first, .out = first, .table = table, .elements = pixels * 3u};
        cluster_run(cluster_map, &map);
        const cluster_transpose_t transpose = {
            .in = first, .out = second, .rows = 3u, .columns = pixels,
        };
        cluster_run(cluster_transpose, &transpose);
        cluster_dma_start(&(cluster_dma_t){
            .to = out + begin * 3u, .from = second, .bytes = pixels * 3u, .rows = 1,
        });
    }
    cluster_dma_wait_all();
    return 0;
}

/* prologue: x 3x150x190, x to x.core
 * on the cluster's cores, 18900 of 28500 pixels at a time */
int32_t net_x_to_core(const int8_t *in, int8_t *out)
{
    uint8_t *const first = cluster_l1(256u);
    uint8_t *const second = cluster_l1(56956u);

    for (uint32_t begin = 0; begin < 28500u; begin += 18900u) {
        const uint32_t left = 28500u - begin, pixels = left < 18900u ? left : 18900u;
        cluster_dma_start(&(cluster_dma_t){
            .to = first, .from = in + begin, .bytes = pixels, .rows = 3,
            .to_stride = pixels, .from_stride = 28500u,
        });
        cluster_dma_wait_all();
        const cluster_transpose_t transpose = {
            .in = first, .out = second, .rows = 3u, .columns = pixels,
        };
        cluster_run(cluster_transpose, &transpose);
        cluster_dma_start(&(cluster_dma_t){
            .to = out + begin * 3u, .from = second, .bytes = pixels * 3u, .rows = 1,
        });
    }
    cluster_dma_wait_all();
    return 0;
}

/* epilogue: x 3x150x190, x.core to x
 * on the cluster's cores, 18900 of 28500 pixels at a time */
int32_t net_x_from_core(const int8_t *in, int8_t *out)
{
    uint8_t *const first = cluster_l1(256u);
    uint8_t *const second = cluster_l1(56956u);

    for (uint32_t begin = 0; begin < 28500u; begin += 18900u) {
        const uint32_t left = 28500u - begin, pixels = left < 18900u ? left : 18900u;
        cluster_dma_start(&(cluster_dma_t){
            .to = first, .from = in + begin * 3u, .bytes = pixels * 3u, .rows = 1,
        });
        cluster_dma_wait_all();
        const cluster_transpose_t transpose = {
            .in = first, .out = second, .rows = pixels, .columns = 3u,
        };
        cluster_run(cluster_transpose, &transpose);
        cluster_dma_start(&(cluster_dma_t){
            .to = out + begin, .from = second, .bytes = pixels, .rows = 3,
            .to_stride = 28500u, .from_stride = pixels,
        });
    }
    cluster_dma_wait_all();
    return 0;
}

/* prologue: mapped 5x6x7, x to mapped.core
 * on the cluster's cores */
int32_t net_x_mapped_to_core(const int8_t *in, int8_t *out)
{
    uint8_t *const first = cluster_l1(256u);
    uint8_t *const table = cluster_l1(0u);

    cluster_dma_start(&(cluster_dma_t){.to = table, .from = net_x_mapped_to_core_table, .bytes = 256u, .rows = 1});
    cluster_dma_start(&(cluster_dma_t){
        .to = first, .from = in, .bytes = 210u, .rows = 1,
    });
    cluster_dma_wait_all();
    const cluster_map_t map = {.in = first, .out = first, .table = table, .elements = 210u};
    cluster_run(cluster_map, &map);
    cluster_dma_start(&(cluster_dma_t){
        .to = out, .from = first, .bytes = 210u, .rows = 1,
    });
    cluster_dma_wait_all();
    return 0;
}
