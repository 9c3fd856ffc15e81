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

/* Marks the step for whoever traces, and gives up at the first nonzero code. */
#define STEP(index, call)                     \
    do {                                      \
        htvm_hal_trace((index) * 2u);         \
        const int32_t code = (call);          \
        htvm_hal_trace((index) * 2u + 1u);    \
        if (code != 0) {                      \
            return code;                      \
        }                                     \
    } while (0)

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
    void *const input_0_core = base + 0; /* 288 B, steps 0 to 1 */
    void *const add_core = base + 0; /* 384 B, steps 3 to 4 */
    void *const add = base + 384; /* 144 B, steps 4 to 5 */
    void *const mean = base + 0; /* 4 B, steps 5 to 6 */
    void *const flat_core = base + 16; /* 16 B, steps 6 to 7 */
    void *const dense_core = base + 0; /* 16 B, steps 7 to 8 */
    void *const dense = base + 16; /* 5 B, steps 8 to 9 */

    /* 0: input_0 [cpu, prologue] layout; 303 cycles predicted */
    STEP(0u, small_input_0_to_core(input_0, input_0_core));

    /* 1: conv/1:0 [digital] 3x6x6 -> 4x6x6, 3x3; 3888 MAC, 932 cycles predicted */
    STEP(1u, small_conv_1_0(input_0_core));

    /* 2: conv/2:0 [digital] 4x6x6 -> 4x6x6, 1x1; 576 MAC, 697 cycles predicted */
    STEP(2u, small_conv_2_0());

    /* 3: add [digital] 4x6x6; 583 cycles predicted */
    STEP(3u, small_add(add_core));

    /* 4: add [cpu, epilogue] layout; 308 cycles predicted */
    STEP(4u, small_add_from_core(add_core, add));

    /* 5: mean [cpu] 1x6x6x4 int8 -> 1x1x1x4 int8 */
    STEP_VOID(5u, small_mean(add, mean));

    /* 6: flat [cpu, prologue] layout; 16 cycles predicted */
    STEP(6u, small_flat_to_core(mean, flat_core));

    /* 7: dense [digital] 4 -> 5; 20 MAC, 622 cycles predicted */
    STEP(7u, small_dense(flat_core, dense_core));

    /* 8: dense [cpu, epilogue] layout; 15 cycles predicted */
    STEP(8u, small_dense_from_core(dense_core, dense));

    /* 9: softmax [cpu] 1x5 int8 -> 1x5 int8 */
    STEP_VOID(9u, small_softmax(dense, small_softmax_exponential, output_0));

    /* 10: copy_same [cpu, copy] 1x108 int8 */
    STEP_VOID(10u, copy(input_0, output_1, 108u));

    return 0;
}

int32_t small_run(const int8_t *input_0, int8_t *output_0, int8_t *output_1)
{
    return small_run_in(small_arena, input_0, output_0, output_1);
}
