/* small: checks the network against its golden on the host platform. */
#include "htvm_host.h"

#include <stdio.h>

#include "small_golden.h"

int main(void)
{
    const small_golden_t result = small_golden_check();
    if (result.code != 0) {
        printf("FAIL: small_run returned %ld\n", (long)result.code);
        return 1;
    }
    printf("%s: small: %lu of %lu output elements equal the golden\n",
           result.different == 0 ? "PASS" : "FAIL",
           (unsigned long)(result.elements - result.different), (unsigned long)result.elements);
    return result.different != 0;
}
