/* What the library of a GCC for the LX106 leaves out, as the ROM of its chip has it: products and
 * quotients of integers, and sums and products of floats, rounded to the nearest, halves to even. */
#include "lx106.h"

#include <string.h>

enum { EXPONENTS = 255, LEAST = -149, SIGNIFICAND = 23 };

static const uint32_t ONE = (uint32_t)1 << SIGNIFICAND, SIGN = (uint32_t)1 << 31;
static const uint32_t INFINITE = (uint32_t)EXPONENTS << SIGNIFICAND;

typedef struct {
    uint32_t sign, significand;
    int exponent; /* of the significand's lowest bit */
    int special;  /* infinite, or no number */
} parts_t;

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static parts_t parts_of(float value)
{
    const uint32_t bits = bits_of(value);
    const int exponent = (int)(bits >> SIGNIFICAND) & EXPONENTS;
    const uint32_t fraction = bits & (ONE - 1);
    const parts_t parts = {
        .sign = bits & SIGN,
        .significand = exponent > 0 ? ONE | fraction : fraction,
        .exponent = LEAST + (exponent > 0 ? exponent - 1 : 0),
        .special = exponent == EXPONENTS,
    };
    return parts;
}

/* The float next to significand * 2^exponent. */
static float rounded(uint32_t sign, uint64_t significand, int exponent)
{
    if (significand == 0) {
        return float_of(sign);
    }
    int length = 0;
    while (length < 64 && significand >> length != 0) {
        length++;
    }
    int dropped = length - SIGNIFICAND - 1;
    if (dropped < LEAST - exponent) {
        dropped = LEAST - exponent;
    }
    uint64_t kept = 0;
    if (dropped <= 0) {
        kept = significand << -dropped;
    } else if (dropped <= length) {
        const uint64_t half = (uint64_t)1 << (dropped - 1), rest = significand & (2 * half - 1);
        kept = dropped < 64 ? significand >> dropped : 0;
        kept += rest > half || (rest == half && (kept & 1) != 0);
    }
    const int steps = exponent + dropped - LEAST; /* above the smallest exponent */
    if (steps >= EXPONENTS - 1) {
        return float_of(sign | INFINITE);
    }
    /* A significand that was rounded up to the next power of two is the next exponent's. */
    const uint32_t bits = ((uint32_t)steps << SIGNIFICAND) + (uint32_t)kept;
    return float_of(sign | (bits < INFINITE ? bits : INFINITE));
}

float htvm_lx106_float_product(float left, float right)
{
    const parts_t a = parts_of(left), b = parts_of(right);
    const uint32_t sign = a.sign ^ b.sign;
    if (a.special || b.special) {
        const int numbers = (bits_of(left) & ~SIGN) <= INFINITE && (bits_of(right) & ~SIGN) <= INFINITE;
        const int infinite = numbers && a.significand != 0 && b.significand != 0;
        return float_of(infinite ? sign | INFINITE : INFINITE | ONE >> 1);
    }
    const uint64_t product = htvm_lx106_long_product(a.significand, b.significand);
    return rounded(sign, product, a.exponent + b.exponent);
}

float htvm_lx106_float_sum(float left, float right)
{
    parts_t a = parts_of(left), b = parts_of(right);
    if (a.special || b.special) {
        const int apart = a.special && b.special && bits_of(left) != bits_of(right);
        const float one = a.special ? left : right;
        const int number = (bits_of(one) & ~SIGN) <= INFINITE;
        return apart || !number ? float_of(INFINITE | ONE >> 1) : one;
    }
    if (a.exponent < b.exponent) {
        const parts_t swapped = a;
        a = b;
        b = swapped;
    }
    /* Two bits more than the larger has decide all roundings; what is below them counts as one. */
    enum { MORE = 30 };
    const int distance = a.exponent - b.exponent;
    const uint64_t large = (uint64_t)a.significand << MORE;
    uint64_t small = (uint64_t)b.significand << MORE;
    if (distance > 0) {
        const uint64_t shifted = distance < 64 ? small >> distance : 0;
        const int lost = distance < 64 ? shifted << distance != small : small != 0;
        small = shifted | (uint64_t)lost;
    }
    const int exponent = a.exponent - MORE;
    if (a.sign == b.sign) {
        return rounded(a.sign, large + small, exponent);
    }
    if (large == small) {
        return float_of(0);
    }
    return large > small ? rounded(a.sign, large - small, exponent)
                         : rounded(b.sign, small - large, exponent);
}

uint64_t htvm_lx106_long_product(uint64_t left, uint64_t right)
{
    const uint32_t a = (uint32_t)left, b = (uint32_t)right;
    const uint32_t low = (a & 0xFFFF) * (b & 0xFFFF), high = (a >> 16) * (b >> 16);
    const uint32_t first = (a >> 16) * (b & 0xFFFF), second = (a & 0xFFFF) * (b >> 16);
    const uint32_t middle = (low >> 16) + (first & 0xFFFF) + (second & 0xFFFF);
    const uint32_t upper = high + (first >> 16) + (second >> 16) + (middle >> 16);
    const uint32_t across = (uint32_t)(left >> 32) * b + a * (uint32_t)(right >> 32);
    return (uint64_t)(upper + across) << 32 | (middle << 16 | (low & 0xFFFF));
}

uint32_t htvm_lx106_quotient(uint32_t dividend, uint32_t divisor)
{
    uint32_t quotient = 0, rest = 0;
    for (int bit = 31; bit >= 0; bit--) {
        const uint32_t carry = rest >> 31;
        rest = rest << 1 | (dividend >> bit & 1);
        if (carry != 0 || rest >= divisor) {
            rest -= divisor;
            quotient |= (uint32_t)1 << bit;
        }
    }
    return quotient;
}

#ifdef __XTENSA__
/* By the names that GCC gives them. */
uint64_t __muldi3(uint64_t left, uint64_t right);
uint64_t __umulsidi3(uint32_t left, uint32_t right);
uint32_t __udivsi3(uint32_t dividend, uint32_t divisor);
uint32_t __umodsi3(uint32_t dividend, uint32_t divisor);
int32_t __divsi3(int32_t dividend, int32_t divisor);
float __mulsf3(float left, float right);
float __addsf3(float left, float right);
float __subsf3(float left, float right);
float __floatsisf(int32_t value);
float __floatunsisf(uint32_t value);

uint64_t __muldi3(uint64_t left, uint64_t right)
{
    return htvm_lx106_long_product(left, right);
}

uint64_t __umulsidi3(uint32_t left, uint32_t right)
{
    return htvm_lx106_long_product(left, right);
}

uint32_t __udivsi3(uint32_t dividend, uint32_t divisor)
{
    return htvm_lx106_quotient(dividend, divisor);
}

uint32_t __umodsi3(uint32_t dividend, uint32_t divisor)
{
    return dividend - htvm_lx106_quotient(dividend, divisor) * divisor;
}

int32_t __divsi3(int32_t dividend, int32_t divisor)
{
    const uint32_t a = dividend < 0 ? 0U - (uint32_t)dividend : (uint32_t)dividend;
    const uint32_t b = divisor < 0 ? 0U - (uint32_t)divisor : (uint32_t)divisor;
    const uint32_t quotient = htvm_lx106_quotient(a, b);
    return (int32_t)((dividend < 0) != (divisor < 0) ? 0U - quotient : quotient);
}

float __mulsf3(float left, float right)
{
    return htvm_lx106_float_product(left, right);
}

float __addsf3(float left, float right)
{
    return htvm_lx106_float_sum(left, right);
}

float __subsf3(float left, float right)
{
    return htvm_lx106_float_sum(left, float_of(bits_of(right) ^ SIGN));
}

float __floatsisf(int32_t value)
{
    const uint32_t size = value < 0 ? 0U - (uint32_t)value : (uint32_t)value;
    return rounded(value < 0 ? SIGN : 0, size, 0);
}

float __floatunsisf(uint32_t value)
{
    return rounded(0, value, 0);
}
#endif
