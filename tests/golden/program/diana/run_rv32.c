/* small: one inference in firmware; the simulator fills the inputs and reads the rest. */
#include "htvm_hal.h"
#include "small.h"

/* Written before the start, so not to be cleared at the start. */
#define FROM_OUTSIDE __attribute__((section(".noinit"), aligned(16)))

extern int32_t htvm_run_code;
extern int8_t htvm_run_input_0[108];
extern int8_t htvm_run_output_0[5];
extern int8_t htvm_run_output_1[108];

int32_t htvm_run_code;
FROM_OUTSIDE int8_t htvm_run_input_0[108];
_Alignas(16) int8_t htvm_run_output_0[5];
_Alignas(16) int8_t htvm_run_output_1[108];

int main(void)
{
    htvm_hal_trace(1000000u);
    htvm_run_code = small_run(htvm_run_input_0, htvm_run_output_0, htvm_run_output_1);
    htvm_hal_trace(1000000u + 1u);
    return 0;
}
