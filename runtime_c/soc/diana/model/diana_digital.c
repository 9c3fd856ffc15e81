/* The digital core: checks a trigger, computes it at once, and is busy for as long as the cycle
 * model says. */
#include <inttypes.h>
#include <string.h>

#include "diana_array.h"
#include "diana_model.h"

/* Published trigger constants include the host's driver code, which the simulator runs as well:
 * the device takes the difference. */
#define DEVICE_CYCLES(op) \
    ((uint64_t)(DIANA_DIGITAL_##op##_TRIGGER_CYCLES - DIANA_DIGITAL_##op##_DRIVER_CYCLES))
_Static_assert(DIANA_DIGITAL_CONV_TRIGGER_CYCLES >= DIANA_DIGITAL_CONV_DRIVER_CYCLES, "driver");
_Static_assert(DIANA_DIGITAL_DEPTHWISE_TRIGGER_CYCLES >= DIANA_DIGITAL_DEPTHWISE_DRIVER_CYCLES,
               "driver");
_Static_assert(DIANA_DIGITAL_DENSE_TRIGGER_CYCLES >= DIANA_DIGITAL_DENSE_DRIVER_CYCLES, "driver");
_Static_assert(DIANA_DIGITAL_ADD_TRIGGER_CYCLES >= DIANA_DIGITAL_ADD_DRIVER_CYCLES, "driver");

/* Recognisable content of bytes that nobody may read. */
#define VOID 0xA5

static diana_shape_t read_shape(const diana_device_t *core)
{
    diana_shape_t s = {
        .k = diana_field(core, DIANA_DIGITAL_SHAPE0, 0, 16),
        .c = diana_field(core, DIANA_DIGITAL_SHAPE0, 16, 16),
        .iy = diana_field(core, DIANA_DIGITAL_SHAPE1, 0, 16),
        .ix = diana_field(core, DIANA_DIGITAL_SHAPE1, 16, 16),
        .oy = diana_field(core, DIANA_DIGITAL_SHAPE2, 0, 16),
        .ox = diana_field(core, DIANA_DIGITAL_SHAPE2, 16, 16),
        .fy = diana_field(core, DIANA_DIGITAL_SHAPE3, 0, 8),
        .fx = diana_field(core, DIANA_DIGITAL_SHAPE3, 8, 8),
        .stride = diana_field(core, DIANA_DIGITAL_SHAPE3, 16, 8),
        .pad_top = diana_signed_field(core, DIANA_DIGITAL_SHAPE3, 24),
        .pad_left = diana_signed_field(core, DIANA_DIGITAL_SHAPE4, 0),
        .shift = diana_field(core, DIANA_DIGITAL_SHAPE4, 8, 8),
        .relu = diana_field(core, DIANA_DIGITAL_SHAPE4, 16, 8) != 0,
    };
    s.in_pitch = diana_round_up(s.ix, DIANA_DIGITAL_ROW_PITCH);
    s.out_pitch = diana_round_up(s.ox, DIANA_DIGITAL_ROW_PITCH);
    s.lanes = DIANA_DIGITAL_LANES;
    return s;
}

/* Parameters that all operations have. */
static bool check_requantization(htvm_soc_t *soc, const char *what)
{
    const uint32_t shift = diana_field(&soc->digital, DIANA_DIGITAL_SHAPE4, 8, 8);
    const uint32_t relu = diana_field(&soc->digital, DIANA_DIGITAL_SHAPE4, 16, 8);
    if (shift > DIANA_DIGITAL_MAX_SHIFT || relu > 1) {
        return diana_complain(soc, &soc->digital, DIANA_ERROR_PARAMETER,
                              "%s: shift %" PRIu32 " (0 to %" PRIu32 ") or relu %" PRIu32
                              " (0 or 1) is out of range",
                              what, shift, DIANA_DIGITAL_MAX_SHIFT, relu);
    }
    return true;
}

static bool check_shape(htvm_soc_t *soc, const diana_shape_t *s, const char *what)
{
    static const uint32_t filters[] = {DIANA_DIGITAL_FILTERS};
    static const uint32_t strides[] = {DIANA_DIGITAL_STRIDES};
    const size_t filter_count = sizeof filters / sizeof filters[0];
    diana_device_t *core = &soc->digital;
    if (!check_requantization(soc, what)) {
        return false;
    }
    if (s->k == 0 || s->c == 0 || s->iy == 0 || s->ix == 0 || s->oy == 0 || s->ox == 0) {
        return diana_complain(soc, core, DIANA_ERROR_PARAMETER,
                              "%s: k %" PRIu32 ", c %" PRIu32 ", in %" PRIu32 "x%" PRIu32
                              ", out %" PRIu32 "x%" PRIu32 ": no dimension may be 0",
                              what, s->k, s->c, s->iy, s->ix, s->oy, s->ox);
    }
    if (!diana_listed(s->fy, filters, filter_count) ||
        !diana_listed(s->fx, filters, filter_count)) {
        return diana_complain(soc, core, DIANA_ERROR_PARAMETER,
                              "%s: the core has no %" PRIu32 "x%" PRIu32 " filter", what, s->fy,
                              s->fx);
    }
    if (!diana_listed(s->stride, strides, sizeof strides / sizeof strides[0])) {
        return diana_complain(soc, core, DIANA_ERROR_PARAMETER,
                              "%s: the core has no stride %" PRIu32, what, s->stride);
    }
    return true;
}

/* Maps the packed weights, which must fit the weight memory. */
static const uint8_t *check_weights(htvm_soc_t *soc, const char *what, uint64_t bytes)
{
    diana_device_t *core = &soc->digital;
    const uint32_t address = diana_reg(core, DIANA_DIGITAL_WEIGHTS);
    if (bytes > DIANA_DIGITAL_WEIGHT_MEMORY) {
        diana_complain(soc, core, DIANA_ERROR_WEIGHTS,
                       "%s: weights at L2 0x%08" PRIX32 " (%" PRIu64
                       " B) exceed the weight memory of %" PRIu32 " B",
                       what, address, bytes, DIANA_DIGITAL_WEIGHT_MEMORY);
        return NULL;
    }
    return diana_check_weights(soc, core, what, address, bytes, DIANA_DIGITAL_GROUP);
}

static bool check_written(htvm_soc_t *soc, const char *what, uint32_t base, uint32_t from,
                          uint32_t to)
{
    return diana_check_written(soc, &soc->digital, what, base, from, to, DIANA_DIGITAL_GROUP);
}

static bool check_input_written(htvm_soc_t *soc, const diana_shape_t *s, const char *what,
                                uint32_t in)
{
    uint32_t top, bottom, left, right;
    if (!diana_touched(s->iy, s->oy, s->fy, s->stride, s->pad_top, &top, &bottom) ||
        !diana_touched(s->ix, s->ox, s->fx, s->stride, s->pad_left, &left, &right)) {
        return true; /* nothing but padding */
    }
    for (uint32_t c = 0; c < s->c; c++) {
        for (uint32_t y = top; y <= bottom; y++) {
            const uint32_t row = (c * s->iy + y) * s->in_pitch;
            if (!check_written(soc, what, in, row + left, row + right + 1u)) {
                return false;
            }
        }
    }
    return true;
}

/* Cycles of the array: per block of lanes, block of columns and output row. */
static uint64_t conv_cycles(const diana_shape_t *s)
{
    uint64_t rows = 0;
    for (uint32_t y = 0; y < s->oy; y++) {
        const uint64_t inside = diana_rows_inside(s, y);
        rows += s->c * inside * (s->fx + DIANA_DIGITAL_ROW_CYCLES) + DIANA_DIGITAL_OUTPUT_CYCLES;
    }
    return rows * diana_blocks(s->k, DIANA_DIGITAL_LANES) *
           diana_blocks(s->ox, DIANA_DIGITAL_COLUMNS);
}

/* Cycles of loading weights that fit the weight memory. */
static uint64_t load_cycles(uint64_t bytes)
{
    return diana_blocks((uint32_t)bytes, DIANA_DIGITAL_WEIGHT_BYTES_PER_CYCLE);
}

static void start_conv(htvm_soc_t *soc, uint64_t now, bool depthwise)
{
    const char *what = depthwise ? "depthwise" : "conv2d";
    diana_device_t *core = &soc->digital;
    diana_shape_t s = read_shape(core);
    const uint32_t in = diana_reg(core, DIANA_DIGITAL_IN);
    const uint32_t out = diana_reg(core, DIANA_DIGITAL_OUT);
    const uint32_t blocks = diana_blocks(s.k, DIANA_DIGITAL_LANES);
    const uint64_t map_bytes = (uint64_t)s.oy * s.out_pitch;
    const uint64_t in_bytes = (uint64_t)s.c * s.iy * s.in_pitch;
    const uint64_t out_bytes = map_bytes * blocks * DIANA_DIGITAL_LANES;
    const uint64_t weight_bytes =
        ((uint64_t)s.c * s.fy * s.fx * DIANA_DIGITAL_LANES + DIANA_DIGITAL_BIAS_BYTES) * blocks;

    if (!check_shape(soc, &s, what)) {
        return;
    }
    if (depthwise && (s.k != DIANA_DIGITAL_LANES || s.c != 1)) {
        diana_complain(soc, core, DIANA_ERROR_PARAMETER,
                       "%s: k %" PRIu32 ", c %" PRIu32 ": a trigger has %" PRIu32
                       " lanes and 1 channel",
                       what, s.k, s.c, DIANA_DIGITAL_LANES);
        return;
    }
    if (!diana_check_l1(soc, core, "input", in, in_bytes, DIANA_DMA_L1_ALIGN) ||
        !diana_check_l1(soc, core, "output", out, out_bytes, DIANA_DMA_L1_ALIGN) ||
        !diana_check_overlap(soc, core, what, in, in_bytes, out, out_bytes)) {
        return;
    }
    const diana_claim_t claims[] = {{in, in_bytes, false}, {out, out_bytes, true}};
    if (!diana_claim(soc, core, what, claims, 2, now)) {
        return;
    }
    const uint8_t *weights = check_weights(soc, what, weight_bytes);
    if (weights == NULL || !check_input_written(soc, &s, what, in)) {
        return;
    }
    if (depthwise) {
        s.lanes = 1;
    }
    if (!diana_array_conv(&s, soc->l1 + in, weights, soc->l1 + out)) {
        diana_complain(soc, core, DIANA_ERROR_OPERATION, "%s: no memory on the simulating machine",
                       what);
        return;
    }
    memset(soc->shadow + out, 1, out_bytes);
    if (depthwise) {
        /* The other lanes hold what follows lane 0 in L2 (other channels' weights): their maps are
         * destroyed, and must be written again before they are read. */
        memset(soc->l1 + out + map_bytes, VOID, out_bytes - map_bytes);
        memset(soc->shadow + out + map_bytes, 0, out_bytes - map_bytes);
    }
    const uint64_t array = conv_cycles(&s);
    const uint64_t load = load_cycles(weight_bytes);
    const uint64_t maps = depthwise ? 1 : s.k;
    const htvm_event_t event = {
        .what = what,
        .bytes = weight_bytes,
        .macs = maps * s.c * s.fy * s.fx * s.oy * s.ox,
        .array = array,
        .weights = load,
        .issued = now,
        .to = HTVM_L1_BASE + out,
        .written = depthwise ? map_bytes : out_bytes,
    };
    diana_start(soc, core, event, now,
                (depthwise ? DEVICE_CYCLES(DEPTHWISE) : DEVICE_CYCLES(CONV)) + load + array);
}

static void start_dense(htvm_soc_t *soc, uint64_t now)
{
    diana_device_t *core = &soc->digital;
    const uint32_t k = diana_field(core, DIANA_DIGITAL_SHAPE0, 0, 16);
    const uint32_t c = diana_field(core, DIANA_DIGITAL_SHAPE0, 16, 16);
    const uint32_t in = diana_reg(core, DIANA_DIGITAL_IN);
    const uint32_t out = diana_reg(core, DIANA_DIGITAL_OUT);
    const uint32_t in_bytes = diana_round_up(c, DIANA_DIGITAL_COLUMNS);
    const uint32_t weight_bytes =
        in_bytes * DIANA_DIGITAL_LANES + DIANA_DIGITAL_DENSE_BIAS_BYTES;

    if (!check_requantization(soc, "dense")) {
        return;
    }
    if (c == 0 || k == 0 || k > DIANA_DIGITAL_DENSE_MAX_K) {
        diana_complain(soc, core, DIANA_ERROR_PARAMETER,
                       "dense: k %" PRIu32 " (1 to %" PRIu32 ") or c %" PRIu32
                       " (at least 1) is out of range",
                       k, DIANA_DIGITAL_DENSE_MAX_K, c);
        return;
    }
    if (!diana_check_l1(soc, core, "input", in, in_bytes, DIANA_DMA_L1_ALIGN) ||
        !diana_check_l1(soc, core, "output", out, DIANA_DIGITAL_LANES, DIANA_DMA_L1_ALIGN) ||
        !diana_check_overlap(soc, core, "dense", in, in_bytes, out, DIANA_DIGITAL_LANES)) {
        return;
    }
    const diana_claim_t claims[] = {{in, in_bytes, false}, {out, DIANA_DIGITAL_LANES, true}};
    if (!diana_claim(soc, core, "dense", claims, 2, now)) {
        return;
    }
    const uint8_t *weights = check_weights(soc, "dense", weight_bytes);
    if (weights == NULL || !check_written(soc, "dense", in, 0, c)) {
        return;
    }
    const uint32_t shift = diana_field(core, DIANA_DIGITAL_SHAPE4, 8, 8);
    const bool relu = diana_field(core, DIANA_DIGITAL_SHAPE4, 16, 8) != 0;
    diana_array_dense(c, shift, relu, soc->l1 + in, weights, soc->l1 + out);
    memset(soc->shadow + out, 1, DIANA_DIGITAL_LANES);
    const uint64_t array = diana_blocks(c, DIANA_DIGITAL_COLUMNS);
    const uint64_t load = load_cycles(weight_bytes);
    const htvm_event_t event = {.what = "dense",
                                 .bytes = weight_bytes,
                                 .macs = (uint64_t)k * c,
                                 .array = array,
                                 .weights = load,
                                 .issued = now,
                                 .to = HTVM_L1_BASE + out,
                                 .written = DIANA_DIGITAL_LANES};
    diana_start(soc, core, event, now, DEVICE_CYCLES(DENSE) + load + array);
}

static void start_add(htvm_soc_t *soc, uint64_t now)
{
    diana_device_t *core = &soc->digital;
    const uint32_t elements = diana_reg(core, DIANA_DIGITAL_SHAPE0);
    const uint32_t a = diana_reg(core, DIANA_DIGITAL_IN);
    const uint32_t b = diana_reg(core, DIANA_DIGITAL_IN2);
    const uint32_t out = diana_reg(core, DIANA_DIGITAL_OUT);

    if (!check_requantization(soc, "add")) {
        return;
    }
    if (elements == 0) {
        diana_complain(soc, core, DIANA_ERROR_PARAMETER, "add: 0 elements");
        return;
    }
    if (!diana_check_l1(soc, core, "first operand", a, elements, DIANA_DMA_L1_ALIGN) ||
        !diana_check_l1(soc, core, "second operand", b, elements, DIANA_DMA_L1_ALIGN) ||
        !diana_check_l1(soc, core, "output", out, elements, DIANA_DMA_L1_ALIGN) ||
        !diana_check_overlap(soc, core, "add", a, elements, out, elements) ||
        !diana_check_overlap(soc, core, "add", b, elements, out, elements)) {
        return;
    }
    const diana_claim_t claims[] = {{a, elements, false}, {b, elements, false}, {out, elements, true}};
    if (!diana_claim(soc, core, "add", claims, 3, now) ||
        !check_written(soc, "add", a, 0, elements) || !check_written(soc, "add", b, 0, elements)) {
        return;
    }
    const uint32_t shift = diana_field(core, DIANA_DIGITAL_SHAPE4, 8, 8);
    const bool relu = diana_field(core, DIANA_DIGITAL_SHAPE4, 16, 8) != 0;
    diana_array_add(elements, shift, relu, soc->l1 + a, soc->l1 + b, soc->l1 + out);
    for (uint32_t i = 0; i < elements; i++) {
        soc->shadow[out + (i ^ (DIANA_DIGITAL_GROUP - 1u))] = 1;
    }
    const uint64_t array = diana_blocks(elements, DIANA_DIGITAL_COLUMNS);
    const htvm_event_t event = {.what = "add",
                                 .array = array,
                                 .issued = now,
                                 .to = HTVM_L1_BASE + out,
                                 .written = elements};
    diana_start(soc, core, event, now, DEVICE_CYCLES(ADD) + array);
}

void diana_digital_start(htvm_soc_t *soc, uint64_t now)
{
    const uint32_t operation = diana_reg(&soc->digital, DIANA_DIGITAL_START);
    switch (operation) {
    case DIANA_DIGITAL_OP_CONV:
        start_conv(soc, now, false);
        break;
    case DIANA_DIGITAL_OP_DEPTHWISE:
        start_conv(soc, now, true);
        break;
    case DIANA_DIGITAL_OP_DENSE:
        start_dense(soc, now);
        break;
    case DIANA_DIGITAL_OP_ADD:
        start_add(soc, now);
        break;
    default:
        diana_complain(soc, &soc->digital, DIANA_ERROR_OPERATION,
                       "unknown operation %" PRIu32 " started at register 0x%08" PRIX32 " (4 B)",
                       operation, DIANA_DIGITAL_REGISTERS + DIANA_DIGITAL_START);
        break;
    }
}
