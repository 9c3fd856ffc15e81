/* dla: the command stream of a region, as byoc_dory/soc/dla/assemble.py writes it. */
#include <stdbool.h>

#include "dla_isa.h"
#include "dla_late.h"

enum { WEIGHTS_SLOT = 0, OPERAND_SLOT = 1, RESULT_SLOT = 3 };

#define READS(name, opcode, kind, flags, registers) [opcode] = registers,
static const uint32_t REGISTERS[256] = {DLA_INSTRUCTIONS(READS)};

/* Values of registers; those whose bit is not set do not matter. */
typedef struct {
    uint32_t value[DLA_CONFIG_REGISTERS], given;
} values_t;

typedef struct {
    dla_late_t *late;
    const dla_late_design_t *design;
    const dla_late_layer_t *layer;
    const dla_late_tensor_t *in, *out;
    uint64_t room, at; /* words */
    values_t held;     /* what the accelerator's registers hold */
} writer_t;

static void set(values_t *values, uint32_t reg, uint64_t value)
{
    values->value[reg] = (uint32_t)value;
    values->given |= 1u << reg;
}

static uint32_t pair(uint32_t high, uint32_t low)
{
    return (high & 0xffffu) << 16 | (low & 0xffffu);
}

static void put_word(writer_t *w, uint32_t word)
{
    if (w->at < w->room) {
        w->late->words[w->at] = word;
    }
    ++w->at;
}

/* Writes the registers that differ, in the table's order, then the instruction. */
static void put(writer_t *w, uint32_t opcode, uint32_t flags, const values_t *values)
{
    uint32_t reads = REGISTERS[opcode];
    if ((flags & DLA_FLAG_REQUANT) != 0) {
        reads |= 1u << DLA_SHIFT | 1u << DLA_CLIP;
    }
    if ((flags & DLA_FLAG_BIAS) != 0) {
        reads |= 1u << DLA_BIAS;
    }
    reads &= values->given;
    for (uint32_t reg = 0; reg < DLA_CONFIG_REGISTERS; ++reg) {
        if ((reads >> reg & 1u) == 0) {
            continue;
        }
        const uint32_t value = values->value[reg];
        if ((w->held.given >> reg & 1u) != 0 && w->held.value[reg] == value) {
            ++w->late->unchanged;
            continue;
        }
        set(&w->held, reg, value);
        ++w->late->written;
        put_word(w, (uint32_t)DLA_SET << 24 | reg);
        put_word(w, value);
    }
    put_word(w, opcode << 24 | flags);
}

/* ---- transfers ---- */

static void load(writer_t *w, uint32_t slot, uint64_t offset, uint32_t local, uint64_t bytes)
{
    values_t v = {.given = 0};
    set(&v, DLA_SLOT, slot);
    set(&v, DLA_OFFSET, offset);
    set(&v, DLA_LOCAL, local);
    set(&v, DLA_ROWS, 1);
    set(&v, DLA_BYTES, bytes);
    put(w, DLA_OP_DMA_READ, 0, &v);
}

/* Loads some channels of the input rows that output rows read. */
static void load_band(writer_t *w, uint32_t start, uint32_t rows, uint32_t first, uint32_t channels)
{
    uint32_t top, last;
    dla_late_input_rows(w->late, w->layer, start, rows, &top, &last);
    if (w->layer->resident[0] != 0 || last <= top) {
        return;
    }
    const uint64_t offset = (uint64_t)top * w->in->columns * w->in->channels;
    const uint64_t pixels = (uint64_t)(last - top) * w->in->columns;
    if (channels == w->in->channels) {
        load(w, OPERAND_SLOT, offset, w->layer->operands[0], pixels * channels);
        return;
    }
    values_t v = {.given = 0};
    set(&v, DLA_SLOT, OPERAND_SLOT);
    set(&v, DLA_OFFSET, offset + first);
    set(&v, DLA_LOCAL, w->layer->operands[0]);
    set(&v, DLA_ROWS, pixels);
    set(&v, DLA_BYTES, channels);
    set(&v, DLA_FAR_PITCH, w->in->channels);
    set(&v, DLA_LOCAL_PITCH, channels);
    put(w, DLA_OP_DMA_READ, 0, &v);
}

static uint32_t biases(const writer_t *w, uint32_t channels)
{
    const uint64_t bytes = channels * dla_late_channel_bytes(w->late, w->layer);
    return w->layer->block + (uint32_t)dla_late_up(bytes, 4);
}

static void load_weights(writer_t *w, uint32_t first, uint32_t channels)
{
    const uint64_t each = dla_late_channel_bytes(w->late, w->layer);
    if (channels == w->out->channels) {
        load(w, WEIGHTS_SLOT, 0, w->layer->block, dla_late_block_bytes(w->late, w->layer));
        return;
    }
    load(w, WEIGHTS_SLOT, first * each, w->layer->block, channels * each);
    load(w, WEIGHTS_SLOT, dla_late_bias_offset(w->late, w->layer) + 4u * (uint64_t)first,
         biases(w, channels), 4u * (uint64_t)channels);
}

/* Moves a tile of a tensor with the result's sizes. */
static void move(writer_t *w, uint32_t opcode, uint32_t slot, uint32_t start, uint32_t rows,
                 uint32_t first, uint32_t channels)
{
    const uint32_t wide = w->out->channels, columns = w->out->columns;
    const uint64_t pixels = (uint64_t)rows * columns;
    values_t v = {.given = 0};
    set(&v, DLA_SLOT, slot);
    set(&v, DLA_OFFSET, (uint64_t)start * columns * wide + first);
    set(&v, DLA_LOCAL,
        slot == RESULT_SLOT ? w->layer->result : w->layer->operands[slot - OPERAND_SLOT]);
    if (channels == wide) {
        set(&v, DLA_ROWS, 1);
        set(&v, DLA_BYTES, pixels * channels);
    } else {
        set(&v, DLA_ROWS, pixels);
        set(&v, DLA_BYTES, channels);
        set(&v, DLA_FAR_PITCH, wide);
        set(&v, DLA_LOCAL_PITCH, channels);
    }
    put(w, opcode, 0, &v);
}

/* ---- computations ---- */

static void set_map(const writer_t *w, values_t *v, uint32_t rows, uint32_t channels)
{
    set(v, DLA_OUT_CHANNELS, channels);
    set(v, DLA_OUT_HEIGHT, rows);
    set(v, DLA_OUT_WIDTH, w->out->columns);
    set(v, DLA_SHIFT, w->layer->shift);
    set(v, DLA_CLIP, pair((uint32_t)w->layer->clip[0], (uint32_t)w->layer->clip[1]));
}

static void set_result(const writer_t *w, values_t *v, uint32_t start, uint32_t first,
                       uint32_t channels)
{
    uint64_t pixel = channels, place = w->layer->result;
    if (w->layer->stays != 0) {
        pixel = w->out->channels;
        place += (uint64_t)start * w->out->columns * pixel + first;
    }
    set(v, DLA_OUT, place);
    set(v, DLA_OUT_PIXEL, pixel);
    set(v, DLA_OUT_ROW, w->out->columns * pixel);
}

static void add(writer_t *w, uint32_t start, uint32_t rows, uint32_t first, uint32_t channels)
{
    static const uint32_t PLACE[2] = {DLA_IN0, DLA_IN1};
    static const uint32_t PIXEL[2] = {DLA_IN_PIXEL, DLA_IN1_PIXEL};
    static const uint32_t ROW[2] = {DLA_IN_ROW, DLA_IN1_ROW};
    values_t v = {.given = 0};
    set_map(w, &v, rows, channels);
    for (uint32_t i = 0; i < 2; ++i) {
        uint64_t place = w->layer->operands[i], pixel = channels;
        if (w->layer->resident[i] != 0) {
            pixel = w->out->channels;
            place += (uint64_t)start * w->out->columns * pixel + first;
        } else {
            move(w, DLA_OP_DMA_READ, OPERAND_SLOT + i, start, rows, first, channels);
        }
        set(&v, PLACE[i], place);
        set(&v, PIXEL[i], pixel);
        set(&v, ROW[i], w->out->columns * pixel);
    }
    set_result(w, &v, start, first, channels);
    put(w, DLA_OP_E_ADD, 0, &v);
}

static void convolve(writer_t *w, values_t *v, uint32_t channels, uint32_t size)
{
    const bool depthwise = w->layer->op == DLA_LATE_DEPTHWISE;
    const bool emulated = depthwise && w->design->depthwise == 1;
    const bool fused = w->design->fused != 0;
    uint32_t opcode, flags = DLA_FLAG_BIAS;
    if (depthwise && !emulated) {
        opcode = DLA_OP_DEPTH_CONV;
        flags |= fused ? DLA_FLAG_REQUANT : 0;
    } else if (!fused) {
        opcode = w->layer->op == DLA_LATE_DENSE ? DLA_OP_MAT_MUL : DLA_OP_CONV;
    } else if (w->layer->clip[0] == 0) {
        opcode = DLA_OP_CONV_RELU;
    } else {
        opcode = DLA_OP_CONV;
        flags |= DLA_FLAG_REQUANT;
    }
    if (!emulated) {
        put(w, opcode, flags, v);
        return;
    }
    const uint32_t each = (uint32_t)dla_late_channel_bytes(w->late, w->layer);
    values_t one = *v;
    set(&one, DLA_CHANNELS, 1);
    set(&one, DLA_OUT_CHANNELS, 1);
    for (uint32_t channel = 0; channel < channels; ++channel) {
        set(&one, DLA_IN0, (uint64_t)v->value[DLA_IN0] + channel);
        set(&one, DLA_WEIGHTS, v->value[DLA_WEIGHTS] + (uint64_t)channel * each);
        set(&one, DLA_BIAS, v->value[DLA_BIAS] + 4u * (uint64_t)channel);
        set(&one, DLA_OUT, v->value[DLA_OUT] + (uint64_t)size * channel);
        put(w, opcode, flags, &one);
    }
}

/* The convolution of a tile and, unless it is fused, its requantization. */
static void compute(writer_t *w, uint32_t start, uint32_t rows, uint32_t first, uint32_t channels)
{
    const dla_late_layer_t *l = w->layer;
    uint32_t top, last;
    dla_late_input_rows(w->late, l, start, rows, &top, &last);
    const bool resident = l->resident[0] != 0, depthwise = l->op == DLA_LATE_DEPTHWISE;
    const uint64_t wide = depthwise && !resident ? channels : w->in->channels;
    const uint64_t row = w->in->columns * wide;
    const uint64_t above = (uint64_t)start * l->stride[0];
    values_t v = {.given = 0};
    set_map(w, &v, rows, channels);
    set(&v, DLA_IN0, l->operands[0] + (resident ? top * row + (depthwise ? first : 0) : 0));
    set(&v, DLA_WEIGHTS, l->block);
    set(&v, DLA_BIAS, biases(w, channels));
    set(&v, DLA_CHANNELS, w->in->channels);
    set(&v, DLA_IN_HEIGHT, last > top ? last - top : 0);
    set(&v, DLA_IN_WIDTH, w->in->columns);
    set(&v, DLA_IN_PIXEL, wide);
    set(&v, DLA_IN_ROW, row);
    set(&v, DLA_KERNEL, pair(l->kernel[0], l->kernel[1]));
    set(&v, DLA_STRIDE, pair(l->stride[0], l->stride[1]));
    set(&v, DLA_PAD, pair(l->pad[0] > above ? l->pad[0] - (uint32_t)above : 0, l->pad[1]));
    if (w->design->fused != 0) {
        set_result(w, &v, start, first, channels);
        convolve(w, &v, channels, 1);
        return;
    }
    const uint64_t pixel = 4u * (uint64_t)channels;
    set(&v, DLA_OUT, l->sums);
    set(&v, DLA_OUT_PIXEL, pixel);
    set(&v, DLA_OUT_ROW, w->out->columns * pixel);
    convolve(w, &v, channels, 4);
    set(&v, DLA_IN0, l->sums);
    set(&v, DLA_IN_PIXEL, pixel);
    set(&v, DLA_IN_ROW, w->out->columns * pixel);
    set_result(w, &v, start, first, channels);
    put(w, DLA_OP_E32_SHR, DLA_FLAG_REQUANT, &v);
}

/* All tiles of a layer: bands of rows outside, output channels inside. */
static void write_layer(writer_t *w)
{
    const dla_late_layer_t *l = w->layer;
    const uint32_t height = w->out->rows, wide = w->out->channels;
    for (uint32_t start = 0; start < height; start += l->tile_y) {
        const uint32_t left = height - start, rows = l->tile_y < left ? l->tile_y : left;
        if (l->op == DLA_LATE_CONV || l->op == DLA_LATE_DENSE) {
            load_band(w, start, rows, 0, w->in->channels);
        }
        for (uint32_t first = 0; first < wide; first += l->tile_k) {
            const uint32_t rest = wide - first, channels = l->tile_k < rest ? l->tile_k : rest;
            if (l->op == DLA_LATE_ADD) {
                add(w, start, rows, first, channels);
            } else {
                if (l->op == DLA_LATE_DEPTHWISE) {
                    load_band(w, start, rows, first, channels);
                }
                if (start == 0 || l->tile_k < wide) {
                    load_weights(w, first, channels);
                }
                compute(w, start, rows, first, channels);
            }
            if (l->stays == 0) {
                move(w, DLA_OP_DMA_WRITE, RESULT_SLOT, start, rows, first, channels);
            }
        }
    }
}

void dla_late_stream(dla_late_t *late, const dla_late_design_t *design, uint64_t room)
{
    writer_t w = {.late = late, .design = design, .room = room};
    late->written = late->unchanged = 0;
    for (uint32_t i = 0; i < late->layer_count; ++i) {
        w.layer = &late->layers[i];
        w.in = &late->tensors[w.layer->inputs[0]];
        w.out = &late->tensors[w.layer->output];
        late->starts[i] = (uint32_t)w.at;
        write_layer(&w);
    }
    late->starts[late->layer_count] = (uint32_t)w.at;
    late->word_count = (uint32_t)w.at;
}
