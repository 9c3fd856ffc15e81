/* dla: the reader of regions: JSON into tables in the arena, everything checked. */
#include <stdbool.h>
#include <string.h>

#include "dla_late.h"
#include "dla_late_json.h"

enum { VERSION = 1, MOST = 0x7fffffff, ALIGN = 16, ARENA_ALIGN = 8 };

/* ---- tables ---- */

/* The number of the word that is read. */
static bool read_choice(dla_json_t *r, const char *const *words, uint32_t count, uint32_t *value)
{
    dla_json_text_t word;
    if (!dla_json_string(r, &word)) {
        return false;
    }
    for (uint32_t i = 0; i < count; ++i) {
        if (dla_json_is(word, words[i])) {
            *value = i;
            return true;
        }
    }
    return dla_json_fail(r, DLA_LATE_FIELD);
}

static bool read_tensor_field(dla_json_t *r, dla_json_text_t key, dla_late_tensor_t *t, uint32_t *seen)
{
    static const char *const KINDS[] = {"input", "output", "internal"};
    static const char *const KEYS[] = {"name", "channels", "rows", "columns", "kind"};
    uint32_t field = 0;
    while (field < 5 && !dla_json_is(key, KEYS[field])) {
        ++field;
    }
    if (field == 5 || (*seen >> field & 1u) != 0) {
        return dla_json_fail(r, DLA_LATE_FIELD);
    }
    *seen |= 1u << field;
    dla_json_text_t name;
    switch (field) {
    case 0:
        return dla_json_string(r, &name);
    case 1:
        return dla_json_whole(r, MOST, &t->channels);
    case 2:
        return dla_json_whole(r, MOST, &t->rows);
    case 3:
        return dla_json_whole(r, MOST, &t->columns);
    default:
        return read_choice(r, KINDS, 3, &t->kind);
    }
}

static bool read_inputs(dla_json_t *r, dla_late_layer_t *l, uint32_t *count)
{
    if (!dla_json_expect(r, '[')) {
        return false;
    }
    *count = 0;
    do {
        if (*count == 2) {
            return dla_json_fail(r, DLA_LATE_FIELD);
        }
        if (!dla_json_whole(r, MOST, &l->inputs[(*count)++])) {
            return false;
        }
    } while (dla_json_next(r, ','));
    return dla_json_expect(r, ']');
}

static bool read_layer_field(dla_json_t *r, dla_json_text_t key, dla_late_layer_t *l, uint32_t *seen)
{
    static const char *const OPS[] = {"conv", "depthwise", "dense", "add"};
    static const char *const KEYS[] = {"name",   "op",  "inputs", "output", "kernel",
                                       "stride", "pad", "shift",  "clip",   "weights"};
    uint32_t field = 0, operands = 0;
    while (field < 10 && !dla_json_is(key, KEYS[field])) {
        ++field;
    }
    if (field == 10 || (*seen >> field & 1u) != 0) {
        return dla_json_fail(r, DLA_LATE_FIELD);
    }
    *seen |= 1u << field;
    dla_json_text_t name;
    int64_t clip[2] = {0};
    bool read;
    switch (field) {
    case 0:
        return dla_json_string(r, &name);
    case 1:
        return read_choice(r, OPS, 4, &l->op);
    case 2:
        read = read_inputs(r, l, &operands);
        *seen |= operands << 16;
        return read;
    case 3:
        return dla_json_whole(r, MOST, &l->output);
    case 4:
        return dla_json_wholes(r, 2, l->kernel);
    case 5:
        return dla_json_wholes(r, 2, l->stride);
    case 6:
        return dla_json_wholes(r, 4, l->pad);
    case 7:
        return dla_json_whole(r, 31, &l->shift);
    case 8:
        read = dla_json_list(r, 2, -128, 127, clip);
        l->clip[0] = (int32_t)clip[0];
        l->clip[1] = (int32_t)clip[1];
        return read;
    default:
        return dla_json_whole(r, MOST, &l->weights);
    }
}

/* Reads a list of objects into a table; with a NULL table, only counts them. */
static bool read_tensors(dla_json_t *r, dla_late_tensor_t *table, uint32_t *count)
{
    *count = 0;
    if (!dla_json_expect(r, '[') || dla_json_next(r, ']')) {
        return r->code == 0;
    }
    do {
        dla_late_tensor_t tensor = {.place = DLA_LATE_NOWHERE};
        uint32_t seen = 0;
        if (!dla_json_expect(r, '{')) {
            return false;
        }
        do {
            dla_json_text_t key;
            if (!dla_json_string(r, &key) || !dla_json_expect(r, ':') ||
                !read_tensor_field(r, key, &tensor, &seen)) {
                return false;
            }
        } while (dla_json_next(r, ','));
        if (!dla_json_expect(r, '}')) {
            return false;
        }
        const uint64_t plane = (uint64_t)tensor.rows * tensor.columns;
        if (seen != 0x1fu || plane == 0 || plane > MOST || tensor.channels == 0 ||
            plane * tensor.channels > MOST) {
            return dla_json_fail(r, DLA_LATE_FIELD);
        }
        if (table != NULL) {
            table[*count] = tensor;
        }
        ++*count;
    } while (dla_json_next(r, ','));
    return dla_json_expect(r, ']');
}

static bool read_layers(dla_json_t *r, dla_late_layer_t *table, uint32_t *count)
{
    *count = 0;
    if (!dla_json_expect(r, '[') || dla_json_next(r, ']')) {
        return r->code == 0;
    }
    do {
        dla_late_layer_t layer = {0};
        uint32_t seen = 0;
        if (!dla_json_expect(r, '{')) {
            return false;
        }
        do {
            dla_json_text_t key;
            if (!dla_json_string(r, &key) || !dla_json_expect(r, ':') ||
                !read_layer_field(r, key, &layer, &seen)) {
                return false;
            }
        } while (dla_json_next(r, ','));
        if (!dla_json_expect(r, '}')) {
            return false;
        }
        const uint32_t operands = seen >> 16;
        if ((seen & 0xffffu) != 0x3ffu || operands != (layer.op == DLA_LATE_ADD ? 2u : 1u)) {
            return dla_json_fail(r, DLA_LATE_FIELD);
        }
        if (table != NULL) {
            table[*count] = layer;
        }
        ++*count;
    } while (dla_json_next(r, ','));
    return dla_json_expect(r, ']');
}

/* ---- checks ---- */

static bool window_fits(const dla_late_layer_t *l, uint32_t axis, uint32_t size, uint32_t out)
{
    const int64_t span =
        (int64_t)size + l->pad[axis] + l->pad[axis + 2] - (int64_t)l->kernel[axis];
    return l->kernel[axis] >= 1 && l->stride[axis] >= 1 && span >= 0 &&
           span / l->stride[axis] + 1 == out;
}

static bool layer_fits(const dla_late_t *late, const dla_late_layer_t *l)
{
    const uint32_t count = late->tensor_count;
    const uint32_t second = l->op == DLA_LATE_ADD ? l->inputs[1] : l->inputs[0];
    if (l->inputs[0] >= count || second >= count || l->output >= count) {
        return false;
    }
    const dla_late_tensor_t *in = &late->tensors[l->inputs[0]];
    const dla_late_tensor_t *out = &late->tensors[l->output];
    if (in->known == 0 || late->tensors[second].known == 0 || out->known != 0) {
        return false;
    }
    const bool plain = l->op == DLA_LATE_ADD || l->op == DLA_LATE_DENSE;
    const bool one = l->kernel[0] == 1 && l->kernel[1] == 1 && l->stride[0] == 1 &&
                     l->stride[1] == 1;
    const bool same = l->op == DLA_LATE_ADD || l->op == DLA_LATE_DEPTHWISE;
    const uint64_t wide = dla_late_channel_bytes(late, l) * out->channels;
    return window_fits(l, 0, in->rows, out->rows) && window_fits(l, 1, in->columns, out->columns) &&
           (!same || in->channels == out->channels) && (!plain || one) && l->clip[0] <= l->clip[1] &&
           l->weights % ALIGN == 0 && wide <= MOST &&
           l->weights + dla_late_block_bytes(late, l) <= late->weights_bytes;
}

static int32_t check_layers(dla_late_t *late)
{
    for (uint32_t i = 0; i < late->tensor_count; ++i) {
        late->tensors[i].known = late->tensors[i].kind == DLA_LATE_INPUT;
    }
    for (uint32_t i = 0; i < late->layer_count; ++i) {
        const dla_late_layer_t *layer = &late->layers[i];
        late->at = i;
        if (!layer_fits(late, layer)) {
            return DLA_LATE_LAYER;
        }
        late->tensors[layer->output].known = 1;
        late->tensors[layer->inputs[0]].last = i;
        if (layer->op == DLA_LATE_ADD) {
            const dla_late_tensor_t *a = &late->tensors[layer->inputs[0]];
            const dla_late_tensor_t *b = &late->tensors[layer->inputs[1]];
            if (a->channels != b->channels || a->rows != b->rows || a->columns != b->columns) {
                return DLA_LATE_LAYER;
            }
            late->tensors[layer->inputs[1]].last = i;
        }
    }
    late->at = 0;
    return DLA_LATE_OK;
}

static bool same_digest(const uint8_t digest[32], dla_json_text_t text)
{
    static const char HEX[] = "0123456789abcdef";
    bool same = text.bytes == 64;
    for (uint32_t i = 0; same && i < 64; ++i) {
        same = text.text[i] == HEX[digest[i / 2] >> (i % 2 == 0 ? 4 : 0) & 15u];
    }
    return same;
}

/* ---- the whole ---- */

enum { FORMAT_KEY, VERSION_KEY, NAME_KEY, BYTES_KEY, HASH_KEY, TENSORS_KEY, LAYERS_KEY, KEYS };

/* Finds where the values of the outermost object begin. */
static bool find_values(dla_json_t *r, const char *values[KEYS], bool *unknown)
{
    static const char *const NAMES[KEYS] = {"format",         "version", "name",  "weights_bytes",
                                            "weights_sha256", "tensors", "layers"};
    if (!dla_json_expect(r, '{')) {
        return false;
    }
    do {
        dla_json_text_t key;
        if (!dla_json_string(r, &key) || !dla_json_expect(r, ':')) {
            return false;
        }
        uint32_t i = 0;
        while (i < KEYS && !dla_json_is(key, NAMES[i])) {
            ++i;
        }
        *unknown |= i == KEYS;
        if (i < KEYS) {
            *unknown |= values[i] != NULL;
            values[i] = r->at;
        }
        if (!dla_json_skip(r, 1)) {
            return false;
        }
    } while (dla_json_next(r, ','));
    if (!dla_json_expect(r, '}')) {
        return false;
    }
    dla_json_space(r);
    return r->at == r->end || dla_json_fail(r, DLA_LATE_SYNTAX);
}

static dla_json_t *from(dla_json_t *r, const char *at)
{
    r->at = at;
    return r;
}

static int32_t read_head(dla_json_t *r, const char *values[KEYS], dla_late_t *late, dla_json_text_t *hash)
{
    bool unknown = false;
    dla_json_text_t format, name;
    int64_t version = 0;
    if (!find_values(r, values, &unknown)) {
        return r->code;
    }
    if (values[FORMAT_KEY] == NULL || !dla_json_string(from(r, values[FORMAT_KEY]), &format) ||
        !dla_json_is(format, "htvm-dla-region")) {
        return DLA_LATE_FORMAT;
    }
    if (values[VERSION_KEY] == NULL ||
        !dla_json_number(from(r, values[VERSION_KEY]), 0, MOST, &version) || version != VERSION) {
        late->at = (uint64_t)version;
        return DLA_LATE_VERSION;
    }
    for (uint32_t i = 0; i < KEYS; ++i) {
        unknown |= values[i] == NULL;
    }
    if (unknown || !dla_json_string(from(r, values[NAME_KEY]), &name) ||
        !dla_json_whole(from(r, values[BYTES_KEY]), MOST, &late->weights_bytes) ||
        !dla_json_string(from(r, values[HASH_KEY]), hash)) {
        return dla_json_fail(r, DLA_LATE_FIELD) ? 0 : DLA_LATE_FIELD;
    }
    return DLA_LATE_OK;
}

/* Puts the tables into the arena. */
static int32_t read_tables(dla_json_t *r, const char *values[KEYS], uint8_t *arena, size_t bytes,
                           dla_late_t *late)
{
    if (!read_tensors(from(r, values[TENSORS_KEY]), NULL, &late->tensor_count) ||
        !read_layers(from(r, values[LAYERS_KEY]), NULL, &late->layer_count)) {
        return r->code;
    }
    const uint64_t begin = (ARENA_ALIGN - (uintptr_t)arena % ARENA_ALIGN) % ARENA_ALIGN;
    const uint64_t tensors = (uint64_t)late->tensor_count * sizeof *late->tensors;
    const uint64_t layers = (uint64_t)late->layer_count * sizeof *late->layers;
    const uint64_t starts = ((uint64_t)late->layer_count + 1u) * sizeof *late->starts;
    late->needed = begin + tensors + layers + starts;
    if (late->needed > bytes) {
        return DLA_LATE_TABLES;
    }
    late->tensors = (dla_late_tensor_t *)(void *)(arena + begin);
    late->layers = (dla_late_layer_t *)(void *)(arena + begin + tensors);
    late->starts = (uint32_t *)(void *)(arena + begin + tensors + layers);
    late->words = (uint32_t *)(void *)(arena + late->needed);
    (void)read_tensors(from(r, values[TENSORS_KEY]), late->tensors, &late->tensor_count);
    (void)read_layers(from(r, values[LAYERS_KEY]), late->layers, &late->layer_count);
    return r->code;
}

int32_t dla_late_read(const char *json, size_t bytes, const uint8_t *weights, size_t weights_bytes,
                      void *arena, size_t arena_bytes, dla_late_t *late)
{
    dla_json_t r = {.start = json, .at = json, .end = json + bytes};
    const char *values[KEYS] = {NULL};
    dla_json_text_t hash = {NULL, 0};
    int32_t code = read_head(&r, values, late, &hash);
    if (code == 0) {
        code = read_tables(&r, values, arena, arena_bytes, late);
    }
    if (code != 0) {
        if (code == DLA_LATE_SYNTAX || code == DLA_LATE_TRUNCATED || code == DLA_LATE_FIELD) {
            late->at = (uint64_t)(r.at - r.start);
        }
        return code;
    }
    code = check_layers(late);
    if (code != 0 || weights == NULL) {
        return code;
    }
    if (weights_bytes != late->weights_bytes) {
        return DLA_LATE_LENGTH;
    }
    uint8_t digest[32];
    dla_late_sha256(weights, weights_bytes, digest);
    return same_digest(digest, hash) ? DLA_LATE_OK : DLA_LATE_WEIGHTS;
}
