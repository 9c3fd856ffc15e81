/* The digital core against a naive reference written from the definitions, and its times.  Larger
 * and randomised cases are compared with numpy elsewhere. */
#include "bench.h"

static uint32_t random_state = 1;

static int8_t random_byte(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (int8_t)(random_state >> 24);
}

static int8_t clip(int64_t value, uint32_t shift, int relu)
{
    /* Wrap to 32 bits, then a floor division by a power of two. */
    int64_t wrapped = value & 0xFFFFFFFF;
    wrapped = wrapped > INT32_MAX ? wrapped - 0x100000000 : wrapped;
    const int64_t divisor = (int64_t)1 << shift;
    int64_t q = wrapped / divisor;
    q -= wrapped % divisor < 0;
    if (q < (relu ? 0 : -128)) {
        return relu ? 0 : -128;
    }
    return (int8_t)(q > 127 ? 127 : q);
}

typedef struct {
    uint32_t k, c, iy, ix, oy, ox, f, stride;
    int32_t top, left;
    uint32_t shift;
    int relu;
} case_t;

static void run_conv(const case_t *t)
{
    enum { OUT = 65536, WEIGHTS = 131072 };
    bench_t *b = bench_new();
    const uint32_t pitch = (t->ix + 15) / 16 * 16;
    const uint32_t out_pitch = (t->ox + 15) / 16 * 16;
    static int8_t x[4096], w[32768];
    static int32_t bias[64];
    const uint32_t taps = t->c * t->f * t->f;
    for (uint32_t i = 0; i < t->c * t->iy * t->ix; i++) {
        x[i] = random_byte();
        const uint32_t row = i / t->ix;
        b->l2[(row * pitch + i % t->ix) ^ 3u] = (uint8_t)x[i];
    }
    bench_dma(b, HTVM_L2_BASE, 0, t->c * t->iy * pitch);
    for (uint32_t k = 0; k < (t->k + 15) / 16 * 16; k++) {
        uint8_t *block = b->l2 + WEIGHTS + k / 16 * (16 * taps + 64);
        bias[k] = k < t->k ? (int32_t)(random_byte() * 1000) : 0;
        for (uint32_t i = 0; i < taps; i++) {
            w[k * taps + i] = k < t->k ? random_byte() : 0;
            block[(i * 16 + k % 16) ^ 3u] = (uint8_t)w[k * taps + i];
        }
        for (uint32_t plane = 0; plane < 4; plane++) {
            block[(16 * taps + plane * 16 + k % 16) ^ 3u] =
                (uint8_t)((uint32_t)bias[k] >> (8 * plane));
        }
    }
    bench_core_set(b, DIANA_DIGITAL_SHAPE0, t->k | t->c << 16);
    bench_core_set(b, DIANA_DIGITAL_SHAPE1, t->iy | t->ix << 16);
    bench_core_set(b, DIANA_DIGITAL_SHAPE2, t->oy | t->ox << 16);
    bench_core_set(b, DIANA_DIGITAL_SHAPE3,
                   t->f | t->f << 8 | t->stride << 16 | ((uint32_t)t->top & 255u) << 24);
    bench_core_set(b, DIANA_DIGITAL_SHAPE4,
                   ((uint32_t)t->left & 255u) | t->shift << 8 | (uint32_t)t->relu << 16);
    bench_core_set(b, DIANA_DIGITAL_IN, 0);
    bench_core_set(b, DIANA_DIGITAL_OUT, OUT);
    bench_core_set(b, DIANA_DIGITAL_WEIGHTS, HTVM_L2_BASE + WEIGHTS);
    CHECK_EQ(bench_start(b, DIANA_DIGITAL_OP_CONV), DIANA_ERROR_NONE);
    bench_dma(b, HTVM_L2_BASE, OUT, ((t->k + 15) / 16 * 16 * t->oy * out_pitch) | DIANA_DMA_TO_L2);
    CHECK(htvm_soc_error(b->soc) == NULL);

    for (uint32_t k = 0; k < (t->k + 15) / 16 * 16; k++) {
        for (uint32_t y = 0; y < t->oy; y++) {
            for (uint32_t xo = 0; xo < out_pitch; xo++) {
                int64_t sum = bias[k];
                for (uint32_t i = 0; i < taps; i++) {
                    const int32_t c = (int32_t)(i / (t->f * t->f));
                    const int32_t row = (int32_t)(y * t->stride + i / t->f % t->f) - t->top;
                    const int32_t column = (int32_t)(xo * t->stride + i % t->f) - t->left;
                    if (row >= 0 && row < (int32_t)t->iy && column >= 0 &&
                        column < (int32_t)t->ix) {
                        const int32_t at = (c * (int32_t)t->iy + row) * (int32_t)t->ix + column;
                        sum += x[at] * w[k * taps + i];
                    }
                }
                const int8_t want = xo < t->ox ? clip(sum, t->shift, t->relu) : 0;
                const uint32_t at = (k * t->oy + y) * out_pitch + xo;
                CHECK_EQ((int8_t)b->l2[at ^ 3u], want);
            }
        }
    }
    bench_free(b);
}

static void test_conv_against_the_definition(void)
{
    const case_t cases[] = {
        {16, 3, 8, 8, 8, 8, 3, 1, 1, 1, 7, 0},    {16, 3, 8, 8, 8, 8, 3, 1, 1, 1, 7, 1},
        {20, 5, 9, 7, 5, 4, 3, 2, 1, 1, 5, 0},    {1, 1, 5, 20, 3, 18, 3, 1, 0, 0, 0, 0},
        {33, 2, 6, 6, 2, 2, 7, 1, 2, 3, 9, 0},    {16, 4, 8, 8, 3, 3, 1, 2, -2, -1, 3, 0},
        {2, 2, 8, 18, 4, 17, 5, 1, -1, 2, 31, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        run_conv(&cases[i]);
    }
}

static void test_add_times_and_values(void)
{
    bench_t *b = bench_new();
    for (uint32_t i = 0; i < 64; i++) {
        b->l2[i] = (uint8_t)random_byte();
    }
    bench_dma(b, HTVM_L2_BASE, 0, 32);
    bench_dma(b, HTVM_L2_BASE + 32, 32, 32);
    bench_core_set(b, DIANA_DIGITAL_SHAPE0, 24);
    bench_core_set(b, DIANA_DIGITAL_SHAPE4, 1u << 8);
    bench_core_set(b, DIANA_DIGITAL_IN, 0);
    bench_core_set(b, DIANA_DIGITAL_IN2, 32);
    bench_core_set(b, DIANA_DIGITAL_OUT, 64);
    const uint64_t before = b->now;
    CHECK_EQ(bench_start(b, DIANA_DIGITAL_OP_ADD), DIANA_ERROR_NONE);
    CHECK_EQ(b->now - before,
             2 + DIANA_DIGITAL_ADD_TRIGGER_CYCLES - DIANA_DIGITAL_ADD_DRIVER_CYCLES);
    bench_dma(b, HTVM_L2_BASE + 64, 64, 24 | DIANA_DMA_TO_L2);
    for (uint32_t i = 0; i < 24; i++) {
        CHECK_EQ((int8_t)b->l2[64 + i], clip((int8_t)b->l2[i] + (int8_t)b->l2[32 + i], 1, 0));
    }
    CHECK(htvm_soc_error(b->soc) == NULL);
    bench_free(b);
}

static void test_dma_times(void)
{
    bench_t *b = bench_new();
    const uint32_t single = DIANA_DMA_CALL_CYCLES - DIANA_DMA_DRIVER_SINGLE_CYCLES;
    const uint32_t first =
        DIANA_DMA_CALL_CYCLES + DIANA_DMA_COMMAND_CYCLES - DIANA_DMA_DRIVER_FIRST_CYCLES;
    const uint32_t next = DIANA_DMA_COMMAND_CYCLES - DIANA_DMA_DRIVER_NEXT_CYCLES;
    CHECK_EQ(bench_dma(b, HTVM_L2_BASE, 0, 1), single + 2);
    CHECK_EQ(bench_dma(b, HTVM_L2_BASE, 0, 32), single + 2);
    CHECK_EQ(bench_dma(b, HTVM_L2_BASE, 0, 33), single + 4);
    CHECK_EQ(bench_dma(b, HTVM_L2_BASE, 0, 1024 | DIANA_DMA_FIRST), first + 64);
    CHECK_EQ(bench_dma(b, HTVM_L2_BASE, 0, 1024 | DIANA_DMA_NEXT), next + 64);
    CHECK_EQ(htvm_soc_next_event(b->soc, b->now), UINT64_MAX);
    bench_free(b);
}

static void test_dma_moves_exactly_the_bytes(void)
{
    bench_t *b = bench_new();
    for (uint32_t i = 0; i < 64; i++) {
        b->l2[i] = (uint8_t)(i + 1);
    }
    bench_dma(b, HTVM_L2_BASE + 4, 16, 37);
    bench_dma(b, HTVM_L2_BASE + 100, 16, 37 | DIANA_DMA_TO_L2);
    CHECK_EQ(b->l2[99], 0);
    for (uint32_t i = 0; i < 37; i++) {
        CHECK_EQ(b->l2[100 + i], i + 5);
    }
    CHECK_EQ(b->l2[137], 0);
    bench_free(b);
}

int main(void)
{
    test_conv_against_the_definition();
    test_add_times_and_values();
    test_dma_times();
    test_dma_moves_exactly_the_bytes();
    return htvm_test_report();
}
