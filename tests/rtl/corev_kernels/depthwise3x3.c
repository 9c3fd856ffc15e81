/* Depthwise int8 convolution 3x3 with a multiplier, one cv.mac per product. */
#include "corev.h"
#include "kernel.h"

enum { C = 4, Y = 8, X = 8 };

static int8_t in[C][Y + 2][X + 2], weights[C][3][3], out[C][Y][X];

void kernel(void)
{
    for (int32_t c = 0; c < C; ++c) {
        for (int32_t y = 0; y < Y; ++y) {
            for (int32_t x = 0; x < X; ++x) {
                int32_t sum = 0;
                for (int32_t i = 0; i < 3; ++i) {
                    for (int32_t j = 0; j < 3; ++j) {
                        sum = mac(in[c][y + i][x + j], weights[c][i][j], sum);
                    }
                }
                const int64_t scaled = (int64_t)sum * (1234567890 + c);
                out[c][y][x] = (int8_t)clip8((int32_t)(scaled >> 32) >> 3);
            }
        }
    }
}

const region_t inputs[] = {{in, sizeof in}, {weights, sizeof weights}, {0, 0}};
const region_t output = {out, sizeof out};
