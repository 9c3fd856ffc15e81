/* Computes convolutions of htvm_native.h on request, for tests in Python.
 *
 * A request is int32 numbers in this machine's byte order: 0 for htvm_native_conv or 1 for
 * htvm_native_depthwise, whether there is a bias, and the fields of htvm_native_conv_t; then input,
 * weights and bias.  The answer is the result.  Before the first one, 32 bytes have the kind.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "htvm_native.h"

/* Returns the numbers or bytes of an operand in memory of exactly their size. */
static void *operand(size_t bytes)
{
    void *const made = malloc(bytes);
    if (made == NULL || fread(made, 1, bytes, stdin) != bytes) {
        (void)fprintf(stderr, "an incomplete request\n");
        exit(1);
    }
    return made;
}

int main(void)
{
    char kind[32] = {0};
    (void)snprintf(kind, sizeof kind, "%s", htvm_native_kind());
    (void)fwrite(kind, 1, sizeof kind, stdout);
    (void)fflush(stdout);
    int32_t head[2];
    while (fread(head, sizeof head, 1, stdin) == 1) {
        htvm_native_conv_t *const conv = operand(sizeof *conv);
        const size_t map = (size_t)conv->rows * (size_t)conv->columns;
        const size_t filter = (size_t)conv->fy * (size_t)conv->fx;
        const size_t channels = (size_t)conv->channels, filters = (size_t)conv->filters;
        int8_t *const in = operand(channels * (size_t)conv->height * (size_t)conv->width);
        int8_t *const weight = operand(filters * filter * (head[0] == 0 ? channels : 1));
        int32_t *const bias = head[1] == 0 ? NULL : operand(filters * sizeof *bias);
        int32_t *const out = malloc(filters * map * sizeof *out);
        if (out == NULL) {
            return 1;
        }
        if (head[0] == 0) {
            htvm_native_conv(in, weight, bias, out, conv);
        } else {
            htvm_native_depthwise(in, weight, bias, out, conv);
        }
        (void)fwrite(out, sizeof *out, filters * map, stdout);
        (void)fflush(stdout);
        free(conv);
        free(in);
        free(weight);
        free(bias);
        free(out);
    }
    return 0;
}
