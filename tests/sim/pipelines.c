/* A kernel with SIMD on eight cores, whose controller counts meanwhile, as firmware with start-up. */
#include "htvm_hal.h"
#include "htvm_simd.h"

#if !HTVM_SIMD
#error "compiled without the core's extensions"
#endif

enum { CORES = HTVM_CLUSTER_CORES, FIRST = HTVM_CLUSTER_FIRST, WORDS = 64, ROUNDS = 20 };

#define MASK (HTVM_CLUSTER_REGISTERS + 0u)
#define BARRIER (HTVM_CLUSTER_REGISTERS + 4u)
#define WAKE (HTVM_CLUSTER_REGISTERS + 8u)
#define ALL_CORES (((1u << CORES) - 1u) << FIRST)

static HTVM_HAL_L1 uint32_t data[WORDS];
static HTVM_HAL_L1 volatile int32_t sums[CORES];
int32_t results[ROUNDS];

/* Each core's words are those of its number, in a copy on its stack. */
static int32_t share(uint32_t core)
{
    volatile uint32_t copy[WORDS / CORES];
    int32_t sum = 0;
    for (uint32_t i = 0; i < WORDS / CORES; i++) {
        copy[i] = data[i * CORES + core];
    }
    for (uint32_t i = 0; i < WORDS / CORES; i++) {
        sum = htvm_dot4(copy[i], copy[WORDS / CORES - 1 - i], sum);
    }
    return sum;
}

_Noreturn void htvm_hart_main(uint32_t hart)
{
    for (;;) {
        htvm_hal_sleep();
        sums[hart - FIRST] = share(hart - FIRST);
        (void)htvm_hal_read(BARRIER);
    }
}

int main(void)
{
    htvm_hal_write(MASK, ALL_CORES | 1u);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < WORDS; i++) {
            data[i] = (round * WORDS + i) * 2654435761u;
        }
        htvm_hal_write(WAKE, ALL_CORES);
        int32_t busy = 0;
        for (volatile uint32_t i = 0; i < round; i++) {
            busy++;
        }
        (void)htvm_hal_read(BARRIER);
        results[round] = busy;
        for (uint32_t core = 0; core < CORES; core++) {
            results[round] += sums[core];
        }
    }
    return 0;
}
