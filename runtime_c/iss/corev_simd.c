/* Results of the CORE-V instructions on two halfwords or four bytes at a time. */
#include "corev.h"
#include "corev_operations.h"
#include "operations.h"

static uint32_t sign_extend(uint32_t value, uint32_t width)
{
    return (value ^ 1u << (width - 1u)) - (1u << (width - 1u));
}

static uint32_t half_of(uint32_t a, uint32_t lane) { return a >> (16u * (lane & 1u)) & 0xffffu; }
static uint32_t byte_of(uint32_t a, uint32_t lane) { return a >> (8u * (lane & 3u)) & 0xffu; }

static uint32_t with_half(uint32_t into, uint32_t lane, uint32_t value)
{
    const uint32_t place = 16u * (lane & 1u);
    return (into & ~(0xffffu << place)) | (value & 0xffffu) << place;
}

static uint32_t with_byte(uint32_t into, uint32_t lane, uint32_t value)
{
    const uint32_t place = 8u * (lane & 3u);
    return (into & ~(0xffu << place)) | (value & 0xffu) << place;
}

/* Lanes of the second register where the selector says so with the bit above the lane's number,
 * of the first everywhere else. */
static uint32_t shuffle_halves(uint32_t first, uint32_t second, uint32_t selector)
{
    uint32_t result = 0;
    for (uint32_t i = 0; i < 32; i += 16) {
        const uint32_t select = selector >> i;
        result |= half_of((select & 2u) != 0 ? second : first, select) << i;
    }
    return result;
}

static uint32_t shuffle_bytes(uint32_t first, uint32_t second, uint32_t selector)
{
    uint32_t result = 0;
    for (uint32_t i = 0; i < 32; i += 8) {
        const uint32_t select = selector >> i;
        result |= byte_of((select & 4u) != 0 ? second : first, select) << i;
    }
    return result;
}

static uint32_t pair(uint32_t high, uint32_t low) { return high << 16 | (low & 0xffffu); }

static uint32_t quotient(uint32_t value, uint32_t shift)
{
    return shift_right(sign_extend(value & 0xffffu, 16), shift);
}

static uint32_t product(uint32_t a, uint32_t lane_a, uint32_t b, uint32_t lane_b)
{
    return sign_extend(half_of(a, lane_a), 16) * sign_extend(half_of(b, lane_b), 16);
}

static uint32_t real_of_product(uint32_t a, uint32_t b, uint32_t shift)
{
    return shift_right(product(a, 0, b, 0) - product(a, 1, b, 1), 15u + shift);
}

static uint32_t imaginary_of_product(uint32_t a, uint32_t b, uint32_t shift)
{
    return shift_right(product(a, 0, b, 1) + product(a, 1, b, 0), 15u + shift);
}

#define MASK (UINT32_MAX >> (32u - WIDTH))
#define UNSIGNED_LANE(value) ((value) & MASK)
#define SIGNED_LANE(value) sign_extend((value) & MASK, WIDTH)
#define ALL_ONES_IF(condition) ((condition) ? UINT32_MAX : 0u)

/* Runs a statement for every lane. */
#define EACH_LANE(width, statement)                                            \
    {                                                                          \
        enum { WIDTH = (width) };                                              \
        for (uint32_t i = 0; i < 32; i += WIDTH) {                             \
            const uint32_t ua = UNSIGNED_LANE(a >> i), ub = UNSIGNED_LANE(b >> i); \
            const int32_t sa = as_signed(SIGNED_LANE(ua));                     \
            const int32_t sb = as_signed(SIGNED_LANE(ub));                     \
            (void)ub, (void)sa, (void)sb;                                      \
            statement;                                                         \
        }                                                                      \
    }

#define LANE_CASES(name, lane)                                    \
    case name:                                                    \
        EACH_LANE(16, result |= UNSIGNED_LANE(lane) << i)         \
        return result;                                            \
    case name##_BYTES:                                            \
        EACH_LANE(8, result |= UNSIGNED_LANE(lane) << i)          \
        return result;

#define DOT_CASES(name, summand, start)       \
    case name:                                \
        result = (start);                     \
        EACH_LANE(16, result += (summand))    \
        return result;                        \
    case name##_BYTES:                        \
        result = (start);                     \
        EACH_LANE(8, result += (summand))     \
        return result;

#define WHOLE_CASES(name, halves, bytes) \
    case name:                           \
        return (halves);                 \
    case name##_BYTES:                   \
        return (bytes);

#define COMPLEX_CASE(name, halves) \
    case name:                     \
        return (halves);

uint32_t htvm_iss_corev_simd(const insn_t *d, const uint32_t *x, uint32_t b)
{
    const uint32_t a = RS1, c = x[d->rd];
    uint32_t result = 0;
    switch (d->function) {
        COREV_LANE_OPERATIONS(LANE_CASES)
        COREV_DOT_OPERATIONS(DOT_CASES)
        COREV_WHOLE_OPERATIONS(WHOLE_CASES)
        COREV_COMPLEX_OPERATIONS(COMPLEX_CASE)
    default:
        return 0;
    }
}
