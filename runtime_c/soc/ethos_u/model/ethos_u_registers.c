/* Ethos-U: registers, their names and what their values may be. */
#include "ethos_u_model.h"

/* Registers that the model does not read have a meaning nevertheless: where buffers lie within the
 * shared buffer, accumulators' format. */
static const char *const SHORT[256] = {
    [0x00] = "IFM_PAD_TOP",       [0x01] = "IFM_PAD_LEFT",       [0x02] = "IFM_PAD_RIGHT",
    [0x03] = "IFM_PAD_BOTTOM",    [0x04] = "IFM_DEPTH_M1",       [0x05] = "IFM_PRECISION",
    [0x07] = "IFM_UPSCALE",       [0x09] = "IFM_ZERO_POINT",     [0x0a] = "IFM_WIDTH0_M1",
    [0x0b] = "IFM_HEIGHT0_M1",    [0x0c] = "IFM_HEIGHT1_M1",     [0x0d] = "IFM_IB_END",
    [0x0f] = "IFM_REGION",        [0x11] = "OFM_WIDTH_M1",       [0x12] = "OFM_HEIGHT_M1",
    [0x13] = "OFM_DEPTH_M1",      [0x14] = "OFM_PRECISION",      [0x15] = "OFM_BLK_WIDTH_M1",
    [0x16] = "OFM_BLK_HEIGHT_M1", [0x17] = "OFM_BLK_DEPTH_M1",   [0x18] = "OFM_ZERO_POINT",
    [0x1a] = "OFM_WIDTH0_M1",     [0x1b] = "OFM_HEIGHT0_M1",     [0x1c] = "OFM_HEIGHT1_M1",
    [0x1f] = "OFM_REGION",        [0x20] = "KERNEL_WIDTH_M1",    [0x21] = "KERNEL_HEIGHT_M1",
    [0x22] = "KERNEL_STRIDE",     [0x23] = "PARALLEL_MODE",      [0x24] = "ACC_FORMAT",
    [0x25] = "ACTIVATION",        [0x26] = "ACTIVATION_MIN",     [0x27] = "ACTIVATION_MAX",
    [0x28] = "WEIGHT_REGION",     [0x29] = "SCALE_REGION",       [0x2d] = "AB_START",
    [0x2f] = "BLOCKDEP",          [0x30] = "DMA0_SRC_REGION",    [0x31] = "DMA0_DST_REGION",
    [0x32] = "DMA0_SIZE0",        [0x33] = "DMA0_SIZE1",         [0x80] = "IFM2_BROADCAST",
    [0x81] = "IFM2_SCALAR",       [0x85] = "IFM2_PRECISION",     [0x89] = "IFM2_ZERO_POINT",
    [0x8a] = "IFM2_WIDTH0_M1",    [0x8b] = "IFM2_HEIGHT0_M1",    [0x8c] = "IFM2_HEIGHT1_M1",
    [0x8d] = "IFM2_IB_START",     [0x8f] = "IFM2_REGION",
};

static const char *const LONG[256] = {
    [0x00] = "IFM_BASE0",     [0x01] = "IFM_BASE1",      [0x02] = "IFM_BASE2",
    [0x03] = "IFM_BASE3",     [0x04] = "IFM_STRIDE_X",   [0x05] = "IFM_STRIDE_Y",
    [0x06] = "IFM_STRIDE_C",  [0x10] = "OFM_BASE0",      [0x11] = "OFM_BASE1",
    [0x12] = "OFM_BASE2",     [0x13] = "OFM_BASE3",      [0x14] = "OFM_STRIDE_X",
    [0x15] = "OFM_STRIDE_Y",  [0x16] = "OFM_STRIDE_C",   [0x20] = "WEIGHT_BASE",
    [0x21] = "WEIGHT_LENGTH", [0x22] = "SCALE_BASE",     [0x23] = "SCALE_LENGTH",
    [0x24] = "OFM_SCALE",     [0x25] = "OPA_SCALE",      [0x26] = "OPB_SCALE",
    [0x30] = "DMA0_SRC",      [0x31] = "DMA0_DST",       [0x32] = "DMA0_LEN",
    [0x33] = "DMA0_SKIP0",    [0x34] = "DMA0_SKIP1",     [0x80] = "IFM2_BASE0",
    [0x81] = "IFM2_BASE1",    [0x82] = "IFM2_BASE2",     [0x83] = "IFM2_BASE3",
    [0x84] = "IFM2_STRIDE_X", [0x85] = "IFM2_STRIDE_Y",  [0x86] = "IFM2_STRIDE_C",
    [0x90] = "WEIGHT1_BASE",  [0x91] = "WEIGHT1_LENGTH", [0x92] = "SCALE1_BASE",
    [0x93] = "SCALE1_LENGTH",
};

const char *ethos_u_short_name(uint32_t code)
{
    return code >= 0x100u && code < 0x200u ? SHORT[code - 0x100u] : NULL;
}

const char *ethos_u_long_name(uint32_t code) { return code < 0x100u ? LONG[code] : NULL; }

/* The largest value that has a meaning, where it is not the largest of 16 bits. */
static uint32_t largest(uint32_t code)
{
    switch (code) {
    case ETHOS_U_IFM_PAD_TOP:
    case ETHOS_U_IFM_PAD_LEFT:
        return 0x7f;
    case ETHOS_U_IFM_PAD_RIGHT:
    case ETHOS_U_IFM_PAD_BOTTOM:
        return 0xff;
    case ETHOS_U_IFM_UPSCALE:
    case ETHOS_U_ACC_FORMAT:
        return 2;
    case ETHOS_U_OFM_BLK_WIDTH_M1:
    case ETHOS_U_OFM_BLK_HEIGHT_M1:
        return 63;
    case ETHOS_U_OFM_BLK_DEPTH_M1:
        return 127;
    case ETHOS_U_KERNEL_STRIDE:
        return 0xfff;
    case ETHOS_U_PARALLEL_MODE:
        return 1;
    case ETHOS_U_BLOCKDEP:
        return 3;
    case ETHOS_U_IFM + ETHOS_U_REGION:
    case ETHOS_U_OFM + ETHOS_U_REGION:
    case ETHOS_U_IFM2 + ETHOS_U_REGION:
    case ETHOS_U_WEIGHT_REGION:
    case ETHOS_U_SCALE_REGION:
        return HTVM_ETHOS_U_REGIONS - 1;
    case ETHOS_U_IFM2_BROADCAST:
        return 0xff;
    default:
        return 0xffff;
    }
}

bool ethos_u_set_short(ethos_u_t *npu, uint32_t code, uint32_t value)
{
    const char *const name = ethos_u_short_name(code);
    if (npu->call->checked && name == NULL) {
        return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM, "no register has the code %x",
                                (uint64_t)code);
    }
    if (npu->call->checked && value > largest(code)) {
        return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM, "%s = %u, at most %u has a meaning",
                                name, value, largest(code));
    }
    if (name != NULL) {
        npu->short_value[code - 0x100u] = value;
        npu->short_known[code - 0x100u] = 1;
    }
    return true;
}

static bool is_scale(uint32_t code)
{
    return code == ETHOS_U_OFM_SCALE || code == ETHOS_U_OPA_SCALE || code == ETHOS_U_OPB_SCALE;
}

static bool is_stride(uint32_t code)
{
    const uint32_t map = code & ~15u, register_of_map = code & 15u;
    return (map == ETHOS_U_IFM_BASE0 || map == ETHOS_U_OFM_BASE0 || map == ETHOS_U_IFM2_BASE0) &&
           register_of_map >= ETHOS_U_STRIDE_X && register_of_map <= ETHOS_U_STRIDE_C;
}

bool ethos_u_set_long(ethos_u_t *npu, uint32_t code, uint32_t parameter, uint32_t value)
{
    const char *const name = ethos_u_long_name(code);
    if (npu->call->checked && name == NULL) {
        return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM, "no register has the code %x",
                                (uint64_t)code);
    }
    if (npu->call->checked) {
        /* Shifts have six bits, strides forty with a sign, addresses as many of the U65. */
        const uint32_t most =
            is_scale(code) ? 63 : npu->product == 55 && !is_stride(code) ? 0 : 0xff;
        if (parameter > most) {
            return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM,
                                    is_scale(code) ? "%s has the shift %u, at most %u"
                                                   : "%s has the upper bits %u, at most %u",
                                    name, parameter, most);
        }
    }
    if (name != NULL) {
        npu->long_value[code] = value;
        npu->long_parameter[code] = (uint16_t)parameter;
        npu->long_known[code] = 1;
    }
    return true;
}

static bool known(ethos_u_t *npu, const uint8_t *flags, const char *name)
{
    if (npu->call->checked && *flags == 0) {
        return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM, "%s was never set", name);
    }
    return true;
}

uint32_t ethos_u_get(ethos_u_t *npu, uint32_t code)
{
    known(npu, &npu->short_known[code - 0x100u], SHORT[code - 0x100u]);
    return npu->short_value[code - 0x100u];
}

uint32_t ethos_u_get_size(ethos_u_t *npu, uint32_t code) { return ethos_u_get(npu, code) + 1u; }

uint64_t ethos_u_get_address(ethos_u_t *npu, uint32_t code)
{
    known(npu, &npu->long_known[code], LONG[code]);
    return npu->long_value[code] | (uint64_t)(npu->long_parameter[code] & 0xffu) << 32;
}

int64_t ethos_u_get_stride(ethos_u_t *npu, uint32_t code)
{
    const uint64_t sign = UINT64_C(1) << 39;
    return (int64_t)(ethos_u_get_address(npu, code) ^ sign) - (int64_t)sign;
}

uint32_t ethos_u_get_long(ethos_u_t *npu, uint32_t code, uint32_t *parameter)
{
    known(npu, &npu->long_known[code], LONG[code]);
    *parameter = npu->long_parameter[code] & 63u;
    return npu->long_value[code];
}
