/* The analog core: checks a pass, computes it at once, and is busy for as long as the cycle model
 * says. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "diana_analog_regs.h"
#include "diana_array.h"
#include "diana_crossbar.h"
#include "diana_model.h"

/* The published constant includes the host's driver code, which the simulator runs as well: the
 * device takes the difference. */
_Static_assert(DIANA_ANALOG_TRIGGER_CYCLES >= DIANA_ANALOG_DRIVER_CYCLES, "driver too slow");

#define WHAT "analog conv2d"
#define INPUT_HIGH ((1 << (DIANA_ANALOG_ACTIVATION_BITS - 1u)) - 1)
#define PARAMETER_BYTES 4u /* mul and add of a channel */

static diana_pass_t read_pass(const diana_device_t *core)
{
    const uint32_t mode = diana_reg(core, DIANA_ANALOG_MODE);
    const uint32_t clip = diana_field(core, DIANA_ANALOG_SHAPE4, 24, 8);
    const int32_t high =
        (clip & DIANA_ANALOG_CLIP_SHORT) != 0 ? INPUT_HIGH : 127;
    diana_pass_t p = {
        .k = diana_field(core, DIANA_ANALOG_SHAPE0, 0, 16),
        .c = diana_field(core, DIANA_ANALOG_SHAPE0, 16, 16),
        .iy = diana_field(core, DIANA_ANALOG_SHAPE1, 0, 16),
        .ix = diana_field(core, DIANA_ANALOG_SHAPE1, 16, 16),
        .oy = diana_field(core, DIANA_ANALOG_SHAPE2, 0, 16),
        .ox = diana_field(core, DIANA_ANALOG_SHAPE2, 16, 16),
        .fy = diana_field(core, DIANA_ANALOG_SHAPE3, 0, 8),
        .fx = diana_field(core, DIANA_ANALOG_SHAPE3, 8, 8),
        .stride = diana_field(core, DIANA_ANALOG_SHAPE3, 16, 8),
        .pad_top = diana_signed_field(core, DIANA_ANALOG_SHAPE3, 24),
        .pad_left = diana_signed_field(core, DIANA_ANALOG_SHAPE4, 0),
        .gain = diana_field(core, DIANA_ANALOG_SHAPE4, 8, 8),
        .shift = diana_field(core, DIANA_ANALOG_SHAPE4, 16, 8),
        .low = (clip & DIANA_ANALOG_CLIP_RELU) != 0 ? 0 : -high - 1,
        .high = high,
        .unroll = mode & DIANA_ANALOG_COLUMNS_MASK,
        .first = (mode & DIANA_ANALOG_FIRST) != 0,
        .last = (mode & DIANA_ANALOG_LAST) != 0,
    };
    p.in_pitch = diana_round_up(p.ix, DIANA_ANALOG_ROW_PITCH);
    p.out_pitch = diana_round_up(p.ox, DIANA_ANALOG_ROW_PITCH);
    p.vector = (mode & DIANA_ANALOG_VECTOR) != 0;
    p.sliced = (mode & DIANA_ANALOG_SLICED) != 0;
    p.in_map = p.vector ? 1u : p.iy * p.in_pitch;
    p.out_map = p.vector ? 1u : p.oy * p.out_pitch;
    return p;
}

static bool check_requantization(htvm_soc_t *soc, const diana_pass_t *p)
{
    const uint32_t known_clip = DIANA_ANALOG_CLIP_RELU | DIANA_ANALOG_CLIP_SHORT;
    const uint32_t clip = diana_field(&soc->analog, DIANA_ANALOG_SHAPE4, 24, 8);
    if (p->gain > DIANA_ANALOG_MAX_GAIN || p->shift > DIANA_ANALOG_MAX_SHIFT ||
        clip > known_clip) {
        return diana_complain(soc, &soc->analog, DIANA_ERROR_PARAMETER,
                              WHAT ": gain %" PRIu32 " (0 to %" PRIu32 "), shift %" PRIu32
                                   " (0 to %" PRIu32 ") or clip %" PRIu32
                                   " (0 to 3) is out of range",
                              p->gain, DIANA_ANALOG_MAX_GAIN, p->shift, DIANA_ANALOG_MAX_SHIFT,
                              clip);
    }
    return true;
}

static bool check_sizes(htvm_soc_t *soc, const diana_pass_t *p)
{
    static const uint32_t strides[] = {DIANA_ANALOG_STRIDES};
    static const uint32_t unrolls[] = {DIANA_ANALOG_UNROLLS};
    const uint32_t mode = diana_reg(&soc->analog, DIANA_ANALOG_MODE);
    const uint32_t known =
        DIANA_ANALOG_COLUMNS_MASK | DIANA_ANALOG_FIRST | DIANA_ANALOG_LAST |
                           DIANA_ANALOG_VECTOR | DIANA_ANALOG_SLICED;
    if (p->k == 0 || p->c == 0 || p->iy == 0 || p->ix == 0 || p->oy == 0 || p->ox == 0) {
        return diana_complain(soc, &soc->analog, DIANA_ERROR_PARAMETER,
                              WHAT ": k %" PRIu32 ", c %" PRIu32 ", in %" PRIu32 "x%" PRIu32
                                   ", out %" PRIu32 "x%" PRIu32 ": no dimension may be 0",
                              p->k, p->c, p->iy, p->ix, p->oy, p->ox);
    }
    if (p->fy == 0 || p->fx == 0 || p->fy > DIANA_ANALOG_MAX_FILTER ||
        p->fx > DIANA_ANALOG_MAX_FILTER) {
        return diana_complain(soc, &soc->analog, DIANA_ERROR_PARAMETER,
                              WHAT ": the core has no %" PRIu32 "x%" PRIu32 " filter", p->fy,
                              p->fx);
    }
    if (!diana_listed(p->stride, strides, sizeof strides / sizeof strides[0])) {
        return diana_complain(soc, &soc->analog, DIANA_ERROR_PARAMETER,
                              WHAT ": the core has no stride %" PRIu32, p->stride);
    }
    const bool point = p->iy == 1 && p->ix == 1 && p->oy == 1 && p->ox == 1 && p->fy == 1 &&
                       p->fx == 1;
    if (p->vector && !point) {
        return diana_complain(soc, &soc->analog, DIANA_ERROR_PARAMETER,
                              WHAT ": a vector has sizes of its own: in %" PRIu32 "x%" PRIu32
                                   ", out %" PRIu32 "x%" PRIu32,
                              p->iy, p->ix, p->oy, p->ox);
    }
    if ((mode & ~known) != 0 ||
        !diana_listed(p->unroll, unrolls, sizeof unrolls / sizeof unrolls[0]) ||
        (p->unroll > 1 && p->stride > 1)) {
        return diana_complain(soc, &soc->analog, DIANA_ERROR_PARAMETER,
                              WHAT ": mode 0x%08" PRIX32 " with stride %" PRIu32 " is none", mode,
                              p->stride);
    }
    return true;
}

/* Finds the part of the array that the pass needs; complains if the array is too small. */
static bool check_array(htvm_soc_t *soc, diana_pass_t *p)
{
    const uint64_t window = (uint64_t)p->fy * (p->fx + p->unroll - 1u);
    const uint64_t rows = p->c * window;
    const uint32_t slice = diana_reg(&soc->analog, DIANA_ANALOG_SLICE);
    const uint64_t columns = p->sliced ? slice >> 16 : (uint64_t)p->k * p->unroll;
    /* With several columns at a time, channels take part in blocks. */
    const bool few = p->unroll > 1 && p->c < DIANA_ANALOG_UNROLL_CHANNELS;
    const uint64_t taken = few ? DIANA_ANALOG_UNROLL_CHANNELS * window : rows;
    if (taken > DIANA_ANALOG_ROWS || columns > DIANA_ANALOG_COLUMNS) {
        return diana_complain(soc, &soc->analog, DIANA_ERROR_WEIGHTS,
                              WHAT ": %" PRIu64 " rows and %" PRIu64
                                   " columns exceed the array of %" PRIu32 " by %" PRIu32,
                              taken, columns, DIANA_ANALOG_ROWS, DIANA_ANALOG_COLUMNS);
    }
    p->rows = (uint32_t)rows;
    p->columns = (uint32_t)columns;
    p->first_column = p->sliced ? slice & 0xFFFFu : 0;
    if (p->sliced && (!p->vector || p->unroll != 1 || p->first_column + p->k > p->columns)) {
        return diana_complain(soc, &soc->analog, DIANA_ERROR_PARAMETER,
                              WHAT ": %" PRIu32 " outputs from column %" PRIu32
                                   " on are no slice of a vector's %" PRIu32,
                              p->k, p->first_column, p->columns);
    }
    return true;
}

/* The input must have been written, and have no more bits than the array's converters. */
static bool check_input(htvm_soc_t *soc, const diana_pass_t *p, uint32_t in)
{
    uint32_t top, bottom, left, right;
    if (!diana_touched(p->iy, p->oy, p->fy, p->stride, p->pad_top, &top, &bottom) ||
        !diana_touched(p->ix, p->ox, p->fx, p->stride, p->pad_left, &left, &right)) {
        return true; /* nothing but padding */
    }
    for (uint32_t c = 0; c < p->c; c++) {
        for (uint32_t y = top; y <= bottom; y++) {
            const uint32_t row = c * p->in_map + y * p->in_pitch;
            if (!diana_check_written(soc, &soc->analog, WHAT, in, row + left, row + right + 1u,
                                     DIANA_ANALOG_GROUP)) {
                return false;
            }
            for (uint32_t i = row + left; i <= row + right; i++) {
                const uint32_t at = in + (i ^ (DIANA_ANALOG_GROUP - 1u));
                const int32_t value = (int8_t)soc->l1[at];
                if (value < -INPUT_HIGH - 1 || value > INPUT_HIGH) {
                    return diana_complain(soc, &soc->analog, DIANA_ERROR_PARAMETER,
                                          WHAT ": input at L1 0x%08" PRIX32 " is %" PRId32
                                               ", which has more than %" PRIu32 " bits",
                                          HTVM_L1_BASE + at, value, DIANA_ANALOG_ACTIVATION_BITS);
                }
            }
        }
    }
    return true;
}

/* The addresses and sizes of a pass' data. */
typedef struct {
    uint32_t in, out, partial;
    uint64_t in_bytes, out_bytes, partial_bytes;
    uint32_t image_bytes, weight_bytes;
} places_t;

/* Returns the bytes of this number of channels; a vector includes its padding. */
static uint64_t stored_bytes(const diana_pass_t *p, uint32_t channels, uint32_t map)
{
    return p->vector ? diana_round_up(channels, DIANA_ANALOG_ROW_PITCH) : (uint64_t)channels * map;
}

static places_t find_places(const diana_device_t *core, const diana_pass_t *p)
{
    const uint64_t out_bytes = stored_bytes(p, p->k, p->out_map);
    const uint32_t image_bytes = diana_crossbar_bytes(p->rows, p->columns);
    return (places_t){
        .in = diana_reg(core, DIANA_ANALOG_IN),
        .out = diana_reg(core, DIANA_ANALOG_OUT),
        .partial = diana_reg(core, DIANA_ANALOG_PARTIAL),
        .in_bytes = stored_bytes(p, p->c, p->in_map),
        .out_bytes = p->last ? out_bytes : 0,
        .partial_bytes = p->first && p->last ? 0 : 2u * out_bytes,
        .image_bytes = image_bytes,
        .weight_bytes =
            image_bytes + (p->last ? (p->sliced ? p->columns : p->k) * PARAMETER_BYTES : 0),
    };
}

static bool check_places(htvm_soc_t *soc, const places_t *at)
{
    diana_device_t *core = &soc->analog;
    const uint32_t align = DIANA_DMA_L1_ALIGN;
    if (!diana_check_l1(soc, core, "input", at->in, at->in_bytes, align)) {
        return false;
    }
    if (at->out_bytes != 0 &&
        (!diana_check_l1(soc, core, "output", at->out, at->out_bytes, align) ||
         !diana_check_overlap(soc, core, WHAT, at->in, at->in_bytes, at->out, at->out_bytes))) {
        return false;
    }
    if (at->partial_bytes == 0) {
        return true;
    }
    return diana_check_l1(soc, core, "partial sums", at->partial, at->partial_bytes, align) &&
           diana_check_overlap(soc, core, WHAT, at->in, at->in_bytes, at->partial,
                               at->partial_bytes) &&
           diana_check_overlap(soc, core, WHAT, at->partial, at->partial_bytes, at->out,
                               at->out_bytes);
}

/* Returns the weights of an image, which the caller frees; NULL after a complaint. */
static int8_t *load_weights(htvm_soc_t *soc, const diana_pass_t *p, const uint8_t *image)
{
    uint32_t row, column;
    int8_t *weights = malloc((size_t)p->rows * p->columns);
    if (weights == NULL) {
        diana_complain(soc, &soc->analog, DIANA_ERROR_OPERATION,
                       WHAT ": no memory on the simulating machine");
    } else if (!diana_crossbar_decode(image, p->rows, p->columns, weights, &row, &column)) {
        diana_complain(soc, &soc->analog, DIANA_ERROR_WEIGHTS,
                       WHAT ": cell in row %" PRIu32 ", column %" PRIu32
                            " of the image at L2 0x%08" PRIX32 " is positive and negative",
                       row, column, diana_reg(&soc->analog, DIANA_ANALOG_WEIGHTS));
        free(weights);
        weights = NULL;
    }
    return weights;
}

/* The rows of partial sums, and the number of sums in each; columns behind ox have none. */
typedef struct {
    uint32_t rows, used, pitch;
} sums_t;

static sums_t sums_of(const diana_pass_t *p)
{
    return p->vector ? (sums_t){1, p->k, p->k} : (sums_t){p->k * p->oy, p->ox, p->out_pitch};
}

static void mark_written(htvm_soc_t *soc, const diana_pass_t *p, const places_t *at)
{
    if (p->last) {
        memset(soc->shadow + at->out, 1, at->out_bytes);
        return;
    }
    const sums_t sums = sums_of(p);
    for (uint32_t row = 0; row < sums.rows; row++) {
        memset(soc->shadow + at->partial + 2u * row * sums.pitch, 1, 2u * sums.used);
    }
}

static bool check_sums(htvm_soc_t *soc, const diana_pass_t *p, const places_t *at)
{
    const sums_t sums = sums_of(p);
    for (uint32_t row = 0; row < sums.rows && !p->first; row++) {
        const uint32_t from = 2u * row * sums.pitch;
        if (!diana_check_written(soc, &soc->analog, WHAT, at->partial, from, from + 2u * sums.used,
                                 1u)) {
            return false;
        }
    }
    return true;
}

void diana_analog_start(htvm_soc_t *soc, uint64_t now)
{
    diana_device_t *core = &soc->analog;
    diana_pass_t p = read_pass(core);
    if (!check_requantization(soc, &p) || !check_sizes(soc, &p) || !check_array(soc, &p)) {
        return;
    }
    const places_t at = find_places(core, &p);
    if (!check_places(soc, &at)) {
        return;
    }
    const bool sums = at.partial_bytes != 0;
    const diana_claim_t claims[] = {{at.in, at.in_bytes, false},
                                    {sums ? at.partial : at.out,
                                     sums ? at.partial_bytes : at.out_bytes, true},
                                    {at.out, at.out_bytes, true}};
    if (!diana_claim(soc, core, WHAT, claims, 3, now)) {
        return;
    }
    const uint8_t *image =
        diana_check_weights(soc, core, WHAT, diana_reg(core, DIANA_ANALOG_WEIGHTS),
                            at.weight_bytes, DIANA_ANALOG_GROUP);
    if (image == NULL || !check_input(soc, &p, at.in) || !check_sums(soc, &p, &at)) {
        return;
    }
    int8_t *weights = load_weights(soc, &p, image);
    if (weights == NULL) {
        return;
    }
    const bool done =
        diana_crossbar_conv(&p, soc->l1 + at.in, weights, image + at.image_bytes,
                            soc->l1 + at.partial, soc->l1 + at.out, &soc->noise);
    free(weights);
    if (!done) {
        diana_complain(soc, core, DIANA_ERROR_OPERATION,
                       WHAT ": no memory on the simulating machine");
        return;
    }
    mark_written(soc, &p, &at);
    const uint64_t load = (uint64_t)p.rows * DIANA_ANALOG_ROW_CYCLES;
    const uint64_t array =
        (uint64_t)p.oy * diana_blocks(p.ox, p.unroll) * DIANA_ANALOG_POSITION_CYCLES;
    const htvm_event_t event = {
        .what = "conv2d",
        .bytes = at.weight_bytes,
        .macs = (uint64_t)p.k * p.c * p.fy * p.fx * p.oy * p.ox,
        .array = array,
        .weights = load,
        .issued = now,
        .to = HTVM_L1_BASE + at.out,
        .written = p.last ? at.out_bytes : 0,
    };
    diana_start(soc, core, event, now,
                DIANA_ANALOG_TRIGGER_CYCLES - DIANA_ANALOG_DRIVER_CYCLES + load + array);
}

void diana_analog_set(htvm_soc_t *soc, uint32_t offset, uint32_t value)
{
    if (offset == DIANA_ANALOG_NOISE) {
        soc->noise.deviation = value;
    } else {
        soc->noise.state = value;
    }
}
