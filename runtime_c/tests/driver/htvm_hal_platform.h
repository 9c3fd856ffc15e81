/* HAL of the driver's tests: register accesses go to the models of the test's bench, and DMA
 * commands are written down. */
#ifndef HTVM_HAL_PLATFORM_H
#define HTVM_HAL_PLATFORM_H

#include <stdint.h>

uint32_t htvm_hal_addr(const void *p);
void htvm_hal_write(uint32_t addr, uint32_t value);
uint32_t htvm_hal_read(uint32_t addr);
void htvm_hal_trace(uint32_t event);

#endif
