/* dla: tiles and memory plan of a region, as byoc_dory/soc/dla/tiles.py and memory.py make them. */
#include <stdbool.h>

#include "dla_late.h"

enum { WORD = 4, BUFFERS = 5 };

/* Bytes of SRAM of one tile. */
typedef struct {
    uint64_t source, operands, result, weights;
} need_t;

/* A layer with its tensors. */
typedef struct {
    const dla_late_t *late;
    const dla_late_design_t *design;
    const dla_late_layer_t *layer;
    const dla_late_tensor_t *in, *out;
} view_t;

static view_t view_of(const dla_late_t *late, const dla_late_design_t *design, uint32_t number)
{
    const dla_late_layer_t *layer = &late->layers[number];
    return (view_t){late, design, layer, &late->tensors[layer->inputs[0]],
                    &late->tensors[layer->output]};
}

/* ---- tiles ---- */

static need_t need_of(const view_t *v, uint64_t k, uint64_t y)
{
    const uint64_t pixels = y * v->out->columns;
    if (v->layer->op == DLA_LATE_ADD) {
        const uint64_t size = dla_late_up(pixels * k, WORD);
        return (need_t){size, 2, size, 0};
    }
    uint64_t rows = v->in->rows;
    if (y != v->out->rows) {
        const uint64_t most = v->layer->stride[0] * (y - 1) + v->layer->kernel[0];
        rows = most < rows ? most : rows;
    }
    const uint64_t channels = v->layer->op == DLA_LATE_DEPTHWISE ? k : v->in->channels;
    return (need_t){
        .source = dla_late_up(rows * v->in->columns * channels, WORD),
        .operands = 1,
        .result = dla_late_up(pixels * k * (v->design->fused ? 1u : 4u), WORD),
        .weights = dla_late_up(k * dla_late_channel_bytes(v->late, v->layer), WORD) + 4u * k,
    };
}

static uint64_t total(need_t need)
{
    return need.source * need.operands + need.result + need.weights;
}

static uint64_t dma_cycles(const dla_late_design_t *d, uint64_t rows, uint64_t size, bool together)
{
    if (together) {
        size *= rows;
        rows = 1;
    }
    return d->dma_setup + rows * dla_late_groups(size, d->dma_bytes);
}

static uint64_t compute_cycles(const view_t *v, uint64_t k, uint64_t rows)
{
    const dla_late_design_t *d = v->design;
    const uint64_t pes = (uint64_t)d->pes_in * d->pes_out;
    const uint64_t elements = rows * v->out->columns * k;
    if (v->layer->op == DLA_LATE_ADD) {
        return dla_late_groups(elements, pes);
    }
    const uint64_t positions =
        rows * v->out->columns * v->layer->kernel[0] * v->layer->kernel[1];
    const uint64_t requant = d->fused ? 0 : dla_late_groups(elements, pes);
    if (v->layer->op != DLA_LATE_DEPTHWISE) {
        return positions * dla_late_groups(v->in->channels, d->pes_in) *
                   dla_late_groups(k, d->pes_out) +
               requant;
    }
    if (d->depthwise == 1) {
        return k * positions + requant;
    }
    return positions * dla_late_groups(k, pes) + requant;
}

static uint64_t weight_cycles(const view_t *v, uint64_t k)
{
    if (v->layer->op == DLA_LATE_ADD) {
        return 0;
    }
    if (k == v->out->channels) {
        return dma_cycles(v->design, 1, dla_late_block_bytes(v->late, v->layer), true);
    }
    return dma_cycles(v->design, 1, k * dla_late_channel_bytes(v->late, v->layer), true) +
           dma_cycles(v->design, 1, 4u * k, true);
}

/* Cycles of loading some channels of what output rows read. */
static uint64_t band_cycles(const view_t *v, uint32_t start, uint32_t rows, uint64_t channels)
{
    uint32_t first, last;
    dla_late_input_rows(v->late, v->layer, start, rows, &first, &last);
    if (last <= first) {
        return 0;
    }
    const uint64_t pixels = (uint64_t)(last - first) * v->in->columns;
    return dma_cycles(v->design, pixels, channels, channels == v->in->channels);
}

/* Cycles of a layer in tiles, if nothing stays in SRAM between layers. */
static uint64_t tiled_cycles(const view_t *v, uint32_t k, uint32_t y)
{
    const uint32_t channels = v->out->channels, height = v->out->rows;
    const uint64_t wide = dla_late_groups(channels, k), high = dla_late_groups(height, y);
    const bool add = v->layer->op == DLA_LATE_ADD, depthwise = v->layer->op == DLA_LATE_DEPTHWISE;
    uint64_t cycles = 0;
    for (uint32_t band = 0; band < high; ++band) {
        const uint32_t start = band * y, left = height - start, rows = y < left ? y : left;
        if (!add && !depthwise) {
            cycles += band_cycles(v, start, rows, v->in->channels);
        }
        const uint64_t counts[2] = {wide - 1, 1};
        const uint64_t sizes[2] = {k, channels - (wide - 1) * k};
        for (uint32_t i = 0; i < 2; ++i) {
            const uint64_t one = dma_cycles(v->design, (uint64_t)rows * v->out->columns, sizes[i],
                                            sizes[i] == channels);
            uint64_t each = compute_cycles(v, sizes[i], rows) + one * (add ? 3u : 1u);
            if (depthwise) {
                each += band_cycles(v, start, rows, sizes[i]);
            }
            if (wide > 1 || band == 0) {
                each += weight_cycles(v, sizes[i]);
            }
            cycles += counts[i] * each;
        }
    }
    return cycles;
}

/* The largest number of output channels that fit; 0 if not even one does. */
static uint32_t widest(const view_t *v, uint32_t y)
{
    uint32_t low = 0, high = v->out->channels;
    while (low < high) {
        const uint32_t middle = low + (high - low + 1u) / 2u;
        if (total(need_of(v, middle, y)) <= v->design->sram) {
            low = middle;
        } else {
            high = middle - 1u;
        }
    }
    return low;
}

static uint32_t whole_groups(const view_t *v, uint32_t k)
{
    const dla_late_design_t *d = v->design;
    const bool product = v->layer->op == DLA_LATE_CONV || v->layer->op == DLA_LATE_DENSE;
    const uint32_t lanes = product ? d->pes_out : d->pes_in * d->pes_out;
    return k == v->out->channels || k < lanes ? k : k / lanes * lanes;
}

static bool find_tile(const view_t *v, uint32_t *tile_k, uint32_t *tile_y)
{
    const uint32_t height = v->out->rows, most = v->design->rows ? height : 1;
    bool found = false;
    uint64_t fewest = 0;
    for (uint32_t bands = 1; bands <= most; ++bands) {
        const uint32_t y = (uint32_t)dla_late_groups(height, bands);
        if (dla_late_groups(height, y) != bands) {
            continue; /* as high as with fewer bands */
        }
        const uint32_t k = widest(v, y);
        if (k == 0) {
            continue;
        }
        const uint32_t choices[2] = {k, whole_groups(v, k)};
        for (uint32_t i = 0; i < 2; ++i) {
            const uint64_t cycles = v->design->rows ? tiled_cycles(v, choices[i], y) : 0;
            if (!found || cycles < fewest) {
                found = true;
                fewest = cycles;
                *tile_k = choices[i];
                *tile_y = y;
            }
        }
    }
    return found;
}

/* ---- places ---- */

typedef struct {
    uint64_t low, high;
} range_t;

/* Whether bytes of a layer's own buffers or of tensors that are needed from a layer on begin or end
 * inside [start, start + size); if so, *start moves behind them. */
static bool blocked(const dla_late_t *late, uint32_t number, const range_t *own, uint32_t count,
                    uint64_t size, uint64_t *start)
{
    bool moved = false;
    for (uint32_t i = 0; i < count; ++i) {
        if (own[i].low < *start + size && *start < own[i].high) {
            *start = own[i].high;
            moved = true;
        }
    }
    for (uint32_t i = 0; i < late->tensor_count; ++i) {
        const dla_late_tensor_t *t = &late->tensors[i];
        if (t->place == DLA_LATE_NOWHERE || t->last < number) {
            continue;
        }
        const uint64_t bytes =
            dla_late_up((uint64_t)t->channels * t->rows * t->columns, WORD);
        if (t->place < *start + size && *start < t->place + bytes) {
            *start = t->place + bytes;
            moved = true;
        }
    }
    return moved;
}

/* Places a layer's buffers; false if one has no place. */
static bool place_layer(dla_late_t *late, const dla_late_design_t *design, uint32_t number)
{
    const view_t v = view_of(late, design, number);
    dla_late_layer_t *l = &late->layers[number];
    dla_late_tensor_t *out = &late->tensors[l->output];
    const need_t need = need_of(&v, l->tile_k, l->tile_y);
    const bool add = l->op == DLA_LATE_ADD;
    const uint64_t whole = dla_late_up((uint64_t)out->channels * out->rows * out->columns, WORD);
    l->stays = out->stays;
    for (uint32_t i = 0; i < 2; ++i) {
        const bool has = i == 0 || add;
        l->resident[i] = has && late->tensors[l->inputs[i]].place != DLA_LATE_NOWHERE;
    }
    const bool split = l->stays && !design->fused && !add;
    const uint64_t sizes[BUFFERS] = {
        l->stays ? whole : need.result, l->resident[0] ? 0 : need.source,
        !add || l->resident[1] ? 0 : need.source, split ? need.result : 0, need.weights};
    uint32_t places[BUFFERS];
    range_t own[BUFFERS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < BUFFERS; ++i) {
        places[i] = DLA_LATE_NOWHERE;
        if (sizes[i] == 0) {
            continue;
        }
        uint64_t start = 0;
        while (blocked(late, number, own, count, sizes[i], &start)) {
        }
        if (start + sizes[i] > design->sram) {
            return false;
        }
        places[i] = (uint32_t)start;
        own[count++] = (range_t){start, start + sizes[i]};
        late->peak = start + sizes[i] > late->peak ? (uint32_t)(start + sizes[i]) : late->peak;
    }
    for (uint32_t i = 0; i < 2; ++i) {
        l->operands[i] = l->resident[i] ? late->tensors[l->inputs[i]].place : places[1 + i];
    }
    l->result = places[0];
    l->sums = split ? places[3] : places[0];
    l->block = places[4];
    if (l->stays) {
        out->place = places[0];
    }
    return true;
}

static bool place_all(dla_late_t *late, const dla_late_design_t *design)
{
    for (uint32_t i = 0; i < late->tensor_count; ++i) {
        late->tensors[i].place = DLA_LATE_NOWHERE;
    }
    late->peak = 0;
    for (uint32_t i = 0; i < late->layer_count; ++i) {
        if (!place_layer(late, design, i)) {
            return false;
        }
    }
    return true;
}

int32_t dla_late_plan(dla_late_t *late, const dla_late_design_t *design)
{
    for (uint32_t i = 0; i < late->layer_count; ++i) {
        const view_t v = view_of(late, design, i);
        if (!find_tile(&v, &late->layers[i].tile_k, &late->layers[i].tile_y)) {
            late->at = i;
            late->needed = total(need_of(&v, 1, design->rows ? 1u : v.out->rows));
            return DLA_LATE_SRAM;
        }
    }
    for (uint32_t i = 0; i < late->layer_count; ++i) {
        late->tensors[late->layers[i].output].stays = 0;
    }
    bool placed = place_all(late, design);
    for (uint32_t i = 0; i < late->layer_count && design->resident != 0; ++i) {
        dla_late_tensor_t *t = &late->tensors[late->layers[i].output];
        if (t->kind != DLA_LATE_INTERNAL) {
            continue;
        }
        t->stays = 1;
        placed = place_all(late, design);
        t->stays = placed;
    }
    /* The last attempt may have failed: the plan without it, which exists. */
    return placed || place_all(late, design) ? DLA_LATE_OK : DLA_LATE_LAYER;
}
