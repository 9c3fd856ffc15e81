/* Average pool with divisions that round half away from zero, then a dense layer. */
#include "kernel.h"

enum { C = 24, P = 15, K = 10 };

static int8_t in[P][C], weights[K][C], out[K];

static int8_t average(int32_t sum, int32_t count)
{
    return (int8_t)((sum > 0 ? sum + count / 2 : sum - count / 2) / count);
}

void kernel(void)
{
    int8_t pooled[C];
    for (int32_t c = 0; c < C; ++c) {
        int32_t sum = 0;
        volatile int32_t count = 0; /* counted, so that the division is one */
        for (int32_t p = 0; p < P; ++p) {
            sum += in[p][c];
            count = count + 1;
        }
        pooled[c] = average(sum, count);
    }
    for (int32_t k = 0; k < K; ++k) {
        int32_t sum = 1 << 4;
        for (int32_t c = 0; c < C; ++c) {
            sum += pooled[c] * weights[k][c];
        }
        sum >>= 5;
        out[k] = (int8_t)(sum < -128 ? -128 : sum > 127 ? 127 : sum);
    }
}

const region_t inputs[] = {{in, sizeof in}, {weights, sizeof weights}, {0, 0}};
const region_t output = {out, sizeof out};
