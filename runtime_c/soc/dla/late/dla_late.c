/* dla: late assembly from start to end, and what its parts share; see dla_late.h. */
#include "dla_late.h"

#include <stdbool.h>

static bool possible(const dla_late_design_t *d)
{
    return d->pes_in >= 1 && d->pes_in <= 4096u && d->pes_out >= 1 && d->pes_out <= 4096u &&
           d->pes_in * d->pes_out <= 4096u && d->sram >= 1 && d->sram <= 256u << 20 &&
           d->dma_bytes >= 1 && d->dma_bytes <= 1024u && d->dma_setup <= 100000u &&
           d->depthwise <= 2 && d->fused <= 1 && d->rows <= 1 && d->resident <= 1;
}

int32_t dla_late_assemble(const char *json, size_t json_bytes, const uint8_t *weights,
                          size_t weights_bytes, const dla_late_design_t *design, void *arena,
                          size_t bytes, dla_late_t *late)
{
    *late = (dla_late_t){0};
    if (!possible(design)) {
        return DLA_LATE_DESIGN;
    }
    int32_t code =
        dla_late_read(json, json_bytes, weights, weights_bytes, arena, bytes, late);
    if (code == 0) {
        code = dla_late_plan(late, design);
    }
    if (code != 0) {
        return code;
    }
    const uint64_t used = (uint64_t)((uint8_t *)late->words - (uint8_t *)arena);
    const uint64_t room = (bytes - used) / sizeof(uint32_t);
    dla_late_stream(late, design, room);
    late->needed = used + (uint64_t)late->word_count * sizeof(uint32_t);
    return late->word_count <= room ? DLA_LATE_OK : DLA_LATE_ARENA;
}

uint64_t dla_late_channel_bytes(const dla_late_t *late, const dla_late_layer_t *layer)
{
    if (layer->op == DLA_LATE_ADD) {
        return 0;
    }
    const uint64_t taps = (uint64_t)layer->kernel[0] * layer->kernel[1];
    return layer->op == DLA_LATE_DEPTHWISE ? taps
                                           : taps * late->tensors[layer->inputs[0]].channels;
}

uint64_t dla_late_bias_offset(const dla_late_t *late, const dla_late_layer_t *layer)
{
    return dla_late_up(
        dla_late_channel_bytes(late, layer) * late->tensors[layer->output].channels, 4);
}

uint64_t dla_late_block_bytes(const dla_late_t *late, const dla_late_layer_t *layer)
{
    if (layer->op == DLA_LATE_ADD) {
        return 0;
    }
    return dla_late_bias_offset(late, layer) + 4u * late->tensors[layer->output].channels;
}

void dla_late_input_rows(const dla_late_t *late, const dla_late_layer_t *layer, uint32_t start,
                         uint32_t rows, uint32_t *first, uint32_t *last)
{
    const int64_t height = late->tensors[layer->inputs[0]].rows;
    if (rows == late->tensors[layer->output].rows) {
        *first = 0;
        *last = (uint32_t)height;
        return;
    }
    const int64_t stride = layer->stride[0], pad = layer->pad[0];
    const int64_t from = (int64_t)start * stride - pad;
    const int64_t to = ((int64_t)start + rows - 1) * stride - pad + layer->kernel[0];
    *first = (uint32_t)(from < 0 ? 0 : from < height ? from : height);
    *last = (uint32_t)(to < 0 ? 0 : to < height ? to : height);
}
