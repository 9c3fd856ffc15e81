/* dla: what generated code calls. */
#ifndef DLA_DRIVER_H
#define DLA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "dla_isa.h"

/* Executes `count` words of a command stream and waits until the last instruction has finished.
 * Transfers start from the addresses in `slots`, which may be NULL where nothing refers to them.
 * Registers keep their values from call to call.  0, or DLA_STATUS_ERROR if the accelerator
 * refused. */
int32_t dla_run(const uint32_t *words, uint32_t count, const void *const slots[DLA_SLOTS]);

#endif
