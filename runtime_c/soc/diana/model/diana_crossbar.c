/* The arithmetic of the analog core.
 *
 * Bit-exact without noise: products of 7-bit inputs with -1, 0, 1 are summed down each column of
 * the array, and each sum is converted to 6 bits.  The loops run over columns, so that they can be
 * vectorised.
 */
#include "diana_crossbar.h"
#include "diana_model.h"

#include <stdlib.h>
#include <string.h>

#define REVERSED (DIANA_ANALOG_GROUP - 1u)
#define WORD_BITS 32u
#define ADC_HIGH ((int32_t)(1u << (DIANA_ANALOG_ADC_BITS - 1u)) - 1)
#define ADC_LOW (-ADC_HIGH - 1)

_Static_assert(DIANA_ANALOG_GROUP == 4, "the physical index is index ^ 3");
_Static_assert(DIANA_ANALOG_COLUMN_STEP % WORD_BITS == 0, "columns of an image are whole words");

static uint32_t read_word(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
           (uint32_t)bytes[3] << 24;
}

static int32_t read_int16(const uint8_t *bytes)
{
    return (int16_t)(uint16_t)(bytes[0] | bytes[1] << 8);
}

uint32_t diana_crossbar_bytes(uint32_t rows, uint32_t columns)
{
    return diana_round_up(rows, DIANA_ANALOG_ROW_STEP) *
           diana_round_up(columns, DIANA_ANALOG_COLUMN_STEP) / 8u * 2u;
}

bool diana_crossbar_decode(const uint8_t *image, uint32_t rows, uint32_t columns, int8_t *weights,
                           uint32_t *row, uint32_t *column)
{
    const uint32_t stored_rows = diana_round_up(rows, DIANA_ANALOG_ROW_STEP);
    const uint32_t words = diana_round_up(columns, DIANA_ANALOG_COLUMN_STEP) / WORD_BITS;
    const uint8_t *negative = image + (size_t)stored_rows * words * 4u;
    for (uint32_t r = 0; r < rows; r++) {
        const size_t line = (size_t)(stored_rows - 1u - r) * words * 4u;
        for (uint32_t n = 0; n < columns; n++) {
            const size_t word = line + n / WORD_BITS * 4u;
            const uint32_t plus = read_word(image + word) >> n % WORD_BITS & 1u;
            const uint32_t minus = read_word(negative + word) >> n % WORD_BITS & 1u;
            if (plus != 0 && minus != 0) {
                *row = r;
                *column = n;
                return false;
            }
            const int8_t cell = (int8_t)((int32_t)plus - (int32_t)minus);
            const bool flipped = (n + r / DIANA_ANALOG_ROW_BLOCK) % 2u != 0;
            weights[(size_t)r * columns + n] = flipped ? (int8_t)-cell : cell;
        }
    }
    return true;
}

static uint32_t draw(diana_noise_t *noise)
{
    /* splitmix64 */
    noise->state += 0x9E3779B97F4A7C15u;
    uint64_t z = noise->state;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (uint32_t)((z ^ z >> 31) >> 32);
}

/* A normal deviate in 1/65536 of the converter's step.  The sum of twelve numbers uniform in
 * [0, 65536) has a standard deviation of 65536; integers, so that all machines draw the same. */
static int64_t deviate(diana_noise_t *noise)
{
    int64_t sum = -6 * 65536 + 6;
    for (uint32_t i = 0; i < 6; i++) {
        const uint32_t two = draw(noise);
        sum += (two & 0xFFFFu) + (two >> 16);
    }
    return sum * noise->deviation / 65536;
}

/* Converts the sum of a column. */
static int32_t convert(int32_t sum, uint32_t gain, diana_noise_t *noise)
{
    int32_t value = sum >> gain;
    if (noise->deviation != 0) {
        const int64_t fine = ((int64_t)sum * 65536 >> gain) + deviate(noise);
        value = (int32_t)(fine >> 16);
    }
    return value < ADC_LOW ? ADC_LOW : value > ADC_HIGH ? ADC_HIGH : value;
}

/* Sums of all columns for output row y, starting at output column x. */
static void column_sums(const diana_pass_t *p, const uint8_t *in, const int8_t *weights, uint32_t y,
                        uint32_t x, int32_t *sums)
{
    const uint32_t width = p->fx + p->unroll - 1u; /* stride is 1 where unroll is not */
    memset(sums, 0, sizeof *sums * p->columns);
    for (uint32_t row = 0; row < p->rows; row++) {
        const uint32_t c = row / (p->fy * width);
        const int64_t iy = (int64_t)y * p->stride - p->pad_top + row / width % p->fy;
        const int64_t ix = (int64_t)x * p->stride - p->pad_left + row % width;
        if (iy < 0 || iy >= p->iy || ix < 0 || ix >= p->ix) {
            continue;
        }
        const uint32_t at = c * p->in_map + (uint32_t)iy * p->in_pitch + (uint32_t)ix;
        const int32_t value = (int8_t)in[at ^ REVERSED];
        const int8_t *line = weights + (size_t)row * p->columns;
        for (uint32_t n = 0; n < p->columns && value != 0; n++) {
            sums[n] += value * line[n];
        }
    }
}

static uint8_t requantize(const diana_pass_t *p, int32_t value, const uint8_t *parameters)
{
    /* Factors of 16 bits: nothing overflows.  >> of a negative int32 is arithmetic in every
     * compiler this is built with. */
    const int32_t scaled = value * read_int16(parameters) + read_int16(parameters + 2);
    const int32_t result = scaled >> p->shift;
    return (uint8_t)(result < p->low ? p->low : result > p->high ? p->high : result);
}

/* Zeroes the padding behind each row, or behind a vector. */
static void clear_padding(const diana_pass_t *p, uint8_t *out)
{
    const uint32_t rows = p->vector ? 1u : p->k * p->oy;
    const uint32_t used = p->vector ? p->k : p->ox;
    const uint32_t pitch = diana_round_up(used, DIANA_ANALOG_ROW_PITCH);
    for (uint32_t row = 0; row < rows; row++) {
        for (uint32_t x = used; x < pitch; x++) {
            out[(row * pitch + x) ^ REVERSED] = 0;
        }
    }
}

bool diana_crossbar_conv(const diana_pass_t *p, const uint8_t *in, const int8_t *weights,
                         const uint8_t *parameters, uint8_t *partial, uint8_t *out,
                         diana_noise_t *noise)
{
    int32_t *sums = malloc(sizeof *sums * p->columns);
    if (sums == NULL) {
        return false;
    }
    for (uint32_t y = 0; y < p->oy; y++) {
        for (uint32_t x = 0; x < p->ox; x += p->unroll) {
            column_sums(p, in, weights, y, x, sums);
            for (uint32_t n = 0; n < p->k * p->unroll; n++) {
                const uint32_t k = n % p->k;
                const uint32_t column = x + n / p->k;
                if (column >= p->ox) {
                    continue;
                }
                const uint32_t at = k * p->out_map + y * p->out_pitch + column;
                int32_t value = convert(sums[p->first_column + n], p->gain, noise);
                if (!p->first) {
                    value = (int16_t)(value + read_int16(partial + 2u * at));
                }
                if (p->last) {
                    out[at ^ REVERSED] = requantize(p, value, parameters + 4u * (p->first_column + k));
                } else {
                    partial[2u * at] = (uint8_t)value;
                    partial[2u * at + 1u] = (uint8_t)((uint32_t)value >> 8);
                }
            }
        }
    }
    if (p->last) {
        clear_padding(p, out);
    }
    free(sums);
    return true;
}
