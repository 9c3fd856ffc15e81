/* Ethos-U: operations on elements of one or two feature maps. */
#include "ethos_u_model.h"

/* Which operand of a sum is scaled with 32 bits; IFM_PRECISION, bits 8 and 9. */
enum { SCALE_BOTH, SCALE_A, SCALE_B };

typedef struct {
    ethos_u_map_t ifm, ifm2;
    ethos_u_output_t output;
    uint32_t kind, broadcast;
    bool unary;
    int32_t scalar;
    /* of sums */
    uint32_t mode, rounding;
    uint32_t factor_a, factor_b; /* 16 bits each if both are scaled; else factor_a has 32 */
    uint32_t shift, headroom;
} elementwise_t;

/* A sum's operand, scaled with 32 bits and rounded. */
static int64_t scaled(const elementwise_t *op, int64_t value)
{
    return ethos_u_scale(value * (INT64_C(1) << op->headroom), op->factor_a,
                         op->shift + op->headroom, op->rounding);
}

static int64_t added(const elementwise_t *op, int64_t a, int64_t b)
{
    if (op->mode == SCALE_A) {
        a = scaled(op, a);
        b *= INT64_C(1) << (op->headroom - 1u);
    } else if (op->mode == SCALE_B) {
        a *= INT64_C(1) << (op->headroom - 1u);
        b = scaled(op, b);
    } else if (op->ifm.element != 4) {
        a *= op->factor_a;
        b *= op->factor_b;
    }
    return ethos_u_global_scale(&op->output, op->kind == ETHOS_U_ADD ? a + b : a - b);
}

static int64_t multiplied(const elementwise_t *op, int64_t a, int64_t b)
{
    if (op->ifm.element != 4) {
        return ethos_u_global_scale(&op->output, a * b);
    }
    /* Products of 32-bit elements are shifted alone, whatever the multiplier. */
    const uint32_t size = (uint32_t)(b < 0 ? -b : b);
    const int64_t result =
        ethos_u_scale(b < 0 ? -a : a, size, op->output.shift, op->output.rounding);
    return result < INT32_MIN ? INT32_MIN : result > INT32_MAX ? INT32_MAX : result;
}

static int64_t leading_zeros(uint32_t value)
{
    int64_t count = 32;
    for (; value != 0; value >>= 1) {
        --count;
    }
    return count;
}

static int64_t shifted_right(const elementwise_t *op, int64_t a, int64_t b)
{
    if (b <= 0) {
        return a;
    }
    const uint32_t shift = b < 62 ? (uint32_t)b : 62;
    if (op->output.rounding == ETHOS_U_ROUND_TRUNCATE) {
        return a < 0 ? -(-a >> shift) : a >> shift;
    }
    return (a + (INT64_C(1) << (shift - 1u))) >> shift;
}

static int64_t shifted_left(int64_t a, int64_t b)
{
    const uint32_t bits = (uint32_t)((uint64_t)a << ((uint64_t)b & 63u));
    return (int64_t)(bits ^ UINT32_C(0x80000000)) - INT64_C(0x80000000);
}

static int64_t result_of(const elementwise_t *op, int64_t a, int64_t b)
{
    switch (op->kind) {
    case ETHOS_U_MUL:
        return multiplied(op, a, b);
    case ETHOS_U_ADD:
    case ETHOS_U_SUB:
        return added(op, a, b);
    case ETHOS_U_MIN:
        return ethos_u_global_scale(&op->output, a < b ? a : b);
    case ETHOS_U_MAX:
        return ethos_u_global_scale(&op->output, a > b ? a : b);
    case ETHOS_U_LRELU:
        return a < 0 ? ethos_u_global_scale(&op->output, a) : a;
    case ETHOS_U_ABS:
        return ethos_u_global_scale(&op->output, a < 0 ? -a : a);
    case ETHOS_U_CLZ:
        return leading_zeros((uint32_t)a);
    case ETHOS_U_SHR:
        return shifted_right(op, a, b);
    default:
        return shifted_left(a, b);
    }
}

static void load_second(const elementwise_t *op, uint32_t y, uint32_t x, uint32_t c, uint32_t count,
                        int32_t *row)
{
    const uint32_t one = ETHOS_U_BROADCAST_SCALAR | ETHOS_U_BROADCAST_C;
    const bool same = op->unary || (op->broadcast & one) != 0;
    if (!same) {
        ethos_u_load(&op->ifm2, (op->broadcast & ETHOS_U_BROADCAST_H) != 0 ? 0 : y,
                     (op->broadcast & ETHOS_U_BROADCAST_W) != 0 ? 0 : x, c, count, row);
        return;
    }
    int32_t value = op->scalar;
    if (!op->unary && (op->broadcast & ETHOS_U_BROADCAST_SCALAR) == 0) {
        ethos_u_load(&op->ifm2, (op->broadcast & ETHOS_U_BROADCAST_H) != 0 ? 0 : y,
                     (op->broadcast & ETHOS_U_BROADCAST_W) != 0 ? 0 : x, 0, 1, &value);
    }
    for (uint32_t i = 0; i < count; ++i) {
        row[i] = value;
    }
}

static void compute_pixel(const elementwise_t *op, uint32_t y, uint32_t x)
{
    const ethos_u_map_t *const ofm = &op->output.map;
    const bool swapped = !op->unary && (op->broadcast & ETHOS_U_BROADCAST_SWAPPED) != 0;
    int32_t first[ETHOS_U_CHUNK], second[ETHOS_U_CHUNK];
    int64_t values[ETHOS_U_CHUNK];
    for (uint32_t c = 0; c < ofm->depth; c += ETHOS_U_CHUNK) {
        const uint32_t count = ethos_u_min(ofm->depth - c, ETHOS_U_CHUNK);
        ethos_u_load(&op->ifm, y, x, c, count, first);
        load_second(op, y, x, c, count, second);
        for (uint32_t i = 0; i < count; ++i) {
            values[i] = swapped ? result_of(op, second[i], first[i])
                                : result_of(op, first[i], second[i]);
        }
        ethos_u_store(&op->output, y, x, c, count, values);
    }
}

/* ---- registers ---- */

static bool read_sum(ethos_u_t *npu, elementwise_t *op)
{
    uint32_t unused = 0;
    const uint32_t precision = ethos_u_get(npu, ETHOS_U_IFM_PRECISION);
    op->mode = precision >> 8 & 3u;
    op->rounding = precision >> 14 & 3u;
    if (op->mode == SCALE_BOTH && op->ifm.element == 4) {
        return !ethos_u_failed(npu);
    }
    if (op->mode > SCALE_B || op->rounding > ETHOS_U_ROUND_NATURAL) {
        return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM,
                                "IFM_PRECISION = %x: no such scale mode or rounding",
                                (uint64_t)precision);
    }
    op->factor_a = ethos_u_get_long(npu, ETHOS_U_OPA_SCALE, &op->shift);
    op->headroom = op->ifm.element == 1 ? 20 : 15;
    if (op->mode != SCALE_BOTH) {
        if (op->shift + op->headroom > 63) {
            return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM,
                                    "OPA_SCALE has the shift %u, at most %u of such operands",
                                    op->shift, 63u - op->headroom);
        }
        return !ethos_u_failed(npu);
    }
    op->factor_b = ethos_u_get_long(npu, ETHOS_U_OPB_SCALE, &unused);
    if (npu->call->checked && (op->factor_a > 0xffffu || op->factor_b > 0xffffu)) {
        return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM,
                                "OPA_SCALE = %u, OPB_SCALE = %u: at most 65535 if both are scaled",
                                op->factor_a, op->factor_b);
    }
    op->factor_a &= 0xffffu;
    op->factor_b &= 0xffffu;
    return !ethos_u_failed(npu);
}

static bool read_second(ethos_u_t *npu, elementwise_t *op)
{
    const ethos_u_map_t *const ofm = &op->output.map;
    op->broadcast = ethos_u_get(npu, ETHOS_U_IFM2_BROADCAST);
    if ((op->broadcast & ETHOS_U_BROADCAST_SCALAR) == 0) {
        return ethos_u_map(npu, ETHOS_U_IFM2,
                           (op->broadcast & ETHOS_U_BROADCAST_H) != 0 ? 1 : ofm->height,
                           (op->broadcast & ETHOS_U_BROADCAST_W) != 0 ? 1 : ofm->width,
                           (op->broadcast & ETHOS_U_BROADCAST_C) != 0 ? 1 : ofm->depth, &op->ifm2);
    }
    const uint32_t precision = ethos_u_get(npu, ETHOS_U_IFM2_PRECISION);
    const uint32_t value = ethos_u_get(npu, ETHOS_U_IFM2_SCALAR);
    const uint32_t zero = ethos_u_get(npu, ETHOS_U_IFM2 + ETHOS_U_ZERO_POINT);
    const bool is_signed = (precision & 1u) != 0;
    op->scalar = is_signed ? (int16_t)value - (int16_t)zero : (int32_t)value - (int32_t)zero;
    return !ethos_u_failed(npu);
}

bool ethos_u_elementwise(ethos_u_t *npu, uint32_t kind)
{
    elementwise_t op = {.kind = kind};
    if (kind >= ETHOS_U_ELEMENTWISES) {
        return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM, "no such operation: %u", kind);
    }
    op.unary = kind == ETHOS_U_LRELU || kind == ETHOS_U_ABS || kind == ETHOS_U_CLZ;
    const bool sum = kind == ETHOS_U_ADD || kind == ETHOS_U_SUB;
    const bool scales = kind != ETHOS_U_CLZ && kind != ETHOS_U_SHR && kind != ETHOS_U_SHL;
    if (!ethos_u_output(npu, scales, &op.output)) {
        return false;
    }
    const ethos_u_map_t *const ofm = &op.output.map;
    if (!ethos_u_map(npu, ETHOS_U_IFM, ofm->height, ofm->width, ofm->depth, &op.ifm) ||
        (!op.unary && !read_second(npu, &op)) || (sum && !read_sum(npu, &op))) {
        return false;
    }
    if (ethos_u_get(npu, ETHOS_U_IFM_UPSCALE) != 0) {
        return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM,
                                "IFM_UPSCALE has no meaning for elements");
    }
    const bool has_map = !op.unary && (op.broadcast & ETHOS_U_BROADCAST_SCALAR) == 0;
    ethos_u_access_t access = {
        .maps = has_map ? 3 : 2,
        .map = {*ofm, op.ifm, op.ifm2},
        .window = {.kernel_h = 1,
                   .kernel_w = 1,
                   .stride_y = 1,
                   .stride_x = 1,
                   .dilation_y = 1,
                   .dilation_x = 1,
                   .height = ofm->height,
                   .width = ofm->width},
        .broadcast = op.broadcast,
    };
    if (!ethos_u_work(npu, (uint64_t)ofm->height * ofm->width, ofm->depth) ||
        !ethos_u_start(npu, &access, &op.output) || !ethos_u_need_map(npu, &op.ifm) ||
        (has_map && !ethos_u_need_map(npu, &op.ifm2))) {
        return false;
    }
    for (uint32_t y = 0; y < ofm->height; ++y) {
        for (uint32_t x = 0; x < ofm->width; ++x) {
            compute_pixel(&op, y, x);
        }
    }
    ethos_u_wrote_map(npu, ofm);
    return true;
}
