/* int8 depthwise 3x3 with a fixed-point requantization: 64-bit products and rounding. */
#include "kernel.h"

enum { C = 12, Y = 9, X = 7 };

static int8_t in[Y + 2][X + 2][C], weights[3][3][C], out[Y][X][C];
static int32_t multiplier[C];

static int8_t requantize(int32_t sum, int32_t mul)
{
    const int64_t product = (int64_t)sum * (mul | 0x40000000);
    const int32_t high = (int32_t)((product + (1 << 30)) >> 31);
    const int32_t v = (high + (1 << 6)) >> 7;
    return (int8_t)(v < -128 ? -128 : v > 127 ? 127 : v);
}

void kernel(void)
{
    for (int32_t y = 0; y < Y; ++y) {
        for (int32_t x = 0; x < X; ++x) {
            for (int32_t c = 0; c < C; ++c) {
                int32_t sum = 0;
                for (int32_t i = 0; i < 3; ++i) {
                    for (int32_t j = 0; j < 3; ++j) {
                        sum += in[y + i][x + j][c] * weights[i][j][c];
                    }
                }
                out[y][x][c] = requantize(sum, multiplier[c]);
            }
        }
    }
}

const region_t inputs[] = {
    {in, sizeof in}, {weights, sizeof weights}, {multiplier, sizeof multiplier}, {0, 0}};
const region_t output = {out, sizeof out};
