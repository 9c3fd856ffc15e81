/* A matrix of 32x32 bytes transposed, four by four with shuffles. */
#include "corev.h"
#include "kernel.h"

enum { N = 32 };

static uint32_t in[N][N / 4], out[N][N / 4];

static uint32_t shuffle2(uint32_t first, uint32_t second, uint32_t selector)
{
    __asm__(COREV("cv.shuffle2.b %0, %1, %2") : "+r"(first) : "r"(second), "r"(selector));
    return first;
}

void kernel(void)
{
    for (int32_t y = 0; y < N; y += 4) {
        for (int32_t x = 0; x < N; x += 4) {
            const uint32_t a = in[y][x / 4], b = in[y + 1][x / 4];
            const uint32_t c = in[y + 2][x / 4], d = in[y + 3][x / 4];
            const uint32_t ab_low = shuffle2(a, b, 0x05010400), ab_high = shuffle2(a, b, 0x07030602);
            const uint32_t cd_low = shuffle2(c, d, 0x05010400), cd_high = shuffle2(c, d, 0x07030602);
            out[x][y / 4] = shuffle2(ab_low, cd_low, 0x05040100);
            out[x + 1][y / 4] = shuffle2(ab_low, cd_low, 0x07060302);
            out[x + 2][y / 4] = shuffle2(ab_high, cd_high, 0x05040100);
            out[x + 3][y / 4] = shuffle2(ab_high, cd_high, 0x07060302);
        }
    }
}

const region_t inputs[] = {{in, sizeof in}, {0, 0}};
const region_t output = {out, sizeof out};
