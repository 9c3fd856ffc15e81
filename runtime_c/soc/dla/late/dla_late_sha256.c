/* dla: SHA-256 (FIPS 180-4), for telling a network's weights from another's. */
#include <string.h>

#include "dla_late.h"

static const uint32_t ROUND[64] = {
    0x428a2f98u, 0x71374491u, 0xb5c0fbcfu, 0xe9b5dba5u, 0x3956c25bu, 0x59f111f1u, 0x923f82a4u,
    0xab1c5ed5u, 0xd807aa98u, 0x12835b01u, 0x243185beu, 0x550c7dc3u, 0x72be5d74u, 0x80deb1feu,
    0x9bdc06a7u, 0xc19bf174u, 0xe49b69c1u, 0xefbe4786u, 0x0fc19dc6u, 0x240ca1ccu, 0x2de92c6fu,
    0x4a7484aau, 0x5cb0a9dcu, 0x76f988dau, 0x983e5152u, 0xa831c66du, 0xb00327c8u, 0xbf597fc7u,
    0xc6e00bf3u, 0xd5a79147u, 0x06ca6351u, 0x14292967u, 0x27b70a85u, 0x2e1b2138u, 0x4d2c6dfcu,
    0x53380d13u, 0x650a7354u, 0x766a0abbu, 0x81c2c92eu, 0x92722c85u, 0xa2bfe8a1u, 0xa81a664bu,
    0xc24b8b70u, 0xc76c51a3u, 0xd192e819u, 0xd6990624u, 0xf40e3585u, 0x106aa070u, 0x19a4c116u,
    0x1e376c08u, 0x2748774cu, 0x34b0bcb5u, 0x391c0cb3u, 0x4ed8aa4au, 0x5b9cca4fu, 0x682e6ff3u,
    0x748f82eeu, 0x78a5636fu, 0x84c87814u, 0x8cc70208u, 0x90befffau, 0xa4506cebu, 0xbef9a3f7u,
    0xc67178f2u,
};

static uint32_t turned(uint32_t value, uint32_t bits)
{
    return value >> bits | value << (32u - bits);
}

static void add_block(uint32_t state[8], const uint8_t block[64])
{
    uint32_t w[64];
    for (uint32_t i = 0; i < 16; ++i) {
        const uint8_t *b = block + 4u * i;
        w[i] = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
    }
    for (uint32_t i = 16; i < 64; ++i) {
        const uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (turned(a, 7) ^ turned(a, 18) ^ a >> 3) + w[i - 7] +
               (turned(b, 17) ^ turned(b, 19) ^ b >> 10);
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (uint32_t i = 0; i < 64; ++i) {
        const uint32_t one = h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) +
                             ((e & f) ^ (~e & g)) + ROUND[i] + w[i];
        const uint32_t two =
            (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g;
        g = f;
        f = e;
        e = d + one;
        d = c;
        c = b;
        b = a;
        a = one + two;
    }
    const uint32_t sums[8] = {a, b, c, d, e, f, g, h};
    for (uint32_t i = 0; i < 8; ++i) {
        state[i] += sums[i];
    }
}

void dla_late_sha256(const uint8_t *data, size_t bytes, uint8_t digest[32])
{
    uint32_t state[8] = {0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au,
                         0x510e527fu, 0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u};
    const uint64_t bits = (uint64_t)bytes * 8u;
    size_t left = bytes;
    for (; left >= 64; left -= 64, data += 64) {
        add_block(state, data);
    }
    uint8_t tail[128] = {0};
    if (left > 0) {
        memcpy(tail, data, left);
    }
    tail[left] = 0x80;
    const size_t end = left < 56 ? 64 : 128;
    for (uint32_t i = 0; i < 8; ++i) {
        tail[end - 1 - i] = (uint8_t)(bits >> (8u * i));
    }
    add_block(state, tail);
    if (end == 128) {
        add_block(state, tail + 64);
    }
    for (uint32_t i = 0; i < 32; ++i) {
        digest[i] = (uint8_t)(state[i / 4] >> (24u - 8u * (i % 4)));
    }
}
