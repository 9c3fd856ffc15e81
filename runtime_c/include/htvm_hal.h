/* Hardware abstraction: all that drivers and generated code need from a platform.
 *
 * A platform provides these as static inline functions in its htvm_hal_platform.h, found through
 * the include path:
 *
 *   uint32_t htvm_hal_addr(const void *p);                 device address of an object in L2
 *   void    *htvm_hal_pointer(uint32_t addr);                the reverse, in mapped memories
 *   void     htvm_hal_write(uint32_t addr, uint32_t value);  write a device register
 *   uint32_t htvm_hal_read(uint32_t addr);                   read a device register
 *   void     htvm_hal_trace(uint32_t event);                 mark: (index << 1) | 0 begin, 1 end
 *
 * Where the SoC has other harts and the platform runs them, it defines HTVM_HAL_HARTS, and
 * htvm_hal_sleep and HTVM_HAL_L1 (see the rv32 platform).
 *
 * Writes to registers also order memory: whatever the program stored before a write that starts
 * a device is visible to the device, and what the device stored is visible once its status
 * register has been read as idle.
 *
 * What a board's port must see to (platform/port is a skeleton that compiles):
 *
 *   registers   one aligned 32-bit access each, in the program's order, neither cached, merged nor
 *               repeated; addresses are those of htvm_soc.h, and a board whose devices are
 *               elsewhere translates them in htvm_hal_write and htvm_hal_read
 *   addresses   htvm_hal_addr is given objects of static storage: constants, arenas, inputs,
 *               outputs.  All of them lie in memory the DMA reaches, and what it returns counts
 *               bytes as pointers do: addr(p + n) == addr(p) + n
 *   caches      where the core has a data cache over that memory, write what is dirty back in
 *               htvm_hal_write before a start, and drop what is old in htvm_hal_read after an idle
 *               status; or leave the memory uncached
 *   marks       may do nothing.  They come in pairs around every step, from thread context, never
 *               nested; their time is the platform's own
 *   interrupts  drivers poll and need none.  A handler may run at any time, but must not touch the
 *               devices, nor enter the model's functions with an arena in use
 *   stack       the README of an export says how much; nothing is allocated
 *   C library   memcpy and memset, and of networks with parts in reals math.h's float functions
 */
#ifndef HTVM_HAL_H
#define HTVM_HAL_H

#include <stdint.h>

#include "htvm_hal_platform.h"

#endif
