/* Ethos-U: how kernels end: zero point, limits, tables; and what all of them begin with. */
#include "ethos_u_model.h"

static bool read_limits(ethos_u_t *npu, ethos_u_output_t *output, uint32_t clip)
{
    const uint32_t bits = 8u * output->map.element;
    bool is_signed = output->map.is_signed;
    output->low = is_signed ? -(INT64_C(1) << (bits - 1u)) : 0;
    output->high = (INT64_C(1) << (is_signed ? bits - 1u : bits)) - 1;
    if (clip == ETHOS_U_CLIP_UINT8) {
        output->low = 0;
        output->high = 255;
        is_signed = false;
    } else if (clip == ETHOS_U_CLIP_INT8 || clip == ETHOS_U_CLIP_INT16) {
        output->low = clip == ETHOS_U_CLIP_INT8 ? INT8_MIN : INT16_MIN;
        output->high = clip == ETHOS_U_CLIP_INT8 ? INT8_MAX : INT16_MAX;
        is_signed = true;
    }
    const uint32_t least = ethos_u_get(npu, ETHOS_U_ACTIVATION_MIN);
    const uint32_t most = ethos_u_get(npu, ETHOS_U_ACTIVATION_MAX);
    if (bits == 32 && clip == ETHOS_U_CLIP_BY_OFM) {
        return true; /* limits of 16 bits do not apply */
    }
    const int64_t low = is_signed ? (int16_t)least : (int32_t)least;
    const int64_t high = is_signed ? (int16_t)most : (int32_t)most;
    output->low = low > output->low ? low : output->low;
    output->high = high < output->high ? high : output->high;
    if (output->low > output->high) {
        return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM,
                                "ACTIVATION_MIN = %d and _MAX = %d leave no value", (int32_t)low,
                                (int32_t)high);
    }
    return true;
}

/* The table of an activation: 256 entries of the OFM's width, or 512 of base and slope. */
static bool read_table(ethos_u_t *npu, ethos_u_output_t *output, uint32_t number, uint32_t clip)
{
    const bool narrow = clip == ETHOS_U_CLIP_UINT8 || clip == ETHOS_U_CLIP_INT8 ||
                        output->map.element == 1;
    const bool is_signed = clip == ETHOS_U_CLIP_INT8 || (clip != ETHOS_U_CLIP_UINT8 &&
                                                         output->map.is_signed);
    const uint32_t first = number * ETHOS_U_TABLE_SLOT;
    const uint32_t bytes = narrow ? 256u * output->map.element : ETHOS_U_TABLE_BYTES;
    if (first + bytes > ETHOS_U_TABLE_BYTES) {
        return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM,
                                "ACTIVATION: table %u of %u B leaves the %u B of tables", number,
                                bytes, (uint32_t)ETHOS_U_TABLE_BYTES);
    }
    output->function = ETHOS_U_TABLE;
    output->table = npu->table + first;
    output->interpolated = !narrow;
    output->table_bias = narrow ? (is_signed ? 128 : 0) : (is_signed ? 32768 : 0);
    output->in_shram = (ethos_u_range_t){ETHOS_U_SHRAM_REGION, first, bytes};
    if (output->low + output->table_bias < 0 ||
        output->high + output->table_bias >= (narrow ? 256 : 65536)) {
        return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM,
                                "ACTIVATION: a table has no entries for results of %d to %d",
                                (int32_t)output->low, (int32_t)output->high);
    }
    return true;
}

static bool read_activation(ethos_u_t *npu, ethos_u_output_t *output)
{
    const uint32_t value = ethos_u_get(npu, ETHOS_U_ACTIVATION);
    const uint32_t function = value & 31u, clip = value >> 12 & 7u;
    const bool known_clip = clip == ETHOS_U_CLIP_BY_OFM || clip == ETHOS_U_CLIP_UINT8 ||
                            clip == ETHOS_U_CLIP_INT8 || clip == ETHOS_U_CLIP_INT16;
    const bool curve = function == ETHOS_U_TANH || function == ETHOS_U_SIGMOID;
    const bool table = function >= ETHOS_U_TABLE && function < ETHOS_U_TABLE + 8u;
    if (!known_clip || (value & 0x8fe0u) != 0 || (function != 0 && !curve && !table)) {
        return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM, "ACTIVATION = %x has no meaning",
                                (uint64_t)value);
    }
    if (!read_limits(npu, output, clip)) {
        return false;
    }
    if (table) {
        return read_table(npu, output, function - ETHOS_U_TABLE, clip);
    }
    if (curve && (output->map.element != 2 || !output->map.is_signed)) {
        return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM,
                                "ACTIVATION = %x: the model knows tanh and sigmoid of int16 alone",
                                (uint64_t)value);
    }
    output->function = function;
    return !ethos_u_failed(npu);
}

bool ethos_u_output(ethos_u_t *npu, bool needs_scale, ethos_u_output_t *output)
{
    *output = (ethos_u_output_t){.function = 0};
    const uint32_t height = ethos_u_get_size(npu, ETHOS_U_OFM_HEIGHT_M1);
    const uint32_t width = ethos_u_get_size(npu, ETHOS_U_OFM_WIDTH_M1);
    const uint32_t depth = ethos_u_get_size(npu, ETHOS_U_OFM_DEPTH_M1);
    const uint32_t precision = ethos_u_get(npu, ETHOS_U_OFM_PRECISION);
    output->rounding = precision >> 14 & 3u;
    output->global_scale = (precision & ETHOS_U_OFM_GLOBAL_SCALE) != 0;
    if (!ethos_u_map(npu, ETHOS_U_OFM, height, width, depth, &output->map) ||
        !read_activation(npu, output)) {
        return false;
    }
    if (output->rounding > ETHOS_U_ROUND_NATURAL) {
        return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM,
                                "OFM_PRECISION = %x: no such rounding", (uint64_t)precision);
    }
    if (output->global_scale || needs_scale) {
        output->multiplier = ethos_u_get_long(npu, ETHOS_U_OFM_SCALE, &output->shift);
    }
    /* Results that overlap have no order, and a stream must not make the model run for ever. */
    const uint64_t elements = (uint64_t)height * width * depth;
    if (elements > npu->call->bytes[output->map.region]) {
        return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM,
                                "the OFM of %ux%ux%u has more elements than region %u bytes",
                                height, width, depth, output->map.region);
    }
    if (npu->call->constant >> output->map.region & 1u) {
        return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM,
                                "the OFM is in region %u, which is constant", output->map.region);
    }
    return !ethos_u_failed(npu);
}

static int32_t table_entry(const uint8_t *at, uint32_t bytes, bool is_signed)
{
    if (bytes == 4) {
        return (int32_t)ethos_u_read_word(at);
    }
    const uint32_t value = bytes == 2 ? at[0] | (uint32_t)at[1] << 8 : at[0];
    if (!is_signed) {
        return (int32_t)value;
    }
    return bytes == 2 ? (int16_t)value : (int8_t)value;
}

static int64_t looked_up(const ethos_u_output_t *output, int64_t value)
{
    const uint32_t index = (uint32_t)((int32_t)value + output->table_bias);
    if (!output->interpolated) {
        const uint32_t bytes = output->map.element;
        return table_entry(output->table + index * bytes, bytes, output->map.is_signed);
    }
    const uint32_t entry = ethos_u_read_word(output->table + (index >> 7) * 4u);
    const int32_t slope = (int16_t)(entry >> 16);
    return (int16_t)(entry & 0xffffu) + ((slope * (int32_t)(index & 127u) + 64) >> 7);
}

void ethos_u_store(const ethos_u_output_t *output, uint32_t y, uint32_t x, uint32_t c,
                   uint32_t count, const int64_t *values)
{
    const ethos_u_map_t *const map = &output->map;
    /* The zero point after limits that are as far from it: a sum cannot overflow. */
    const int64_t low = output->low - map->zero_point, high = output->high - map->zero_point;
    uint8_t *at = map->memory + ethos_u_offset(map, y, x, c);
    for (uint32_t i = 0; i < count; ++i) {
        if (map->bricks && (c + i) % ETHOS_U_BRICK == 0) {
            at = map->memory + ethos_u_offset(map, y, x, c + i);
        }
        int64_t value = values[i];
        if (output->function == ETHOS_U_TANH || output->function == ETHOS_U_SIGMOID) {
            value = ethos_u_curve(value, output->function == ETHOS_U_TANH);
        }
        value = value < low ? low : value > high ? high : value;
        value += map->zero_point;
        if (output->function == ETHOS_U_TABLE) {
            value = looked_up(output, value);
        }
        const uint64_t bits = (uint64_t)value;
        at[0] = (uint8_t)bits;
        if (map->element > 1) {
            at[1] = (uint8_t)(bits >> 8);
        }
        if (map->element > 2) {
            at[2] = (uint8_t)(bits >> 16);
            at[3] = (uint8_t)(bits >> 24);
        }
        at += map->element;
    }
}

bool ethos_u_work(ethos_u_t *npu, uint64_t elements, uint64_t each)
{
    const uint64_t limit = npu->call->work_limit;
    if (limit == 0) {
        return true;
    }
    if (elements != 0 && each > (limit - npu->work) / elements) {
        return ethos_u_complain(npu, HTVM_ETHOS_U_TOO_LONG,
                                "%l times %l steps exceed the run's limit of %l", elements, each,
                                limit);
    }
    npu->work += elements * each;
    return true;
}

bool ethos_u_start(ethos_u_t *npu, ethos_u_access_t *access, const ethos_u_output_t *output)
{
    access->command = npu->command;
    access->block_h = ethos_u_get_size(npu, ETHOS_U_OFM_BLK_HEIGHT_M1);
    access->block_w = ethos_u_get_size(npu, ETHOS_U_OFM_BLK_WIDTH_M1);
    access->block_d = ethos_u_get_size(npu, ETHOS_U_OFM_BLK_DEPTH_M1);
    /* Larger shared buffers keep the tables' place free; in smaller ones accumulators take it. */
    access->takes_table_area = npu->shram <= 16u * 1024u && output->function != ETHOS_U_TABLE;
    if (output->function == ETHOS_U_TABLE) {
        access->range[access->ranges++] = output->in_shram;
        if (!ethos_u_need_range(npu, "ACTIVATION", &output->in_shram)) {
            return false;
        }
    }
    if (npu->call->checked && npu->short_known[ETHOS_U_PARALLEL_MODE - 0x100] != 0 &&
        npu->short_value[ETHOS_U_PARALLEL_MODE - 0x100] != 0) {
        return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM, "PARALLEL_MODE: there is one core");
    }
    if (!ethos_u_begin_kernel(npu, access) || ethos_u_failed(npu)) {
        return false;
    }
    for (uint32_t i = 0; access->takes_table_area && i < sizeof npu->table_written; ++i) {
        npu->table_written[i] = 0;
    }
    return true;
}
