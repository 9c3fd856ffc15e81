/* small: checks the network against its golden on a board; see runtime/platform/port. */
#include "htvm_port.h"
#include "small_golden.h"

int main(void)
{
    htvm_port_init();
    const small_golden_t result = small_golden_check();
    htvm_port_result(result.code, result.elements, result.different);
    return result.code != 0 || result.different != 0;
}
