/* Ethos-U: maxima, averages, and sums over channels. */
#include "ethos_u_model.h"

typedef struct {
    ethos_u_map_t ifm;
    ethos_u_output_t output;
    ethos_u_window_t window;
    uint32_t kind;
} pool_t;

/* Sums or maxima of channels c to c + count under the kernel; the number of elements there. */
static int64_t reduce(const pool_t *pool, uint32_t y, uint32_t x, uint32_t c, uint32_t count,
                      int64_t *values)
{
    const bool maximum = pool->kind == ETHOS_U_POOL_MAX;
    int32_t row[ETHOS_U_CHUNK];
    int64_t elements = 0;
    for (uint32_t i = 0; i < count; ++i) {
        values[i] = maximum ? INT32_MIN : 0;
    }
    for (uint32_t tap = 0; tap < pool->window.kernel_h * pool->window.kernel_w; ++tap) {
        uint32_t ifm_y = 0, ifm_x = 0;
        bool outside = false;
        const bool there =
            ethos_u_place(&pool->window, y, x, tap / pool->window.kernel_w,
                          tap % pool->window.kernel_w, &ifm_y, &ifm_x, &outside);
        if (outside) {
            continue;
        }
        ++elements;
        if (there) {
            ethos_u_load(&pool->ifm, ifm_y, ifm_x, c, count, row);
        }
        for (uint32_t i = 0; i < count; ++i) {
            const int64_t value = there ? row[i] : 0;
            if (!maximum) {
                values[i] += value;
            } else if (value > values[i]) {
                values[i] = value;
            }
        }
    }
    return elements;
}

/* To the nearest integer, halves away from zero. */
static int64_t divided(int64_t value, int64_t by)
{
    if (by == 0) {
        return 0;
    }
    const int64_t size = value < 0 ? -value : value;
    const int64_t result = (2 * size + by) / (2 * by);
    return value < 0 ? -result : result;
}

static void compute_pixel(const pool_t *pool, uint32_t y, uint32_t x)
{
    const ethos_u_output_t *const output = &pool->output;
    /* A scale can be an average only where the number of elements is the same everywhere.  Vela
     * counts on the NPU to divide where there is padding, whatever the scale's mode. */
    const bool divides = pool->kind == ETHOS_U_POOL_AVERAGE &&
                         (pool->window.padded || !output->global_scale);
    int64_t values[ETHOS_U_CHUNK];
    for (uint32_t c = 0; c < output->map.depth; c += ETHOS_U_CHUNK) {
        const uint32_t count = ethos_u_min(output->map.depth - c, ETHOS_U_CHUNK);
        const int64_t elements = reduce(pool, y, x, c, count, values);
        for (uint32_t i = 0; i < count; ++i) {
            if (divides) {
                values[i] = divided(values[i], elements);
            }
            if (output->global_scale) {
                values[i] = ethos_u_global_scale(output, values[i]);
            }
        }
        ethos_u_store(output, y, x, c, count, values);
    }
}

static void sum_pixel(const pool_t *pool, uint32_t y, uint32_t x)
{
    int32_t row[ETHOS_U_CHUNK];
    int64_t sum = 0;
    for (uint32_t c = 0; c < pool->ifm.depth; c += ETHOS_U_CHUNK) {
        const uint32_t count = ethos_u_min(pool->ifm.depth - c, ETHOS_U_CHUNK);
        ethos_u_load(&pool->ifm, y, x, c, count, row);
        for (uint32_t i = 0; i < count; ++i) {
            sum += row[i];
        }
    }
    const int64_t value = ethos_u_global_scale(&pool->output, sum);
    ethos_u_store(&pool->output, y, x, 0, 1, &value);
}

/* A sum over channels has no window: one result per pixel. */
static bool check_sum(ethos_u_t *npu, const pool_t *pool)
{
    if (pool->window.kernel_h * pool->window.kernel_w != 1 || pool->window.upscale != 0 ||
        pool->window.height != pool->output.map.height ||
        pool->window.width != pool->output.map.width || pool->output.map.depth != 1) {
        return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM,
                                "a sum over channels needs a kernel of 1x1, an IFM of the OFM's "
                                "size and an OFM of one channel");
    }
    return true;
}

bool ethos_u_pool(ethos_u_t *npu, uint32_t kind)
{
    pool_t pool = {.kind = kind};
    if (kind >= ETHOS_U_POOLS) {
        return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM, "no such operation: %u", kind);
    }
    const bool sum = kind == ETHOS_U_POOL_SUM;
    if (!ethos_u_output(npu, sum, &pool.output) || !ethos_u_window(npu, 256u, &pool.window) ||
        (sum && !check_sum(npu, &pool))) {
        return false;
    }
    const ethos_u_map_t *const ofm = &pool.output.map;
    const uint32_t shift = pool.window.upscale != 0 ? 1 : 0;
    const uint32_t depth = sum ? ethos_u_get_size(npu, ETHOS_U_IFM_DEPTH_M1) : ofm->depth;
    if (!ethos_u_map(npu, ETHOS_U_IFM, (pool.window.height + shift) >> shift,
                     (pool.window.width + shift) >> shift, depth, &pool.ifm)) {
        return false;
    }
    const uint64_t taps = (uint64_t)pool.window.kernel_h * pool.window.kernel_w;
    ethos_u_access_t access = {
        .maps = 2,
        .map = {*ofm, pool.ifm},
        .window = pool.window,
        .ifm_block = sum ? 32u / pool.ifm.element : 0,
    };
    if (!ethos_u_work(npu, (uint64_t)ofm->height * ofm->width * ofm->depth, taps) ||
        !ethos_u_work(npu, (uint64_t)pool.ifm.height * pool.ifm.width, depth) ||
        !ethos_u_start(npu, &access, &pool.output) ||
        !ethos_u_need_window(npu, &pool.ifm, &pool.window, ofm->height, ofm->width)) {
        return false;
    }
    for (uint32_t y = 0; y < ofm->height; ++y) {
        for (uint32_t x = 0; x < ofm->width; ++x) {
            if (sum) {
                sum_pixel(&pool, y, x);
            } else {
                compute_pixel(&pool, y, x);
            }
        }
    }
    ethos_u_wrote_map(npu, ofm);
    return true;
}
