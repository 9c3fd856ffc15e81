/* What main_bare.c needs from a board, in addition to the HAL. */
#ifndef HTVM_PORT_H
#define HTVM_PORT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Clocks, power and whatever else must be on before the network runs. */
void htvm_port_init(void);

/* Reports the outcome: `code` is what the network's entry function returned; if it is 0,
 * `different` of `elements` output elements are wrong. */
void htvm_port_result(int32_t code, uint32_t elements, uint32_t different);

#ifdef __cplusplus
}
#endif

#endif
