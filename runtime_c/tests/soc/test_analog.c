/* The analog core against a naive reference written from the definitions, its times, what it
 * refuses, and its noise.  Larger and randomised cases are compared with numpy elsewhere. */
#include "bench.h"
#include "diana_analog_regs.h"

enum { OUT = 65536, PARTIAL = 131072, WEIGHTS = 200000, MOST_ROWS = 512, MOST_COLUMNS = 256 };

static uint32_t random_state = 1;

static uint32_t draw(uint32_t limit)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 16) % limit;
}

static void set(bench_t *b, uint32_t reg, uint32_t value)
{
    htvm_soc_write(b->soc, DIANA_ANALOG_REGISTERS + reg, value, b->now);
}

/* Starts the core; returns the error code. */
static uint32_t start(bench_t *b, uint32_t mode)
{
    set(b, DIANA_ANALOG_MODE, mode);
    set(b, DIANA_ANALOG_START, 1);
    bench_finish(b, DIANA_ANALOG_REGISTERS);
    return htvm_soc_read(b->soc, DIANA_ANALOG_REGISTERS + DIANA_REG_ERROR, b->now);
}

static uint32_t up(uint32_t value, uint32_t step) { return (value + step - 1) / step * step; }

/* Puts one weight into an image in L2, as the driver's header says. */
static void put_cell(uint8_t *image, uint32_t rows, uint32_t columns, uint32_t row, uint32_t column,
                     int weight)
{
    const uint32_t stored = up(rows, 288), words = up(columns, 128) / 32;
    const int cell = (column + row / 64) % 2 == 0 ? weight : -weight;
    const uint32_t plane = cell < 0 ? stored * words * 4 : 0;
    const uint32_t bit = ((stored - 1 - row) * words * 4) * 8 + column;
    if (cell != 0) {
        image[plane + bit / 8] |= (uint8_t)(1u << bit % 8);
    }
}

typedef struct {
    uint32_t k, c, iy, ix, oy, ox, fy, fx, stride;
    int32_t top, left;
    uint32_t gain, shift, clip, unroll, passes;
} case_t;

static int64_t floor_shift(int64_t value, uint32_t shift)
{
    const int64_t divisor = (int64_t)1 << shift;
    return value / divisor - (value % divisor < 0);
}

static int64_t bound(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

static int8_t x[8192];
static int8_t w[64][MOST_ROWS]; /* [k][c][fy][fx] */
static int16_t factors[64][2];

static int8_t reference(const case_t *t, uint32_t k, uint32_t y, uint32_t column)
{
    int64_t total = 0;
    const uint32_t each = t->c / t->passes;
    for (uint32_t pass = 0; pass < t->passes; pass++) {
        int64_t sum = 0;
        for (uint32_t c = pass * each; c < (pass + 1) * each; c++) {
            for (uint32_t i = 0; i < t->fy; i++) {
                for (uint32_t j = 0; j < t->fx; j++) {
                    const int32_t row = (int32_t)(y * t->stride + i) - t->top;
                    const int32_t at = (int32_t)(column * t->stride + j) - t->left;
                    if (row >= 0 && row < (int32_t)t->iy && at >= 0 && at < (int32_t)t->ix) {
                        sum += x[(c * t->iy + (uint32_t)row) * t->ix + (uint32_t)at] *
                               w[k][(c * t->fy + i) * t->fx + j];
                    }
                }
            }
        }
        total += bound(floor_shift(sum, t->gain), -32, 31);
    }
    const int64_t high = (t->clip & DIANA_ANALOG_CLIP_SHORT) != 0 ? 63 : 127;
    const int64_t low = (t->clip & DIANA_ANALOG_CLIP_RELU) != 0 ? 0 : -high - 1;
    return (int8_t)bound(floor_shift(total * factors[k][0] + factors[k][1], t->shift), low, high);
}

static void fill(bench_t *b, const case_t *t)
{
    const uint32_t pitch = up(t->ix, 16);
    for (uint32_t i = 0; i < t->c * t->iy * t->ix; i++) {
        x[i] = (int8_t)((int32_t)draw(128) - 64);
        b->l2[(i / t->ix * pitch + i % t->ix) ^ 3u] = (uint8_t)x[i];
    }
    for (uint32_t k = 0; k < t->k; k++) {
        for (uint32_t i = 0; i < t->c * t->fy * t->fx; i++) {
            w[k][i] = (int8_t)((int32_t)draw(3) - 1);
        }
        factors[k][0] = (int16_t)((int32_t)draw(65536) - 32768);
        factors[k][1] = (int16_t)((int32_t)draw(65536) - 32768);
    }
    bench_dma(b, HTVM_L2_BASE, 0, t->c * t->iy * pitch);
}

/* Writes the image of one pass and the factors behind it. */
static void fill_image(bench_t *b, const case_t *t, uint32_t pass, uint32_t rows, uint32_t columns)
{
    const uint32_t each = t->c / t->passes, wide = t->fx + t->unroll - 1;
    const uint32_t bytes = up(rows, 288) * up(columns, 128) / 4;
    uint8_t *image = b->l2 + WEIGHTS;
    memset(image, 0, bytes);
    for (uint32_t u = 0; u < t->unroll; u++) {
        for (uint32_t k = 0; k < t->k; k++) {
            for (uint32_t i = 0; i < each * t->fy * t->fx; i++) {
                const uint32_t row = i / t->fx * wide + i % t->fx + u;
                put_cell(image, rows, columns, row, u * t->k + k,
                         w[k][pass * each * t->fy * t->fx + i]);
            }
        }
    }
    for (uint32_t k = 0; k < t->k; k++) {
        for (uint32_t n = 0; n < 2; n++) {
            image[bytes + 4 * k + 2 * n] = (uint8_t)factors[k][n];
            image[bytes + 4 * k + 2 * n + 1] = (uint8_t)((uint16_t)factors[k][n] >> 8);
        }
    }
}

static void run(const case_t *t)
{
    bench_t *b = bench_new();
    const uint32_t pitch = up(t->ix, 16), out_pitch = up(t->ox, 16), each = t->c / t->passes;
    const uint32_t rows = each * t->fy * (t->fx + t->unroll - 1), columns = t->k * t->unroll;
    fill(b, t);
    for (uint32_t pass = 0; pass < t->passes; pass++) {
        fill_image(b, t, pass, rows, columns);
        set(b, DIANA_ANALOG_SHAPE0, t->k | each << 16);
        set(b, DIANA_ANALOG_SHAPE1, t->iy | t->ix << 16);
        set(b, DIANA_ANALOG_SHAPE2, t->oy | t->ox << 16);
        set(b, DIANA_ANALOG_SHAPE3,
            t->fy | t->fx << 8 | t->stride << 16 | ((uint32_t)t->top & 255u) << 24);
        set(b, DIANA_ANALOG_SHAPE4,
            ((uint32_t)t->left & 255u) | t->gain << 8 | t->shift << 16 | t->clip << 24);
        set(b, DIANA_ANALOG_IN, pass * each * t->iy * pitch);
        set(b, DIANA_ANALOG_OUT, OUT);
        set(b, DIANA_ANALOG_PARTIAL, PARTIAL);
        set(b, DIANA_ANALOG_WEIGHTS, HTVM_L2_BASE + WEIGHTS);
        const uint64_t before = b->now;
        const uint32_t ends = (pass == 0 ? DIANA_ANALOG_FIRST : 0) |
                              (pass + 1 == t->passes ? DIANA_ANALOG_LAST : 0);
        CHECK_EQ(start(b, t->unroll | ends), DIANA_ERROR_NONE);
        CHECK_EQ(b->now - before,
                 DIANA_ANALOG_TRIGGER_CYCLES - DIANA_ANALOG_DRIVER_CYCLES + 9 * rows +
                     21 * t->oy * ((t->ox + t->unroll - 1) / t->unroll));
    }
    bench_dma(b, HTVM_L2_BASE, OUT, (t->k * t->oy * out_pitch) | DIANA_DMA_TO_L2);
    if (!CHECK(htvm_soc_error(b->soc) == NULL)) {
        fprintf(stderr, "%s\n", htvm_soc_error(b->soc));
    }
    for (uint32_t k = 0; k < t->k; k++) {
        for (uint32_t y = 0; y < t->oy; y++) {
            for (uint32_t column = 0; column < out_pitch; column++) {
                const uint32_t at = (k * t->oy + y) * out_pitch + column;
                CHECK_EQ((int8_t)b->l2[at ^ 3u],
                         column < t->ox ? reference(t, k, y, column) : 0);
            }
        }
    }
    bench_free(b);
}

static void test_against_the_definition(void)
{
    const case_t cases[] = {
        {16, 3, 8, 8, 8, 8, 3, 3, 1, 1, 1, 4, 8, 0, 1, 1},
        {16, 3, 8, 8, 8, 8, 3, 3, 1, 1, 1, 4, 8, DIANA_ANALOG_CLIP_RELU, 1, 1},
        {20, 5, 9, 7, 5, 4, 3, 3, 2, 1, 1, 3, 10, DIANA_ANALOG_CLIP_SHORT, 1, 1},
        {1, 1, 5, 20, 3, 18, 3, 3, 1, 0, 0, 0, 6, 3, 1, 1},
        {33, 2, 6, 6, 2, 2, 7, 7, 1, 2, 3, 5, 9, 0, 1, 1},
        {16, 4, 8, 8, 3, 3, 1, 1, 2, -2, -1, 1, 31, 0, 1, 1},
        {2, 2, 8, 18, 4, 17, 5, 4, 1, -1, 2, 2, 0, 0, 1, 1},
        {8, 3, 8, 11, 8, 11, 3, 3, 1, 1, 1, 4, 8, 0, 4, 1},
        {9, 2, 4, 16, 4, 16, 1, 2, 1, 0, 0, 3, 8, 1, 8, 1},
        {7, 9, 4, 6, 4, 6, 3, 3, 1, 1, 1, 2, 9, 0, 1, 3},
        {40, 32, 2, 3, 2, 3, 1, 1, 1, 0, 0, 1, 9, 2, 1, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        run(&cases[i]);
    }
}

/* A pass that is right, for tests to spoil: 3x3, 1 channel 8x8 -> 16 maps 8x8. */
static void defaults(bench_t *b)
{
    bench_dma(b, HTVM_L2_BASE, 0, 2048);
    set(b, DIANA_ANALOG_SHAPE0, 16u | 1u << 16);
    set(b, DIANA_ANALOG_SHAPE1, 8u | 8u << 16);
    set(b, DIANA_ANALOG_SHAPE2, 8u | 8u << 16);
    set(b, DIANA_ANALOG_SHAPE3, 3u | 3u << 8 | 1u << 16 | 1u << 24);
    set(b, DIANA_ANALOG_SHAPE4, 1u);
    set(b, DIANA_ANALOG_IN, 0);
    set(b, DIANA_ANALOG_OUT, 4096);
    set(b, DIANA_ANALOG_PARTIAL, 8192);
    set(b, DIANA_ANALOG_WEIGHTS, HTVM_L2_BASE + 4096);
}

#define WHOLE (1u | DIANA_ANALOG_FIRST | DIANA_ANALOG_LAST)

static void refuse(uint32_t reg, uint32_t value, uint32_t mode, uint32_t code, const char *part)
{
    bench_t *b = bench_new();
    defaults(b);
    CHECK_EQ(start(b, WHOLE), DIANA_ERROR_NONE); /* right before it is spoiled */
    set(b, reg, value);
    CHECK_EQ(start(b, mode), code);
    CHECK_EQ(bench_status(b, DIANA_ANALOG_REGISTERS), DIANA_STATUS_ERROR);
    CHECK_HAS(htvm_soc_error(b->soc), "analog core: ");
    CHECK_HAS(htvm_soc_error(b->soc), part);
    bench_free(b);
}

static void test_refusals(void)
{
    const uint32_t parameter = DIANA_ERROR_PARAMETER;
    refuse(DIANA_ANALOG_SHAPE0, 16u, WHOLE, parameter, "no dimension may be 0");
    refuse(DIANA_ANALOG_SHAPE0, 513u | 1u << 16, WHOLE, DIANA_ERROR_WEIGHTS,
           "9 rows and 513 columns exceed the array of 1152 by 512");
    refuse(DIANA_ANALOG_SHAPE0, 16u | 129u << 16, WHOLE, DIANA_ERROR_WEIGHTS, "1161 rows");
    refuse(DIANA_ANALOG_SHAPE0, 65u | 1u << 16, WHOLE + 7u, DIANA_ERROR_WEIGHTS, "520 columns");
    refuse(DIANA_ANALOG_SHAPE0, 16u | 1u << 16, WHOLE + 7u, DIANA_ERROR_WEIGHTS, "1920 rows");
    refuse(DIANA_ANALOG_SHAPE3, 3u | 8u << 8 | 1u << 16, WHOLE, parameter, "no 3x8 filter");
    refuse(DIANA_ANALOG_SHAPE3, 3u | 3u << 8 | 3u << 16, WHOLE, parameter, "no stride 3");
    refuse(DIANA_ANALOG_SHAPE4, 16u << 8, WHOLE, parameter, "gain 16");
    refuse(DIANA_ANALOG_SHAPE4, 32u << 16, WHOLE, parameter, "shift 32");
    refuse(DIANA_ANALOG_SHAPE4, 4u << 24, WHOLE, parameter, "clip 4");
    refuse(DIANA_ANALOG_IN, 8, WHOLE, DIANA_ERROR_ALIGNMENT, "input at L1 0x10000008");
    refuse(DIANA_ANALOG_IN, 2032, WHOLE, DIANA_ERROR_UNINITIALISED, "never written");
    refuse(DIANA_ANALOG_OUT, HTVM_L1_SIZE - 1024, WHOLE, DIANA_ERROR_RANGE, "leaves L1");
    refuse(DIANA_ANALOG_OUT, 64, WHOLE, DIANA_ERROR_OVERLAP, "overlaps input");
    refuse(DIANA_ANALOG_PARTIAL, 64, 1u | DIANA_ANALOG_FIRST, DIANA_ERROR_OVERLAP, "overlaps");
    refuse(DIANA_ANALOG_PARTIAL, 4096, 1u | DIANA_ANALOG_LAST, DIANA_ERROR_OVERLAP, "overlaps");
    refuse(DIANA_ANALOG_PARTIAL, 8192, 1u | DIANA_ANALOG_LAST, DIANA_ERROR_UNINITIALISED,
           "never written");
    refuse(DIANA_ANALOG_WEIGHTS, HTVM_L2_BASE + 2, WHOLE, DIANA_ERROR_ALIGNMENT, "0x1C000002");
    refuse(DIANA_ANALOG_WEIGHTS, HTVM_L1_BASE, WHOLE, DIANA_ERROR_RANGE, "not in memory");
    refuse(DIANA_ANALOG_IN, 0, 3u | DIANA_ANALOG_LAST, parameter, "mode 0x00000023");
    refuse(DIANA_ANALOG_IN, 0, WHOLE | 256u, parameter, "mode 0x00000131");
    refuse(DIANA_ANALOG_SLICE, 16u << 16, WHOLE | DIANA_ANALOG_SLICED, parameter,
           "16 outputs from column 0 on are no slice of a vector's 16");
    refuse(DIANA_ANALOG_SHAPE3, 3u | 3u << 8 | 2u << 16, WHOLE + 1u, parameter, "stride 2");
    refuse(DIANA_ANALOG_IN, 0, WHOLE | DIANA_ANALOG_VECTOR, parameter, "a vector has sizes");
}

static void test_refuses_eight_bits(void)
{
    bench_t *b = bench_new();
    b->l2[5 ^ 3] = 64;
    defaults(b);
    CHECK_EQ(start(b, WHOLE), DIANA_ERROR_PARAMETER);
    CHECK_HAS(htvm_soc_error(b->soc), "is 64, which has more than 7 bits");
    bench_free(b);
    b = bench_new();
    b->l2[13 ^ 3] = 64; /* behind the row */
    defaults(b);
    CHECK_EQ(start(b, WHOLE), DIANA_ERROR_NONE);
    bench_free(b);
}

static void test_refuses_a_cell_of_both_signs(void)
{
    bench_t *b = bench_new();
    put_cell(b->l2 + 4096, 9, 16, 2, 3, 1);
    put_cell(b->l2 + 4096, 9, 16, 2, 3, -1);
    defaults(b);
    CHECK_EQ(start(b, WHOLE), DIANA_ERROR_WEIGHTS);
    CHECK_HAS(htvm_soc_error(b->soc), "row 2, column 3");
    bench_free(b);
}

/* All zeros but the noise: what is read is the noise of the converter. */
static void noisy_run(uint32_t deviation, uint32_t seed, int8_t *result)
{
    bench_t *b = bench_new();
    set(b, DIANA_ANALOG_NOISE, deviation);
    set(b, DIANA_ANALOG_SEED, seed);
    for (uint32_t k = 0; k < 16; k++) {
        b->l2[4096 + 288 * 128 / 4 + 4 * k] = 1;
    }
    defaults(b);
    CHECK_EQ(start(b, WHOLE), DIANA_ERROR_NONE);
    bench_dma(b, HTVM_L2_BASE + 65536, 4096, 16 * 8 * 16 | DIANA_DMA_TO_L2);
    for (uint32_t i = 0; i < 1024; i++) {
        result[i] = (int8_t)b->l2[65536 + ((i / 8 * 16 + i % 8) ^ 3u)];
    }
    CHECK(htvm_soc_error(b->soc) == NULL);
    bench_free(b);
}

static void test_noise(void)
{
    static int8_t one[1024], same[1024], other[1024], none[1024];
    noisy_run(0, 7, none);
    noisy_run(3 * 65536, 7, one);
    noisy_run(3 * 65536, 7, same);
    noisy_run(3 * 65536, 8, other);
    CHECK(memcmp(one, same, sizeof one) == 0);
    CHECK(memcmp(one, other, sizeof one) != 0);
    int64_t sum = 0, squares = 0;
    for (uint32_t i = 0; i < 1024; i++) {
        CHECK_EQ(none[i], 0);
        sum += one[i];
        squares += one[i] * one[i];
    }
    /* Floor shifts the mean by half a step; standard errors are 0.1 and about 0.4. */
    CHECK(sum > -1024 * 9 / 10 && sum < -1024 / 10);
    CHECK(squares > 1024 * 8 && squares < 1024 * 11);
}

static void test_noise_is_no_register_of_the_program(void)
{
    bench_t *b = bench_new();
    b->now = 1;
    set(b, DIANA_ANALOG_NOISE, 65536);
    CHECK_HAS(htvm_soc_error(b->soc), "0x1A102008");
    bench_free(b);
}

static void test_busy(void)
{
    bench_t *b = bench_new();
    defaults(b);
    set(b, DIANA_ANALOG_MODE, WHOLE);
    set(b, DIANA_ANALOG_START, 1);
    CHECK_EQ(bench_status(b, DIANA_ANALOG_REGISTERS), DIANA_STATUS_BUSY);
    set(b, DIANA_ANALOG_IN, 16); /* latched: the next pass may be prepared */
    CHECK_EQ(bench_status(b, DIANA_ANALOG_REGISTERS), DIANA_STATUS_BUSY);
    set(b, DIANA_ANALOG_MODE, WHOLE);
    set(b, DIANA_ANALOG_START, 1);
    CHECK_EQ(bench_status(b, DIANA_ANALOG_REGISTERS), DIANA_STATUS_ERROR);
    CHECK_HAS(htvm_soc_error(b->soc), "busy");
    bench_free(b);
}

int main(void)
{
    CHECK(htvm_soc_owns(DIANA_ANALOG_REGISTERS + DIANA_ANALOG_START));
    test_against_the_definition();
    test_refusals();
    test_refuses_eight_bits();
    test_refuses_a_cell_of_both_signs();
    test_noise();
    test_noise_is_no_register_of_the_program();
    test_busy();
    return htvm_test_report();
}
