/* int8 convolution 1x1, 16 pixels of 32 -> 16 channels: four channels of two pixels at a time. */
#include "corev.h"
#include "kernel.h"

enum { PIXELS = 16, C = 32, K = 16 };

static uint32_t in[PIXELS][C / 4], weights[K][C / 4];
static int8_t out[PIXELS][K];

void kernel(void)
{
    for (int32_t p = 0; p < PIXELS; p += 2) {
        for (int32_t k = 0; k < K; k += 4) {
            int32_t sum[2][4] = {{0}};
            for (int32_t c = 0; c < C / 4; ++c) {
                for (int32_t n = 0; n < 4; ++n) {
                    sum[0][n] = sdotsp4(in[p][c], weights[k + n][c], sum[0][n]);
                    sum[1][n] = sdotsp4(in[p + 1][c], weights[k + n][c], sum[1][n]);
                }
            }
            for (int32_t n = 0; n < 4; ++n) {
                out[p][k + n] = (int8_t)clip8(ADD_ROUND_SHIFT(sum[0][n], 0, 9));
                out[p + 1][k + n] = (int8_t)clip8(ADD_ROUND_SHIFT(sum[1][n], 0, 9));
            }
        }
    }
}

const region_t inputs[] = {{in, sizeof in}, {weights, sizeof weights}, {0, 0}};
const region_t output = {out, sizeof out};
