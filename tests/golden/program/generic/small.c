/* small: entry function, one call per step.  Generated; the interface is in small.h. */
#include "small.h"

#include <stddef.h>

#include "htvm_hal.h"
#include "small_kernels.h"
#include "small_weights.h"

static void copy(const void *from, void *to, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++) {
        ((uint8_t *)to)[i] = ((const uint8_t *)from)[i];
    }
}

/* Marks a step that cannot fail. */
#define STEP_VOID(index, call)                \
    do {                                      \
        htvm_hal_trace((index) * 2u);         \
        call;                                 \
        htvm_hal_trace((index) * 2u + 1u);    \
    } while (0)

static int misaligned(const void *pointer, uintptr_t alignment)
{
    return ((uintptr_t)pointer & (alignment - 1u)) != 0;
}

static _Alignas(16) uint8_t small_arena[SMALL_ARENA_BYTES];

int32_t small_run_in(void *arena, const int8_t *input_0, int8_t *output_0, int8_t *output_1)
{
    if (arena == NULL || input_0 == NULL || output_0 == NULL || output_1 == NULL) {
        return SMALL_ERROR_NULL;
    }
    if (misaligned(arena, 16u) || misaligned(input_0, 4u) || misaligned(output_0, 4u) ||
        misaligned(output_1, 4u)) {
        return SMALL_ERROR_ALIGN;
    }

    /* Where the intermediates lie, and which steps need them. */
    uint8_t *const base = arena;
    void *const conv_1_0_padded = base + 0; /* 192 B, steps 0 to 1 */
    void *const conv_1_0 = base + 192; /* 144 B, steps 1 to 2 */
    void *const add = base + 0; /* 144 B, steps 2 to 3 */
    void *const mean = base + 144; /* 4 B, steps 3 to 4 */
    void *const dense = base + 0; /* 5 B, steps 4 to 5 */

    /* 0: conv/1:0 [cpu] 1x6x6x3 int8 -> 1x8x8x3 int8 */
    STEP_VOID(0u, small_conv_1_0_pad(input_0, conv_1_0_padded));

    /* 1: conv/1:0 [cpu] 1x8x8x3 int8 -> 1x6x6x4 int8; 3888 MAC */
    STEP_VOID(1u, small_conv_1_0(conv_1_0_padded, small_conv_1_0_weight, small_conv_1_0_bias,
              conv_1_0));

    /* 2: conv/2:0+add [cpu] 1x6x6x4 int8 -> 1x6x6x4 int8; 576 MAC */
    STEP_VOID(2u, small_conv_2_0_add(conv_1_0, small_conv_2_0_add_weight, small_conv_1_0_bias, add));

    /* 3: mean [cpu] 1x6x6x4 int8 -> 1x1x1x4 int8 */
    STEP_VOID(3u, small_mean(add, mean));

    /* 4: dense [cpu] 1x4 int8 -> 1x5 int8; 20 MAC */
    STEP_VOID(4u, small_dense(mean, small_dense_weight, small_dense_bias, dense));

    /* 5: softmax [cpu] 1x5 int8 -> 1x5 int8 */
    STEP_VOID(5u, small_softmax(dense, small_softmax_exponential, output_0));

    /* 6: copy_same [cpu, copy] 1x108 int8 */
    STEP_VOID(6u, copy(input_0, output_1, 108u));

    return 0;
}

int32_t small_run(const int8_t *input_0, int8_t *output_0, int8_t *output_1)
{
    return small_run_in(small_arena, input_0, output_0, output_1);
}
