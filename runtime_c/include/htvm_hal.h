/* Hardware abstraction: all that drivers and generated code need from a platform.
 *
 * A platform provides these as static inline functions in its htvm_hal_platform.h, found through
 * the include path:
 *
 *   uint32_t htvm_hal_addr(const void *p);                 device address of an object in L2
 *   void     htvm_hal_write(uint32_t addr, uint32_t value);  write a device register
 *   uint32_t htvm_hal_read(uint32_t addr);                   read a device register
 *   void     htvm_hal_trace(uint32_t event);                 mark: (index << 1) | 0 begin, 1 end
 *
 * Writes to registers also order memory: whatever the program stored before a write that starts
 * a device is visible to the device, and what the device stored is visible once its status
 * register has been read as idle.
 */
#ifndef HTVM_HAL_H
#define HTVM_HAL_H

#include <stdint.h>

#include "htvm_hal_platform.h"

#endif
