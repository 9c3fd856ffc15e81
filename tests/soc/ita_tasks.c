/* Firmware that keeps ITA busy: the two microbenchmarks, with drivers, transfers and real data.
 *
 * Marks: case << 1, plus 1 after it. */
#include <stdbool.h>

#include "htvm_hal.h"
#include "cluster.h"
#include "cluster_dma.h"
#include "snitch_ita_driver.h"

#define L2 __attribute__((section(".noinit"), aligned(64)))
#define AT(offset) (HTVM_L1_BASE + (offset))

/* A product of 512 x 512 x 512, `right` transposed, in 64 tasks of 64 x 64 x 512.  The order is a
 * serpentine, so that each task replaces one operand of the one before, and three places for
 * operands are enough to load the next one meanwhile. */
enum { SIZE = 512, PART = 64, PARTS = SIZE / PART, OPERAND = PART * SIZE, RESULT = PART * PART };

L2 int8_t left[SIZE * SIZE], right[SIZE * SIZE], product[SIZE * SIZE];

static uint32_t part_row(uint32_t n) { return n / PARTS; }

static uint32_t part_col(uint32_t n)
{
    return part_row(n) % 2 == 0 ? n % PARTS : PARTS - 1u - n % PARTS;
}

static uint32_t result_at(uint32_t n) { return 3u * OPERAND + n % 2u * RESULT; }

static uint32_t load(uint32_t place, const int8_t *from)
{
    const cluster_dma_t order = {
        .to = cluster_l1(place * OPERAND), .from = from, .bytes = OPERAND, .rows = 1};
    return cluster_dma_start(&order);
}

static uint32_t store(uint32_t n)
{
    const cluster_dma_t order = {
        .to = product + part_row(n) * OPERAND + part_col(n) * PART,
        .from = cluster_l1(result_at(n)),
        .bytes = PART,
        .rows = PART,
        .to_stride = SIZE,
        .from_stride = PART,
    };
    return cluster_dma_start(&order);
}

static uint32_t multiply(uint32_t n, uint32_t left_place, uint32_t right_place)
{
    const snitch_ita_task_t task = {
        .rows = PART, .cols = PART, .inner = SIZE,
        .operation = SNITCH_ITA_OP_LINEAR,
        .requant = {.mult = 181, .shift = 17, .add = 5},
        .left = AT(left_place * OPERAND), .left_stride = SIZE,
        .right = AT(right_place * OPERAND), .right_stride = SIZE,
        .out = AT(result_at(n)), .out_stride = PART,
    };
    return snitch_ita_program(&task);
}

static int32_t run_product(void)
{
    enum { TASKS = PARTS * PARTS };
    uint32_t left_place = 0;
    uint32_t right_place = 1;
    uint32_t spare = 2;
    int32_t error = 0;
    load(left_place, left);
    cluster_dma_wait(load(right_place, right));
    uint32_t task = multiply(0, left_place, right_place);
    uint32_t before = task;
    for (uint32_t n = 0; n < TASKS; n++) {
        if (n > 0) {
            error |= snitch_ita_wait_for(before);
            store(n - 1u);
        }
        before = task;
        if (n + 1u < TASKS) {
            const bool turn = part_row(n + 1u) != part_row(n);
            const uint32_t old = turn ? left_place : right_place;
            cluster_dma_wait(turn ? load(spare, left + part_row(n + 1u) * OPERAND)
                                 : load(spare, right + part_col(n + 1u) * OPERAND));
            left_place = turn ? spare : left_place;
            right_place = turn ? right_place : spare;
            spare = old;
            task = multiply(n + 1u, left_place, right_place);
        }
    }
    error |= snitch_ita_wait();
    store(TASKS - 1u);
    cluster_dma_wait_all();
    return error;
}

/* Single-head attention in L1, whose places are those of the image below. */
enum { SEQ = 128, EMBED = 128, PROJ = 64, BLOCK = 64 };
enum {
    X = 0,
    WQ = X + SEQ * EMBED,
    WK = WQ + PROJ * EMBED,
    WV = WK + PROJ * EMBED,
    WO = WV + PROJ * EMBED,
    BQ = WO + EMBED * PROJ,
    BK = BQ + 3 * PROJ,
    BV = BK + 3 * PROJ,
    BO = BV + 3 * PROJ,
    IMAGE_END = BO + 3 * EMBED,
    Q = IMAGE_END,
    K = Q + SEQ * PROJ,
    VT = K + SEQ * PROJ,
    SCORES = VT + PROJ * SEQ,
    CONTEXT = SCORES + BLOCK * SEQ,
    OUT = CONTEXT + SEQ * PROJ,
    END = OUT + SEQ * EMBED,
};
_Static_assert(END <= HTVM_L1_SIZE, "fits L1");

L2 uint8_t image[IMAGE_END];
L2 uint8_t requants[6 * 4]; /* Q, K, V, QK, AV, output projection: mult, shift, add, 0 */
L2 int8_t attention[SEQ * EMBED];

static snitch_ita_requant_t requant(uint32_t step)
{
    const uint8_t *at = requants + 4u * step;
    return (snitch_ita_requant_t){.mult = at[0], .shift = at[1], .add = (int8_t)at[2]};
}

static void project(uint32_t step, uint32_t in, uint32_t inner, uint32_t weights, uint32_t bias,
                    uint32_t out, uint32_t cols)
{
    const snitch_ita_task_t task = {
        .rows = SEQ, .cols = (uint16_t)cols, .inner = (uint16_t)inner,
        .operation = SNITCH_ITA_OP_LINEAR, .bias_kind = SNITCH_ITA_BIAS_COLS,
        .requant = requant(step),
        .left = AT(in), .left_stride = inner,
        .right = AT(weights), .right_stride = inner,
        .bias = AT(bias), .out = AT(out), .out_stride = cols,
    };
    snitch_ita_program(&task);
}

static void project_transposed(void)
{
    const snitch_ita_task_t task = {
        .rows = PROJ, .cols = SEQ, .inner = EMBED,
        .operation = SNITCH_ITA_OP_LINEAR, .bias_kind = SNITCH_ITA_BIAS_ROWS,
        .requant = requant(2),
        .left = AT(WV), .left_stride = EMBED,
        .right = AT(X), .right_stride = EMBED,
        .bias = AT(BV), .out = AT(VT), .out_stride = SEQ,
    };
    snitch_ita_program(&task);
}

static void attend(uint32_t row)
{
    const snitch_ita_task_t scores = {
        .rows = BLOCK, .cols = SEQ, .inner = PROJ, .length = SEQ,
        .operation = SNITCH_ITA_OP_QK,
        .requant = requant(3),
        .left = AT(Q + row * PROJ), .left_stride = PROJ,
        .right = AT(K), .right_stride = PROJ,
        .out = AT(SCORES), .out_stride = SEQ,
    };
    const snitch_ita_task_t context = {
        .rows = BLOCK, .cols = PROJ, .inner = SEQ,
        .operation = SNITCH_ITA_OP_AV,
        .requant = requant(4),
        .left = AT(SCORES), .left_stride = SEQ,
        .right = AT(VT), .right_stride = SEQ,
        .out = AT(CONTEXT + row * PROJ), .out_stride = PROJ,
    };
    snitch_ita_program(&scores);
    snitch_ita_program(&context);
}

static int32_t run_attention(void)
{
    project(0, X, EMBED, WQ, BQ, Q, PROJ);
    project(1, X, EMBED, WK, BK, K, PROJ);
    project_transposed();
    for (uint32_t row = 0; row < SEQ; row += BLOCK) {
        attend(row);
    }
    project(5, CONTEXT, PROJ, WO, BO, OUT, EMBED);
    return snitch_ita_wait();
}

static void move(void *to, const void *from, uint32_t bytes)
{
    const cluster_dma_t order = {.to = to, .from = from, .bytes = bytes, .rows = 1};
    cluster_dma_wait(cluster_dma_start(&order));
}

int main(void)
{
    htvm_hal_trace(1u << 1);
    int32_t error = run_product();
    htvm_hal_trace(1u << 1 | 1u);
    move(cluster_l1(0), image, IMAGE_END);
    htvm_hal_trace(2u << 1);
    error |= run_attention();
    htvm_hal_trace(2u << 1 | 1u);
    move(attention, cluster_l1(OUT), SEQ * EMBED);
    return error;
}
