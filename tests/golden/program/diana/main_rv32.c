/* small: checks the network against its golden in firmware; prints through the simulator. */
#include "htvm_hal.h"
#include "small_golden.h"

static void print(const char *text)
{
    for (; *text != '\0'; text++) {
        htvm_putchar(*text);
    }
}

int main(void)
{
    const small_golden_t result = small_golden_check();
    const int failed = result.code != 0 || result.different != 0;
    print(failed ? "FAIL: small\n" : "PASS: small\n");
    return failed;
}
