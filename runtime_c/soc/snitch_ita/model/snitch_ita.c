/* ITA: checks a task and says when it will be done; computes it then. */
#include <inttypes.h>

#include "snitch_model.h"

enum { OUT, LEFT, RIGHT, BIAS };

static const char *const NAMES[] = {"", "linear", "qk", "av"};

static uint32_t field(const snitch_device_t *ita, uint32_t offset, uint32_t bit, uint32_t bits)
{
    return snitch_reg(ita, offset) >> bit & ((1u << bits) - 1u);
}

static int32_t signed_field(const snitch_device_t *ita, uint32_t offset, uint32_t bit,
                            uint32_t bits)
{
    const int32_t value = (int32_t)field(ita, offset, bit, bits);
    return value < 1 << (bits - 1u) ? value : value - (1 << bits);
}

static snitch_requant_t read_requant(const snitch_device_t *ita, uint32_t offset)
{
    return (snitch_requant_t){
        .mult = field(ita, offset, 0, 8),
        .shift = field(ita, offset, 8, 8),
        .add = signed_field(ita, offset, 16, 8),
    };
}

static snitch_product_t read_product(const snitch_device_t *ita)
{
    const uint32_t flags = field(ita, SNITCH_ITA_MODE, 24, 8);
    return (snitch_product_t){
        .rows = field(ita, SNITCH_ITA_SIZE0, 0, 16),
        .cols = field(ita, SNITCH_ITA_SIZE0, 16, 16),
        .inner = field(ita, SNITCH_ITA_SIZE1, 0, 16),
        .length = field(ita, SNITCH_ITA_SIZE1, 16, 16),
        .operation = field(ita, SNITCH_ITA_MODE, 0, 8),
        .bias_kind = field(ita, SNITCH_ITA_MODE, 8, 8),
        .activation = field(ita, SNITCH_ITA_MODE, 16, 8),
        .shift = (flags & SNITCH_ITA_FLAG_UNIT_SHIFT) != 0 ? 0 : SNITCH_ITA_ITA_SOFTMAX_SHIFT,
        .requant = read_requant(ita, SNITCH_ITA_REQUANT0),
        .act_requant = read_requant(ita, SNITCH_ITA_REQUANT1),
        .gelu_b = signed_field(ita, SNITCH_ITA_GELU, 0, 16),
        .gelu_c = signed_field(ita, SNITCH_ITA_GELU, 16, 16),
    };
}

static bool check_mode(htvm_soc_t *soc, const snitch_product_t *p)
{
    const uint32_t mode = snitch_reg(&soc->ita, SNITCH_ITA_MODE);
    if (p->operation < SNITCH_ITA_OP_LINEAR || p->operation > SNITCH_ITA_OP_AV) {
        return snitch_complain(soc, &soc->ita, SNITCH_ERROR_OPERATION,
                               "mode 0x%08" PRIX32 ": there is no operation %" PRIu32, mode,
                               p->operation);
    }
    const char *what = NAMES[p->operation];
    if (p->bias_kind > SNITCH_ITA_BIAS_ROWS || p->activation > SNITCH_ITA_ACT_RELU ||
        field(&soc->ita, SNITCH_ITA_MODE, 24, 8) > SNITCH_ITA_FLAG_UNIT_SHIFT) {
        return snitch_complain(soc, &soc->ita, SNITCH_ERROR_PARAMETER,
                               "%s: mode 0x%08" PRIX32
                               " has a bias, activation or flag that does not exist",
                               what, mode);
    }
    if (p->operation != SNITCH_ITA_OP_LINEAR && p->activation != SNITCH_ITA_ACT_IDENTITY) {
        return snitch_complain(soc, &soc->ita, SNITCH_ERROR_PARAMETER,
                               "%s: activation %" PRIu32 " is for linear only", what,
                               p->activation);
    }
    return true;
}

static bool check_requants(htvm_soc_t *soc, const snitch_product_t *p)
{
    const char *what = NAMES[p->operation];
    const bool active = p->activation != SNITCH_ITA_ACT_IDENTITY;
    if (p->requant.shift > SNITCH_ITA_ITA_MAX_SHIFT ||
        (active && p->act_requant.shift > SNITCH_ITA_ITA_MAX_SHIFT)) {
        return snitch_complain(soc, &soc->ita, SNITCH_ERROR_PARAMETER,
                               "%s: shift %" PRIu32 ", or %" PRIu32
                               " of the activation, is out of range (0 to %" PRIu32 ")",
                               what, p->requant.shift, p->act_requant.shift,
                               SNITCH_ITA_ITA_MAX_SHIFT);
    }
    if (p->activation == SNITCH_ITA_ACT_GELU && p->gelu_b > 0) {
        return snitch_complain(soc, &soc->ita, SNITCH_ERROR_PARAMETER,
                               "%s: b of GELU is %" PRId32 ", which must not be positive", what,
                               p->gelu_b);
    }
    return true;
}

static bool is_size(uint32_t value)
{
    return value != 0 && value % SNITCH_ITA_ITA_TILE == 0 && value <= SNITCH_ITA_ITA_MAX_DIM;
}

static bool check_sizes(htvm_soc_t *soc, const snitch_product_t *p)
{
    const char *what = NAMES[p->operation];
    if (!is_size(p->rows) || !is_size(p->cols) || !is_size(p->inner)) {
        return snitch_complain(soc, &soc->ita, SNITCH_ERROR_PARAMETER,
                               "%s: %" PRIu32 " rows, %" PRIu32 " columns, inner %" PRIu32
                               ": sizes are multiples of %" PRIu32 " up to %" PRIu32,
                               what, p->rows, p->cols, p->inner, SNITCH_ITA_ITA_TILE,
                               SNITCH_ITA_ITA_MAX_DIM);
    }
    if (p->operation != SNITCH_ITA_OP_LINEAR && p->rows != SNITCH_ITA_ITA_TILE) {
        return snitch_complain(soc, &soc->ita, SNITCH_ERROR_PARAMETER,
                               "%s: %" PRIu32 " rows; there are statistics of %" PRIu32, what,
                               p->rows, SNITCH_ITA_ITA_TILE);
    }
    if (p->operation == SNITCH_ITA_OP_QK && (p->length == 0 || p->length > p->cols)) {
        return snitch_complain(soc, &soc->ita, SNITCH_ERROR_PARAMETER,
                               "%s: length %" PRIu32 " is not between 1 and %" PRIu32 " columns",
                               what, p->length, p->cols);
    }
    if (p->operation == SNITCH_ITA_OP_AV && p->inner != soc->scored_cols) {
        return snitch_complain(soc, &soc->ita, SNITCH_ERROR_SEQUENCE,
                               "%s: inner %" PRIu32 ", but the last qk had %" PRIu32
                               " columns (0: there is none)",
                               what, p->inner, soc->scored_cols);
    }
    return true;
}

static snitch_area_t matrix(const snitch_device_t *ita, const char *role, uint32_t offset,
                            uint32_t rows, uint32_t bytes)
{
    return (snitch_area_t){
        .role = role,
        .first = snitch_reg(ita, offset),
        .bytes = bytes,
        .rows = rows,
        .stride = snitch_reg(ita, offset + 4u),
    };
}

static bool check_place(htvm_soc_t *soc, snitch_area_t *area)
{
    if (area->first % SNITCH_ITA_ITA_ALIGN != 0 || area->stride % SNITCH_ITA_ITA_ALIGN != 0) {
        return snitch_complain(soc, &soc->ita, SNITCH_ERROR_ALIGNMENT,
                               "%s at 0x%08" PRIX32 ", stride %" PRIu32
                               " (%" PRIu32 " x %" PRIu32 " B) is not aligned to %" PRIu32 " B",
                               area->role, area->first, area->stride, area->rows, area->bytes,
                               SNITCH_ITA_ITA_ALIGN);
    }
    if (!snitch_begins_in_l1(area)) {
        return snitch_complain(soc, &soc->ita, SNITCH_ERROR_RANGE,
                               "%s at 0x%08" PRIX32 " (%" PRIu32 " x %" PRIu32
                               " B) is not in L1",
                               area->role, area->first, area->rows, area->bytes);
    }
    return snitch_find_area(soc, &soc->ita, area);
}

static bool find_places(htvm_soc_t *soc, snitch_order_t *order)
{
    const snitch_device_t *ita = &soc->ita;
    snitch_product_t *p = &order->product;
    snitch_area_t *areas = order->areas;
    areas[OUT] = matrix(ita, "result", SNITCH_ITA_OUT, p->rows, p->cols);
    areas[OUT].write = true;
    areas[LEFT] = matrix(ita, "left operand", SNITCH_ITA_LEFT, p->rows, p->inner);
    areas[RIGHT] = matrix(ita, "right operand", SNITCH_ITA_RIGHT, p->cols, p->inner);
    order->area_count = BIAS;
    if (p->bias_kind != SNITCH_ITA_BIAS_NONE) {
        const uint32_t biases = p->bias_kind == SNITCH_ITA_BIAS_ROWS ? p->rows : p->cols;
        areas[BIAS] = (snitch_area_t){
            .role = "bias",
            .first = snitch_reg(ita, SNITCH_ITA_BIAS),
            .bytes = biases * SNITCH_ITA_ITA_BIAS_BYTES,
            .rows = 1,
        };
        order->area_count++;
    }
    if (areas[OUT].stride < areas[OUT].bytes) {
        return snitch_complain(soc, &soc->ita, SNITCH_ERROR_PARAMETER,
                               "result at 0x%08" PRIX32 ": rows of %" PRIu32
                               " B every %" PRIu32 " B overwrite each other",
                               areas[OUT].first, areas[OUT].bytes, areas[OUT].stride);
    }
    for (size_t i = 0; i < order->area_count; i++) {
        if (!check_place(soc, &areas[i])) {
            return false;
        }
        if (i != OUT && snitch_meet(&areas[i], &areas[OUT])) {
            return snitch_complain(soc, &soc->ita, SNITCH_ERROR_OVERLAP,
                                   "result at 0x%08" PRIX32 " (%" PRIu32 " x %" PRIu32
                                   " B) overlaps %s at 0x%08" PRIX32,
                                   areas[OUT].first, areas[OUT].rows, areas[OUT].bytes,
                                   areas[i].role, areas[i].first);
        }
    }
    p->out = (snitch_matrix_t){areas[OUT].memory, areas[OUT].stride};
    p->left = (snitch_matrix_t){areas[LEFT].memory, areas[LEFT].stride};
    p->right = (snitch_matrix_t){areas[RIGHT].memory, areas[RIGHT].stride};
    p->bias = areas[BIAS].memory;
    return true;
}

/* Computes when a task begins, and how long it then waits for its first weights. */
typedef struct {
    uint64_t start, fill;
} begin_t;

static begin_t begin(const htvm_soc_t *soc, const snitch_order_t *order)
{
    const snitch_device_t *ita = &soc->ita;
    const uint64_t load = snitch_blocks(SNITCH_ITA_ITA_TILE * SNITCH_ITA_ITA_TILE,
                                        SNITCH_ITA_ITA_WEIGHT_BYTES_PER_CYCLE);
    if (ita->queued == 0) {
        return (begin_t){soc->now, load};
    }
    const snitch_order_t *last = &ita->queue[ita->queued - 1];
    const snitch_area_t *result = &last->areas[OUT];
    bool reads = snitch_meet(&order->areas[RIGHT], result);
    begin_t b = {.start = last->free_at, .fill = reads ? load : 0};
    for (size_t i = LEFT; i < order->area_count; i++) {
        reads = reads || snitch_meet(&order->areas[i], result);
    }
    b.start = reads ? last->end : b.start;
    if (b.start < soc->now) {
        b.start = soc->now; /* only the drain of the task before is left */
    }
    const uint64_t ahead = b.start - soc->now;
    if (ahead < load && b.fill < load - ahead) {
        b.fill = load - ahead; /* programmed too late to hide it all */
    }
    return b;
}

/* Cycles that attention adds to those of the array: while the sums of a QK's last columns wait for
 * the dividers, and when the first AV follows. */
static uint64_t softmax_cycles(const htvm_soc_t *soc, const snitch_product_t *p)
{
    if (p->operation == SNITCH_ITA_OP_QK) {
        return snitch_blocks(SNITCH_ITA_ITA_TILE * SNITCH_ITA_ITA_DIVIDE_CYCLES,
                             SNITCH_ITA_ITA_DIVIDERS) -
               SNITCH_ITA_ITA_TILE;
    }
    const bool turn = p->operation == SNITCH_ITA_OP_AV && !soc->turned;
    return turn ? SNITCH_ITA_ITA_ATTENTION_CYCLES : 0;
}

static void note_attention(htvm_soc_t *soc, const snitch_product_t *p)
{
    if (p->operation == SNITCH_ITA_OP_QK) {
        soc->scored_cols = p->cols;
        soc->turned = false;
    } else if (p->operation == SNITCH_ITA_OP_AV) {
        soc->turned = true;
    }
}

void snitch_ita_take(htvm_soc_t *soc)
{
    snitch_device_t *ita = &soc->ita;
    snitch_order_t order = {.product = read_product(ita)};
    const snitch_product_t *p = &order.product;
    if (!check_mode(soc, p) || !check_requants(soc, p) || !check_sizes(soc, p) ||
        !find_places(soc, &order)) {
        return;
    }
    if (ita->queued == ita->depth) {
        snitch_complain(soc, ita, SNITCH_ERROR_BUSY,
                        "%s to 0x%08" PRIX32 ": all %zu contexts are taken for another %" PRIu64
                        " cycles",
                        NAMES[p->operation], order.areas[OUT].first, ita->depth,
                        ita->queue[0].end - soc->now);
        return;
    }
    if (!snitch_check_races(soc, ita, &order, &soc->dma)) {
        return;
    }
    const uint64_t macs = (uint64_t)p->rows * p->cols * p->inner;
    const uint64_t cube =
        (uint64_t)SNITCH_ITA_ITA_TILE * SNITCH_ITA_ITA_TILE * SNITCH_ITA_ITA_TILE;
    const uint64_t tiles = macs / cube;
    const begin_t b = begin(soc, &order);
    order.start = b.start;
    order.free_at = b.start + b.fill + softmax_cycles(soc, p) +
                    tiles * (SNITCH_ITA_ITA_TILE_CYCLES + SNITCH_ITA_ITA_TILE_OVERHEAD_CYCLES);
    order.end = order.free_at + SNITCH_ITA_ITA_DRAIN_CYCLES;
    if (!snitch_queue(soc, ita, &order)) {
        return;
    }
    note_attention(soc, p);
    const htvm_event_t event = {
        .unit = ita->unit,
        .what = NAMES[p->operation],
        .start = b.start,
        .end = order.end,
        .issued = soc->now,
        .bytes = (uint64_t)p->cols * p->inner,
        .macs = macs,
        .array = tiles * SNITCH_ITA_ITA_TILE_CYCLES,
        .weights = b.fill,
        .from = order.areas[LEFT].first,
        .to = order.areas[OUT].first,
        .written = snitch_span(&order.areas[OUT]),
        .to_rows = snitch_rows(&order.areas[OUT]),
    };
    htvm_log_event(&soc->log, event);
}

bool snitch_ita_complete(htvm_soc_t *soc)
{
    const snitch_order_t *order = &soc->ita.queue[0];
    uint32_t row, column;
    if (!snitch_check_unchanged(soc, &soc->ita, order)) {
        return false;
    }
    if (!snitch_compute(&order->product, &soc->statistics, &row, &column)) {
        return snitch_complain(soc, &soc->ita, SNITCH_ERROR_SEQUENCE,
                               "av: row %" PRIu32 ", column %" PRIu32
                               " of the left operand at 0x%08" PRIX32
                               " is above the maximum of its row: not what the last qk wrote",
                               row, column, order->areas[LEFT].first);
    }
    return true;
}
