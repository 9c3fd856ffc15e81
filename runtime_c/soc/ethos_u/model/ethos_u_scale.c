/* Ethos-U: multiplication by a fixed-point factor, with the NPU's three ways of rounding. */
#include "ethos_u_model.h"

/* A two's complement integer of 128 bits. */
typedef struct {
    uint64_t high, low;
} wide_t;

static wide_t negated(wide_t v)
{
    return (wide_t){~v.high + (v.low == 0 ? 1u : 0u), 0u - v.low};
}

static wide_t sum(wide_t a, wide_t b)
{
    const uint64_t low = a.low + b.low;
    return (wide_t){a.high + b.high + (low < b.low ? 1u : 0u), low};
}

static bool is_negative(wide_t v) { return v.high >> 63 != 0; }

static wide_t widened(int64_t v) { return (wide_t){v < 0 ? UINT64_MAX : 0, (uint64_t)v}; }

static wide_t product(uint64_t a, uint32_t b)
{
    const uint64_t low = (a & 0xffffffffu) * b, high = (a >> 32) * b + (low >> 32);
    return (wide_t){high >> 32, high << 32 | (low & 0xffffffffu)};
}

/* Shifted right by at most 63 bits, towards minus infinity, and limited to 64 bits. */
static int64_t shifted(wide_t v, uint32_t shift)
{
    if (shift != 0) {
        const uint64_t sign = is_negative(v) ? UINT64_MAX << (64u - shift) : 0;
        v = (wide_t){v.high >> shift | sign, v.low >> shift | v.high << (64u - shift)};
    }
    if (v.high == 0 && v.low <= INT64_MAX) {
        return (int64_t)v.low;
    }
    if (v.high == UINT64_MAX && v.low > INT64_MAX) {
        return -(int64_t)~v.low - 1;
    }
    return is_negative(v) ? INT64_MIN : INT64_MAX;
}

static int64_t scale_wide(int64_t value, uint32_t multiplier, uint32_t shift, uint32_t rounding)
{
    const bool negative = value < 0;
    const wide_t size = product(negative ? 0u - (uint64_t)value : (uint64_t)value, multiplier);
    if (rounding == ETHOS_U_ROUND_TRUNCATE) {
        const int64_t result = shifted(size, shift);
        return negative ? -result : result;
    }
    wide_t v = negative ? negated(size) : size;
    if (shift != 0) {
        v = sum(v, (wide_t){0, (uint64_t)1 << (shift - 1u)});
    }
    if (rounding == ETHOS_U_ROUND_TFL && shift > 31) {
        v = sum(v, widened(negative ? -(INT64_C(1) << 30) : INT64_C(1) << 30));
    }
    return shifted(v, shift);
}

int64_t ethos_u_scale(int64_t value, uint32_t multiplier, uint32_t shift, uint32_t rounding)
{
    /* Such a product has at most 61 bits, half of the last place 62: their sum fits. */
    const int64_t limit = INT64_C(1) << 29;
    if (value < -limit || value > limit || rounding == ETHOS_U_ROUND_TRUNCATE || shift == 0) {
        return scale_wide(value, multiplier, shift, rounding);
    }
    int64_t v = value * (int64_t)multiplier + (int64_t)((uint64_t)1 << (shift - 1u));
    if (rounding == ETHOS_U_ROUND_TFL && shift > 31) {
        v += value < 0 ? -(INT64_C(1) << 30) : INT64_C(1) << 30;
    }
    return v >> shift;
}
