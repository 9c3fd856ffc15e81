/* Start of a firmware for a RISC-V core with vectors or an Xtensa core, as a process of QEMU's user
 * mode: there a vector unit is switched on, and a fault ends the process.  At the end, what is in RAM
 * is written to the standard output. */
#include <stddef.h>
#include <stdint.h>

extern uint32_t __data_load[], __data_start[], __data_end[], __bss_start[], __bss_end[];
extern uint8_t __noinit_end[], __stack_low[], __stack_top[];

int main(void);
void htvm_begin(void);
_Noreturn void htvm_done(int code);

enum { STANDARD_OUTPUT = 1 };

/* The linker script keeps the section .vectors, and puts it first.  WRITE and EXIT are the numbers of
 * Linux's calls. */
#ifdef __XTENSA__
enum { WRITE = 13, EXIT = 118 };

__asm__(".section .vectors, \"ax\"\n"
        "    .literal_position\n"
        ".globl htvm_reset\n"
        "htvm_reset:\n"
        "    movi a1, __stack_top\n"
        "    movi a0, htvm_begin\n"
        "    jx a0\n"
        ".text\n");

static long call(long number, long first, long second, long third)
{
    register long a2 __asm__("a2") = number;
    register long a6 __asm__("a6") = first;
    register long a3 __asm__("a3") = second;
    register long a4 __asm__("a4") = third;
    __asm__ volatile("syscall" : "+r"(a2) : "r"(a6), "r"(a3), "r"(a4) : "memory");
    return a2;
}
#else
enum { WRITE = 64, EXIT = 93 };

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
#endif

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
