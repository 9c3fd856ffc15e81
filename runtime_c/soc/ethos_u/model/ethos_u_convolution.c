/* Ethos-U: convolutions, one block of output channels after the other. */
#include "ethos_u_model.h"

/* Products of this many operands and weights fit into 32 bits, sums included. */
enum { SUM_32 = 4096, NARROW_ZERO_POINT = 512 };

typedef struct {
    ethos_u_t *npu;
    ethos_u_map_t ifm;
    ethos_u_output_t output;
    ethos_u_window_t window;
    ethos_u_layout_t layout;
    ethos_u_stream_t stream; /* at the block's first weight */
    const uint8_t *scales;
    bool depthwise, wide;          /* wide: operands of 16 bits */
    int64_t most;                  /* that an accumulator holds, or the least less one, negated */
    uint32_t taps, depth;          /* operands of a result: taps of so many channels */
    uint32_t first, count;         /* output channels that are computed */
    int16_t *weights;
    void *operands; /* int16_t, or int32_t if wide */
} convolution_t;

/* ---- sums of products ---- */

static int64_t dot_narrow(const int16_t *a, const int16_t *b, uint32_t count)
{
    int64_t sum = 0;
    while (count != 0) {
        const uint32_t run = ethos_u_min(count, SUM_32);
        int32_t part = 0;
        for (uint32_t i = 0; i < run; ++i) {
            part += a[i] * b[i];
        }
        sum += part;
        a += run;
        b += run;
        count -= run;
    }
    return sum;
}

static int64_t dot_wide(const int32_t *a, const int16_t *b, uint32_t count)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < count; ++i) {
        sum += (int64_t)a[i] * b[i];
    }
    return sum;
}

/* Sums of each channel alone. */
static void sum_narrow(const convolution_t *conv, uint32_t c, uint32_t count, int64_t *sums)
{
    const int16_t *operand = (const int16_t *)conv->operands + c;
    const int16_t *weight = conv->weights + c;
    int32_t part[ETHOS_U_CHUNK] = {0};
    for (uint32_t tap = 0; tap < conv->taps; ++tap) {
        for (uint32_t i = 0; i < count; ++i) {
            part[i] += operand[i] * weight[i];
        }
        operand += conv->count;
        weight += conv->count;
    }
    for (uint32_t i = 0; i < count; ++i) {
        sums[i] = part[i];
    }
}

static void sum_wide(const convolution_t *conv, uint32_t c, uint32_t count, int64_t *sums)
{
    const int32_t *operand = (const int32_t *)conv->operands + c;
    const int16_t *weight = conv->weights + c;
    for (uint32_t i = 0; i < count; ++i) {
        sums[i] = 0;
    }
    for (uint32_t tap = 0; tap < conv->taps; ++tap) {
        for (uint32_t i = 0; i < count; ++i) {
            sums[i] += (int64_t)operand[i] * weight[i];
        }
        operand += conv->count;
        weight += conv->count;
    }
}

static void sum_products(const convolution_t *conv, uint32_t c, uint32_t count, int64_t *sums)
{
    if (conv->depthwise) {
        (conv->wide ? sum_wide : sum_narrow)(conv, c, count, sums);
        return;
    }
    const uint32_t length = conv->taps * conv->depth;
    for (uint32_t i = 0; i < count; ++i) {
        const int16_t *const weights = conv->weights + (size_t)(c + i) * length;
        sums[i] = conv->wide ? dot_wide(conv->operands, weights, length)
                             : dot_narrow(conv->operands, weights, length);
    }
}

/* ---- operands ---- */

static void load_tap(const convolution_t *conv, uint32_t y, uint32_t x, uint32_t tap)
{
    const uint32_t kernel_y = tap / conv->window.kernel_w, kernel_x = tap % conv->window.kernel_w;
    const uint32_t from = conv->depthwise ? conv->first : 0;
    const uint32_t count = conv->depthwise ? conv->count : conv->depth;
    const size_t at = (size_t)tap * count;
    uint32_t ifm_y = 0, ifm_x = 0;
    bool outside = false;
    const bool there =
        ethos_u_place(&conv->window, y, x, kernel_y, kernel_x, &ifm_y, &ifm_x, &outside);
    if (conv->wide) {
        int32_t *const out = (int32_t *)conv->operands + at;
        if (there) {
            ethos_u_load(&conv->ifm, ifm_y, ifm_x, from, count, out);
        }
        for (uint32_t i = there ? count : 0; i < count; ++i) {
            out[i] = 0;
        }
    } else {
        int16_t *const out = (int16_t *)conv->operands + at;
        if (there) {
            ethos_u_load_narrow(&conv->ifm, ifm_y, ifm_x, from, count, out);
        }
        for (uint32_t i = there ? count : 0; i < count; ++i) {
            out[i] = 0;
        }
    }
}

/* ---- results ---- */

typedef struct {
    int64_t bias;
    uint32_t multiplier, shift;
} scale_t;

static scale_t scale_of(const convolution_t *conv, uint32_t c)
{
    const uint8_t *const at = conv->scales + (size_t)c * ETHOS_U_SCALE_ENTRY;
    const uint64_t bias = ethos_u_read_word(at) | (uint64_t)at[4] << 32;
    return (scale_t){
        .bias = (int64_t)(bias ^ UINT64_C(1) << 39) - (INT64_C(1) << 39),
        .multiplier = ethos_u_read_word(at + 5),
        .shift = at[9] & 63u,
    };
}

static bool compute_pixel(const convolution_t *conv, uint32_t y, uint32_t x, const scale_t *scales)
{
    int64_t values[ETHOS_U_CHUNK];
    bool fits = true;
    for (uint32_t tap = 0; tap < conv->taps; ++tap) {
        load_tap(conv, y, x, tap);
    }
    for (uint32_t c = 0; c < conv->count; c += ETHOS_U_CHUNK) {
        const uint32_t count = ethos_u_min(conv->count - c, ETHOS_U_CHUNK);
        sum_products(conv, c, count, values);
        for (uint32_t i = 0; i < count; ++i) {
            const scale_t *const scale = &scales[c + i];
            fits = fits && values[i] <= conv->most && values[i] >= -conv->most - 1;
            const int64_t sum = values[i] + scale->bias;
            values[i] = conv->output.global_scale
                            ? ethos_u_global_scale(&conv->output, sum)
                            : ethos_u_scale(sum, scale->multiplier, scale->shift,
                                            conv->output.rounding);
        }
        ethos_u_store(&conv->output, y, x, conv->first + c, count, values);
    }
    return fits || !conv->npu->call->checked ||
           ethos_u_complain(conv->npu, HTVM_ETHOS_U_BAD_STREAM,
                            "a sum of products at row %u, column %u of the OFM does not fit into "
                            "the accumulators of ACC_FORMAT",
                            y, x);
}

/* ---- weights and blocks ---- */

/* Decodes weights of output channels of the block from `block` on. */
static bool read_weights(convolution_t *conv, uint32_t block, ethos_u_stream_t *end)
{
    *end = conv->stream;
    if (!ethos_u_read_block(end, &conv->layout, block, conv->first, conv->count, conv->weights)) {
        return ethos_u_complain(conv->npu, HTVM_ETHOS_U_BAD_STREAM,
                                "the weight stream of %l B (WEIGHT_LENGTH) ends within the weights "
                                "of channels %u to %u",
                                end->bits / 8u, block,
                                ethos_u_min(block + conv->layout.block_depth,
                                            conv->layout.ofm_depth));
    }
    if (end->wide) {
        return ethos_u_complain(conv->npu, HTVM_ETHOS_U_BAD_STREAM,
                                "a weight of channels %u and following has more than nine bits",
                                block);
    }
    return true;
}

/* Output channels whose weights and operands fit into the scratch memory, at most `most`. */
static uint32_t channels_that_fit(const convolution_t *conv, uint32_t most, size_t *operands)
{
    const size_t width = conv->wide ? sizeof(int32_t) : sizeof(int16_t);
    const size_t length = (size_t)conv->taps * conv->depth;
    const size_t room = conv->npu->scratch_bytes;
    /* A convolution's operands are those of a result, a depthwise one's those of all channels. */
    const size_t shared = conv->depthwise ? 0 : (length * width + 15u) / 16u * 16u;
    const size_t each =
        sizeof(scale_t) + length * sizeof(int16_t) + (conv->depthwise ? length * width : 0);
    if (shared + each + 64u > room) {
        return 0;
    }
    const size_t count = (room - shared - 64u) / each;
    const uint32_t channels = count < most ? (uint32_t)count : most;
    *operands = conv->depthwise ? (length * width * channels + 15u) / 16u * 16u : shared;
    return channels;
}

static bool compute_channels(convolution_t *conv, uint32_t block, size_t operands,
                             ethos_u_stream_t *end)
{
    uint8_t *const scratch = conv->npu->scratch;
    const size_t table = (conv->count * sizeof(scale_t) + 15u) / 16u * 16u;
    scale_t *const scales = (scale_t *)(void *)scratch;
    conv->operands = scratch + table;
    conv->weights = (int16_t *)(void *)(scratch + table + operands);
    if (!read_weights(conv, block, end)) {
        return false;
    }
    for (uint32_t c = 0; c < conv->count; ++c) {
        scales[c] = scale_of(conv, conv->first + c);
    }
    for (uint32_t y = 0; y < conv->output.map.height; ++y) {
        for (uint32_t x = 0; x < conv->output.map.width; ++x) {
            if (!compute_pixel(conv, y, x, scales)) {
                return false;
            }
        }
    }
    return true;
}

static bool compute(convolution_t *conv)
{
    ethos_u_t *const npu = conv->npu;
    const uint32_t depth = conv->output.map.depth, block = conv->layout.block_depth;
    for (uint32_t from = 0; from < depth; from += block) {
        const uint32_t end = ethos_u_min(from + block, depth);
        ethos_u_stream_t behind = conv->stream;
        for (conv->first = from; conv->first < end; conv->first += conv->count) {
            size_t operands = 0;
            conv->count = channels_that_fit(conv, end - conv->first, &operands);
            if (conv->count == 0) {
                return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_CALL,
                                        "the workspace of %l B has no room for a channel's %u "
                                        "weights",
                                        (uint64_t)npu->call->workspace_bytes,
                                        conv->taps * conv->depth);
            }
            if (!compute_channels(conv, from, operands, &behind)) {
                return false;
            }
        }
        conv->stream = behind;
    }
    return true;
}

/* ---- registers ---- */

static bool read_layout(convolution_t *conv)
{
    ethos_u_t *const npu = conv->npu;
    conv->layout = (ethos_u_layout_t){
        .kernel_h = conv->window.kernel_h,
        .kernel_w = conv->window.kernel_w,
        .ifm_depth = conv->depth,
        .ofm_depth = conv->output.map.depth,
        .block_depth = ethos_u_get_size(npu, ETHOS_U_OFM_BLK_DEPTH_M1),
        .micro = npu->macs == 32 ? 4 : 8,
        .sub_h = 8u / conv->window.dilation_y,
        .sub_w = 8u / conv->window.dilation_x,
        .depthwise = conv->depthwise,
        .part_kernel = !conv->depthwise && (ethos_u_get(npu, ETHOS_U_KERNEL_STRIDE) &
                                            ETHOS_U_KERNEL_PART_FIRST) != 0,
        .wide_ifm = conv->wide,
    };
    if (conv->layout.block_depth % conv->layout.micro != 0) {
        return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM,
                                "OFM_BLK_DEPTH_M1 + 1 = %u is not a multiple of %u",
                                conv->layout.block_depth, conv->layout.micro);
    }
    return true;
}

/* Weights and scales; adds them to what the operation accesses. */
static bool read_constants(convolution_t *conv, ethos_u_access_t *access)
{
    ethos_u_t *const npu = conv->npu;
    uint32_t unused = 0;
    const ethos_u_range_t weights = {
        ethos_u_get(npu, ETHOS_U_WEIGHT_REGION),
        ethos_u_get_address(npu, ETHOS_U_WEIGHT_BASE),
        ethos_u_get_long(npu, ETHOS_U_WEIGHT_LENGTH, &unused),
    };
    const ethos_u_range_t scales = {
        ethos_u_get(npu, ETHOS_U_SCALE_REGION),
        ethos_u_get_address(npu, ETHOS_U_SCALE_BASE),
        (uint64_t)conv->output.map.depth * ETHOS_U_SCALE_ENTRY,
    };
    const uint32_t length = ethos_u_get_long(npu, ETHOS_U_SCALE_LENGTH, &unused);
    if (ethos_u_failed(npu)) {
        return false;
    }
    if (npu->call->checked && (weights.first % 16u != 0 || weights.bytes % 16u != 0)) {
        return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM,
                                "WEIGHT_BASE = %x, WEIGHT_LENGTH = %l: no multiples of 16",
                                weights.first, weights.bytes);
    }
    if (npu->call->checked && (scales.first % 16u != 0 || length % 16u != 0)) {
        return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM,
                                "SCALE_BASE = %x, SCALE_LENGTH = %u: no multiples of 16",
                                scales.first, length);
    }
    if (length < scales.bytes) {
        return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM,
                                "SCALE_LENGTH = %u, %u channels need %l", length,
                                conv->output.map.depth, scales.bytes);
    }
    const uint8_t *const stream =
        ethos_u_memory(npu, "WEIGHT_BASE", weights.region, weights.first, weights.bytes);
    conv->scales = ethos_u_memory(npu, "SCALE_BASE", scales.region, scales.first, scales.bytes);
    if (stream == NULL || conv->scales == NULL) {
        return false;
    }
    for (uint32_t c = 0; npu->call->checked && c < conv->output.map.depth; ++c) {
        const uint32_t shift = conv->scales[(size_t)c * ETHOS_U_SCALE_ENTRY + 9u];
        if (shift > 63) {
            return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM,
                                    "the scale of channel %u has the shift %u, at most 63", c,
                                    shift);
        }
    }
    access->range[access->ranges++] = weights;
    access->range[access->ranges++] = scales;
    ethos_u_stream(&conv->stream, stream, weights.bytes);
    return ethos_u_need_range(npu, "WEIGHT_BASE", &weights) &&
           ethos_u_need_range(npu, "SCALE_BASE", &scales);
}

static bool check_operands(convolution_t *conv)
{
    const ethos_u_map_t *const ifm = &conv->ifm;
    const uint32_t format = ethos_u_get(conv->npu, ETHOS_U_ACC_FORMAT);
    conv->most = (INT64_C(1) << (format == 0 ? 31 : 39)) - 1;
    if (format > 1) {
        return ethos_u_complain(conv->npu, HTVM_ETHOS_U_BAD_STREAM,
                                "ACC_FORMAT = %u: the model knows 32 and 40 bits", format);
    }
    if (ifm->element == 4) {
        return ethos_u_complain(conv->npu, HTVM_ETHOS_U_BAD_STREAM,
                                "IFM_PRECISION: convolutions take 8 and 16 bits");
    }
    if (ifm->element == 1 &&
        (ifm->zero_point < -NARROW_ZERO_POINT || ifm->zero_point > NARROW_ZERO_POINT)) {
        return ethos_u_complain(conv->npu, HTVM_ETHOS_U_BAD_STREAM,
                                "IFM_ZERO_POINT = %d is far from 8 bits", ifm->zero_point);
    }
    return true;
}

bool ethos_u_convolve(ethos_u_t *npu, bool depthwise)
{
    convolution_t conv = {.npu = npu, .depthwise = depthwise};
    if (!ethos_u_output(npu, false, &conv.output) || !ethos_u_window(npu, 64u, &conv.window)) {
        return false;
    }
    const ethos_u_window_t *const window = &conv.window;
    const uint32_t shift = window->upscale != 0 ? 1 : 0;
    const uint32_t ifm_depth = depthwise ? conv.output.map.depth
                                         : ethos_u_get_size(npu, ETHOS_U_IFM_DEPTH_M1);
    if (!ethos_u_map(npu, ETHOS_U_IFM, (window->height + shift) >> shift,
                     (window->width + shift) >> shift, ifm_depth, &conv.ifm) ||
        !check_operands(&conv)) {
        return false;
    }
    conv.wide = conv.ifm.element == 2;
    conv.taps = window->kernel_h * window->kernel_w;
    conv.depth = depthwise ? 1 : ifm_depth;
    ethos_u_access_t access = {
        .maps = 2, .map = {conv.output.map, conv.ifm}, .window = *window};
    const uint64_t results =
        (uint64_t)conv.output.map.height * conv.output.map.width * conv.output.map.depth;
    const uint64_t each = (uint64_t)conv.taps * conv.depth;
    if (!read_layout(&conv)) {
        return false;
    }
    access.ifm_block = depthwise ? 0 : ethos_u_ifm_block(&conv.layout);
    if (!read_constants(&conv, &access) ||
        !ethos_u_work(npu, results, each) ||
        !ethos_u_work(npu, (uint64_t)conv.ifm.height * conv.ifm.width, conv.ifm.depth) ||
        !ethos_u_start(npu, &access, &conv.output) ||
        !ethos_u_need_window(npu, &conv.ifm, window, conv.output.map.height,
                             conv.output.map.width) ||
        !compute(&conv)) {
        return false;
    }
    npu->result->macs += results * each;
    ethos_u_wrote_map(npu, &conv.output.map);
    return true;
}
