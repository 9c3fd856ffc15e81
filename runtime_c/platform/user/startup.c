/* Start of a firmware for a RISC-V core with vectors, as a process of QEMU's user mode: there the
 * vector unit is switched on, and a fault ends the process.  At the end, what is in RAM is written to
 * the standard output. */
#include <stddef.h>
#include <stdint.h>

extern uint32_t __data_load[], __data_start[], __data_end[], __bss_start[], __bss_end[];
extern uint8_t __noinit_end[], __stack_low[], __stack_top[];

int main(void);
void htvm_begin(void);
_Noreturn void htvm_done(int code);

/* The numbers of Linux's calls on RISC-V. */
enum { WRITE = 64, EXIT = 93, STANDARD_OUTPUT = 1 };

/* The linker script keeps this section, and puts it first. */
__asm__(".section .vectors, \"ax\"\n"
        ".globl htvm_reset\n"
        "htvm_reset:\n"
        "    la sp, __stack_top\n"
        "    tail htvm_begin\n"
        ".text\n");

static long call(long number, long first, long second, long third)
{
    register long a7 __asm__("a7") = number;
    register long a0 __asm__("a0") = first;
    register long a1 __asm__("a1") = second;
    register long a2 __asm__("a2") = third;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a7), "r"(a1), "r"(a2) : "memory");
    return a0;
}

static void write_all(const uint8_t *from, const uint8_t *end)
{
    while (from < end) {
        const long written = call(WRITE, STANDARD_OUTPUT, (long)from, end - from);
        if (written <= 0) {
            call(EXIT, 1, 0, 0);
        }
        from += written;
    }
}

_Noreturn __attribute__((noinline, used)) void htvm_done(int code)
{
    write_all((const uint8_t *)__data_start, __noinit_end);
    write_all(__stack_low, __stack_top);
    for (;;) {
        call(EXIT, code, 0, 0);
    }
}

__attribute__((used)) void htvm_begin(void)
{
    const uint32_t *from = __data_load;
    for (uint32_t *to = __data_start; to < __data_end; to++) {
        *to = *from++;
    }
    for (uint32_t *to = __bss_start; to < __bss_end; to++) {
        *to = 0;
    }
    htvm_done(main());
}
