/* Start of a firmware on a Cortex-M core: vectors, variables, main, end of run. */
#include <stdint.h>

extern uint32_t __stack_top[], __data_load[], __data_start[], __data_end[];
extern uint32_t __bss_start[], __bss_end[];

int main(void);
_Noreturn void htvm_reset(void);
_Noreturn void htvm_fault(void);
_Noreturn void htvm_done(int code);

/* Whoever runs the firmware watches for its arrival here. */
_Noreturn __attribute__((noinline, used)) void htvm_done(int code)
{
    for (;;) {
        __asm__ volatile("" : : "r"(code) : "memory");
    }
}

_Noreturn __attribute__((noinline, used)) void htvm_fault(void)
{
    for (;;) {
        __asm__ volatile("");
    }
}

_Noreturn __attribute__((used)) void htvm_reset(void)
{
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
    /* Floating point and vectors are switched off until the coprocessors 10 and 11 are enabled. */
    *(volatile uint32_t *)0xE000ED88u |= 0xFu << 20;
    __asm__ volatile("dsb\n isb" ::: "memory");
#endif
    const uint32_t *from = __data_load;
    for (uint32_t *to = __data_start; to < __data_end; to++) {
        *to = *from++;
    }
    for (uint32_t *to = __bss_start; to < __bss_end; to++) {
        *to = 0;
    }
    htvm_done(main());
}

typedef union {
    uint32_t *stack;
    void (*handler)(void);
} vector_t;

/* Stack, reset, and the faults: NMI, hard, memory, bus, usage. */
__attribute__((section(".vectors"), used)) static const vector_t vectors[16] = {
    {.stack = __stack_top}, {.handler = htvm_reset}, {.handler = htvm_fault},
    {.handler = htvm_fault}, {.handler = htvm_fault}, {.handler = htvm_fault},
    {.handler = htvm_fault},
};
