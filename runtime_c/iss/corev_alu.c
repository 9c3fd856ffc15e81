/* Results of the CORE-V instructions on whole registers. */
#include "corev.h"
#include "corev_operations.h"
#include "operations.h"

#define RD x[d->rd]
#define SECOND (RS2 + IMM)
#define AMOUNT (RS2 & 31u)

static uint32_t magnitude(uint32_t a) { return as_signed(a) < 0 ? 0u - a : a; }

/* Half of 1 << amount, to round with. */
static uint32_t half(uint32_t amount) { return (1u << amount) >> 1; }

/* Between two limits; of a register with the higher one, bit 31 does not count. */
static uint32_t clip(uint32_t a, int32_t low, uint32_t limit)
{
    const int32_t high = as_signed(limit & INT32_MAX);
    const int32_t value = as_signed(a);
    return (uint32_t)(value < low ? low : value > high ? high : value);
}

static uint32_t rotate_right(uint32_t a, uint32_t amount)
{
    return a >> amount | a << ((32u - amount) & 31u);
}

static uint32_t ones(uint32_t a)
{
    uint32_t count = 0;
    for (; a != 0; a &= a - 1) {
        ++count;
    }
    return count;
}

static uint32_t first_one(uint32_t a)
{
    uint32_t place = 0;
    while (place < 32 && (a >> place & 1u) == 0) {
        ++place;
    }
    return place;
}

/* 32 if there is none, as for the first. */
static uint32_t last_one(uint32_t a)
{
    uint32_t place = 31;
    while (a != 0 && (a >> place & 1u) == 0) {
        --place;
    }
    return a == 0 ? 32 : place;
}

/* Bits below the sign that equal it; 0 for 0. */
static uint32_t leading_copies(uint32_t a)
{
    if (a == 0) {
        return 0;
    }
    const uint32_t differ = as_signed(a) < 0 ? ~a : a;
    return differ == 0 ? 31 : 30 - last_one(differ);
}

static uint32_t field_mask(uint32_t field, uint32_t place)
{
    const uint32_t width_less_1 = field >> 5 & 31u;
    return (UINT32_MAX >> (31u - width_less_1)) << place;
}

static uint32_t shift_field(uint32_t a, uint32_t field) { return a >> (field & 31u); }

static uint32_t extract(uint32_t a, uint32_t field)
{
    const uint32_t shifted = shift_right(a, field & 31u);
    const uint32_t mask = field_mask(field, 0);
    const bool negative = (shifted >> (field >> 5 & 31u) & 1u) != 0;
    return negative ? shifted | ~mask : shifted & mask;
}

static uint32_t insert(uint32_t into, uint32_t a, uint32_t field)
{
    const uint32_t mask = field_mask(field, field & 31u);
    return (into & ~mask) | ((a << (field & 31u)) & mask);
}

/* Reverses the order of groups of 1, 2 or 3 bits; of ten of the last, and the highest two bits
 * become 0. */
static uint32_t reverse_groups(uint32_t a, uint32_t radix)
{
    const uint32_t width = radix == 3 ? 1 : radix + 1;
    const uint32_t mask = (1u << width) - 1u;
    uint32_t result = 0;
    for (uint32_t i = 0; i + width <= 32; i += width) {
        result |= (a >> (32u - width - i) & mask) << i;
    }
    return result;
}

#define ALU_CASE(name, result) \
    case name:                 \
        return (result);

uint32_t htvm_iss_corev_alu(const insn_t *d, const uint32_t *x)
{
    switch (d->function) {
        COREV_ALU_OPERATIONS(ALU_CASE)
    default:
        return 0;
    }
}

uint32_t htvm_iss_corev_mul16(const insn_t *d, const uint32_t *x)
{
    const uint32_t place = (d->function & MUL16_HIGH) != 0 ? 16 : 0;
    const bool is_unsigned = (d->function & MUL16_UNSIGNED) != 0;
    const uint32_t extension = is_unsigned ? 0 : 0x8000u;
    const uint32_t a = ((RS1 >> place & 0xffffu) ^ extension) - extension;
    const uint32_t b = ((RS2 >> place & 0xffffu) ^ extension) - extension;
    uint32_t sum = a * b;
    if ((d->function & MUL16_ACCUMULATES) != 0) {
        sum += RD;
    }
    if ((d->function & MUL16_ROUNDS) != 0) {
        sum += half(IMM);
    }
    return is_unsigned ? sum >> IMM : shift_right(sum, IMM);
}
