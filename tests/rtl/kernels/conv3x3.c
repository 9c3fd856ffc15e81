/* int8 convolution 3x3, 8x8x8 -> 8, register-blocked by four outputs, with a shift at the end. */
#include "kernel.h"

enum { C = 8, K = 8, Y = 8, X = 8 };

static int8_t in[C][Y + 2][X + 2], weights[K][C][3][3], out[K][Y][X];

static int8_t clip(int32_t v) { return (int8_t)(v < -128 ? -128 : v > 127 ? 127 : v); }

void kernel(void)
{
    for (int32_t k = 0; k < K; k += 4) {
        for (int32_t y = 0; y < Y; ++y) {
            for (int32_t x = 0; x < X; ++x) {
                int32_t sum[4] = {0, 0, 0, 0};
                for (int32_t c = 0; c < C; ++c) {
                    for (int32_t i = 0; i < 3; ++i) {
                        for (int32_t j = 0; j < 3; ++j) {
                            const int32_t v = in[c][y + i][x + j];
                            sum[0] += v * weights[k][c][i][j];
                            sum[1] += v * weights[k + 1][c][i][j];
                            sum[2] += v * weights[k + 2][c][i][j];
                            sum[3] += v * weights[k + 3][c][i][j];
                        }
                    }
                }
                for (int32_t n = 0; n < 4; ++n) {
                    out[k + n][y][x] = clip(sum[n] >> 7);
                }
            }
        }
    }
}

const region_t inputs[] = {{in, sizeof in}, {weights, sizeof weights}, {0, 0}};
const region_t output = {out, sizeof out};
