/* The arithmetic of ITA: bit-exact products, requantization, softmax statistics, activations. */
#include "snitch_arithmetic.h"

#define UNIT 256u                        /* what the maximum of a row contributes to its sum */
#define RECIPROCAL ((UNIT - 1u) * UNIT)  /* divided by the sum: the weight of the maximum */
#define BIAS_LIMIT (1 << (8u * SNITCH_ITA_ITA_BIAS_BYTES - 1u))

/* int32 sums need not be wrapped to the accumulator's width, which they cannot exceed. */
_Static_assert(SNITCH_ITA_ITA_MAX_DIM * 255 * 128 + BIAS_LIMIT <
                   1 << (SNITCH_ITA_ITA_ACCUMULATOR_BITS - 1u),
               "sums must fit the accumulator");
_Static_assert(SNITCH_ITA_ITA_BIAS_BYTES == 3, "read_bias reads three bytes");

static int32_t read_bias(const uint8_t *bias, uint32_t index)
{
    const uint8_t *at = bias + index * SNITCH_ITA_ITA_BIAS_BYTES;
    const int32_t value = at[0] | at[1] << 8 | at[2] << 16;
    return value < BIAS_LIMIT ? value : value - 2 * BIAS_LIMIT;
}

/* >> of a negative number is arithmetic in every compiler this is built with. */
static int32_t requantize(int32_t value, const snitch_requant_t *r)
{
    const int64_t product = (int64_t)value * r->mult;
    int64_t result = product >> r->shift;
    if (r->shift != 0) {
        result += product >> (r->shift - 1u) & 1;
    }
    result += r->add;
    return (int32_t)(result < -128 ? -128 : result > 127 ? 127 : result);
}

/* Returns the low bits of a value, as the accumulator keeps it. */
static int32_t wrap(int64_t value)
{
    const uint32_t sign = 1u << (SNITCH_ITA_ITA_ACCUMULATOR_BITS - 1u);
    const uint32_t kept = (uint32_t)((uint64_t)value & (2u * sign - 1u));
    return (int32_t)(kept ^ sign) - (int32_t)sign;
}

/* x * (erf + c), with a polynomial of second degree for erf; like c, it has the opposite sign. */
static int32_t gelu(int32_t x, int32_t b, int32_t c)
{
    const int32_t value = x < -127 ? -127 : x;
    const int32_t magnitude = value < 0 ? -value : value;
    const int64_t distance = (magnitude < -b ? magnitude : -b) + b;
    const int64_t polynomial = distance * distance + c;
    return wrap(value * ((value < 0 ? -polynomial : polynomial) + c));
}

static int32_t activate(const snitch_product_t *p, int32_t value)
{
    switch (p->activation) {
    case SNITCH_ITA_ACT_GELU:
        return requantize(gelu(value, p->gelu_b, p->gelu_c), &p->act_requant);
    case SNITCH_ITA_ACT_RELU:
        return requantize(value < 0 ? 0 : value, &p->act_requant);
    default:
        return value;
    }
}

/* value * 2^-R(distance). */
static uint32_t decay(uint32_t value, uint32_t distance, uint32_t shift)
{
    const uint32_t places = (distance + (1u << shift >> 1)) >> shift;
    return places < 32u ? value >> places : 0u;
}

static uint32_t below(int32_t maximum, int32_t value)
{
    return (uint32_t)(maximum - value);
}

/* Denominator accumulation: a row's groups in turn; what comes before a group is scaled down when
 * the maximum grows. */
static void accumulate(const snitch_product_t *p, const uint8_t *out, int32_t *maximum,
                       uint32_t *sum)
{
    int32_t highest = -128;
    uint32_t total = 0;
    for (uint32_t begin = 0; begin < p->length; begin += SNITCH_ITA_ITA_SOFTMAX_GROUP) {
        const uint32_t left = p->length - begin;
        const uint32_t end =
            begin + (left < SNITCH_ITA_ITA_SOFTMAX_GROUP ? left : SNITCH_ITA_ITA_SOFTMAX_GROUP);
        const int32_t before = highest;
        for (uint32_t c = begin; c < end; c++) {
            const int32_t value = (int8_t)out[c];
            highest = value > highest ? value : highest;
        }
        total = decay(total, below(highest, before), p->shift);
        for (uint32_t c = begin; c < end; c++) {
            total += decay(UNIT, below(highest, (int8_t)out[c]), p->shift);
        }
    }
    *maximum = highest;
    *sum = total;
}

/* Element normalization of one row; false if an element is above the maximum. */
static bool normalize(const uint8_t *scores, uint32_t inner, const snitch_statistics_t *s,
                      uint32_t row, int16_t *left, uint32_t *column)
{
    const uint32_t reciprocal = RECIPROCAL / s->sum[row];
    for (uint32_t i = 0; i < s->length; i++) {
        const int32_t value = (int8_t)scores[i];
        if (value > s->maximum[row]) {
            *column = i;
            return false;
        }
        left[i] = (int16_t)decay(reciprocal, below(s->maximum[row], value), s->shift);
    }
    for (uint32_t i = s->length; i < inner; i++) {
        left[i] = 0;
    }
    return true;
}

static int32_t dot(const int16_t *left, const uint8_t *right, uint32_t inner)
{
    int32_t sum = 0;
    for (uint32_t i = 0; i < inner; i++) {
        sum += left[i] * (int8_t)right[i];
    }
    return sum;
}

static void compute_row(const snitch_product_t *p, uint32_t row, const int16_t *left)
{
    uint8_t *out = p->out.first + (uint64_t)row * p->out.stride;
    for (uint32_t c = 0; c < p->cols; c++) {
        int32_t sum = dot(left, p->right.first + (uint64_t)c * p->right.stride, p->inner);
        if (p->bias_kind != SNITCH_ITA_BIAS_NONE) {
            sum += read_bias(p->bias, p->bias_kind == SNITCH_ITA_BIAS_ROWS ? row : c);
        }
        out[c] = (uint8_t)activate(p, requantize(sum, &p->requant));
    }
}

bool snitch_compute(const snitch_product_t *p, snitch_statistics_t *statistics, uint32_t *row,
                    uint32_t *column)
{
    int16_t left[SNITCH_ITA_ITA_MAX_DIM];
    for (uint32_t r = 0; r < p->rows; r++) {
        const uint8_t *from = p->left.first + (uint64_t)r * p->left.stride;
        if (p->operation == SNITCH_ITA_OP_AV) {
            if (!normalize(from, p->inner, statistics, r, left, column)) {
                *row = r;
                return false;
            }
        } else {
            for (uint32_t i = 0; i < p->inner; i++) {
                left[i] = (int8_t)from[i];
            }
        }
        compute_row(p, r, left);
        if (p->operation == SNITCH_ITA_OP_QK) {
            accumulate(p, p->out.first + (uint64_t)r * p->out.stride, &statistics->maximum[r],
                       &statistics->sum[r]);
        }
    }
    if (p->operation == SNITCH_ITA_OP_QK) {
        statistics->length = p->length;
        statistics->shift = p->shift;
    }
    return true;
}
