/* What TFLite Micro calls of the C library beyond our firmware's; none of it runs in an inference. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t count);
long long strtoll(const char *text, char **end, int base);
double frexp(double x, int *exponent);
int *__errno(void);
_Noreturn void abort(void);
_Noreturn void htvm_fault(void);

/* What newlib's mathematics reports errors to. */
int *__errno(void)
{
    static int number;
    return &number;
}

int strncmp(const char *a, const char *b, size_t count)
{
    for (; count > 0; a++, b++, count--) {
        if (*a != *b || *a == '\0') {
            return (uint8_t)*a - (uint8_t)*b;
        }
    }
    return 0;
}

int strcmp(const char *a, const char *b)
{
    return strncmp(a, b, SIZE_MAX);
}

/* Decimal digits: only of numbers that a file has as text, which none has. */
long long strtoll(const char *text, char **end, int base)
{
    long long value = 0;
    (void)base;
    for (; *text >= '0' && *text <= '9'; text++) {
        value = value * 10 + (*text - '0');
    }
    if (end != NULL) {
        *end = (char *)(uintptr_t)text;
    }
    return value;
}

/* The mantissa in [0.5, 1) of a normal number; quantized files have no others. */
double frexp(double x, int *exponent)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int biased = (int)(bits >> 52 & 0x7ffu);
    if (biased == 0) {
        *exponent = 0;
        return x;
    }
    *exponent = biased - 1022;
    bits = (bits & ~((uint64_t)0x7ff << 52)) | (uint64_t)1022 << 52;
    memcpy(&x, &bits, sizeof x);
    return x;
}

_Noreturn void abort(void)
{
    htvm_fault();
}
