#include "htvm_hal.h"
#include "kernel.h"

static void print_hex(uint32_t value)
{
    for (int32_t shift = 28; shift >= 0; shift -= 4) {
        htvm_putchar("0123456789abcdef"[value >> shift & 15u]);
    }
    htvm_putchar('\n');
}

int main(void)
{
    uint32_t state = 1;
    for (const region_t *region = inputs; region->bytes != 0; ++region) {
        uint8_t *bytes = region->data;
        for (size_t i = 0; i < region->bytes; ++i) {
            state = state * 1664525u + 1013904223u;
            bytes[i] = (uint8_t)(state >> 24);
        }
    }
    htvm_hal_trace(0);
    kernel();
    htvm_hal_trace(1);
    uint32_t hash = 0;
    const uint8_t *bytes = output.data;
    for (size_t i = 0; i < output.bytes; ++i) {
        hash = hash * 33u ^ bytes[i];
    }
    print_hex(hash);
    return 0;
}
