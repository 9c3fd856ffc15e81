/* small: interface of the generated network.
 *
 * small_run computes the outputs from the inputs, in 11 steps.  It returns 0, one of the
 * errors below, or the first nonzero code of a driver.  Nothing is allocated at run time:
 * intermediates lie in an arena whose layout was planned ahead.  small_run uses one static arena,
 * so it must not be entered twice at once; small_run_in is given its arena, and may run as often
 * at once as there are arenas (on a SoC with accelerators: as often as these are free).
 * Inputs are only read.  What the pointers point to must not overlap.
 */
#ifndef SMALL_H
#define SMALL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SMALL_ARENA_BYTES 528u /* no smaller one exists */
#define SMALL_CONSTANT_BYTES 2160u
#define SMALL_STEPS 11u
#define SMALL_INPUT_0_ELEMENTS 108u
#define SMALL_OUTPUT_0_ELEMENTS 5u
#define SMALL_OUTPUT_1_ELEMENTS 108u

#define SMALL_ERROR_NULL (-1)  /* a pointer is NULL */
#define SMALL_ERROR_ALIGN (-2) /* the arena is not 16-byte aligned, or a tensor not to 4 bytes */

/* input_0: "input_0", 1x6x6x3 int8 */
/* output_0: "softmax", 1x5 int8 */
/* output_1: "same", 1x108 int8 */
int32_t small_run(const int8_t *input_0, int8_t *output_0, int8_t *output_1);

/* The same in an arena of the caller, SMALL_ARENA_BYTES at a 16-byte aligned address. */
int32_t small_run_in(void *arena, const int8_t *input_0, int8_t *output_0, int8_t *output_1);

#ifdef __cplusplus
}
#endif

#endif
