/* small: one inference on the host platform, inputs and outputs in files. */
#include "htvm_host.h"

#include <stdio.h>

#include "small.h"

static _Alignas(16) int8_t input_0[108];
static _Alignas(16) int8_t output_0[5];
static _Alignas(16) int8_t output_1[108];

int main(void)
{
    int failed = 0;
    failed |= htvm_host_read(0, input_0, sizeof input_0);
    if (failed) {
        return HTVM_HOST_USAGE;
    }
    const int32_t code = small_run(input_0, output_0, output_1);
    if (code != 0) {
        fprintf(stderr, "small_run returned %ld\n", (long)code);
        return 1;
    }
    failed |= htvm_host_write(0, output_0, sizeof output_0);
    failed |= htvm_host_write(1, output_1, sizeof output_1);
    return failed ? HTVM_HOST_USAGE : 0;
}
