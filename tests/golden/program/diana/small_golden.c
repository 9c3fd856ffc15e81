/* small: one stored sample and what the network must make of it. */
#include "small_golden.h"

#include "small.h"

static _Alignas(16) const int8_t input_0[108] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
};

static _Alignas(16) const int8_t expected_output_0[5] = {
    0, 0, 0, 0, 0,
};

static _Alignas(16) const int8_t expected_output_1[108] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
};

static _Alignas(16) int8_t output_0[5];
static _Alignas(16) int8_t output_1[108];

small_golden_t small_golden_check(void)
{
    small_golden_t result = {0, 0, 0};
    result.code = small_run(input_0, output_0, output_1);
    if (result.code != 0) {
        return result;
    }
    for (uint32_t i = 0; i < 5u; i++) {
        result.different += output_0[i] != expected_output_0[i];
    }
    for (uint32_t i = 0; i < 108u; i++) {
        result.different += output_1[i] != expected_output_1[i];
    }
    result.elements = 113u;
    return result;
}
