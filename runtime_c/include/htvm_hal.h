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
 *   HTVM_HAL_MEMORY(name)                                    before a constant: place it there
 *
 * If the SoC has other harts and the platform runs them, the platform defines HTVM_HAL_HARTS,
 * htvm_hal_sleep and HTVM_HAL_L1 (see the rv32 platform).
 *
 * A platform whose devices may fail to answer defines HTVM_HAL_TIMEOUT, and these (the skeleton of a
 * board's port has them):
 *
 *   int32_t htvm_hal_timeout(uint32_t polls);  called while a device is busy, with the number of
 *                                              polls so far: 0 to go on, or a code to give up
 *   int32_t htvm_hal_timed_out(void);          the code with which a driver gave up since the last
 *                                              call, or 0: what the network's entry returns
 *
 * Register writes also order memory: everything that the program stored before the write that
 * starts a device is visible to the device, and everything that the device stored is visible once
 * its status register has been read as idle.
 *
 * What a board's port must ensure (platform/port is a skeleton that compiles):
 *
 *   registers   one aligned 32-bit access each, in the program's order, neither cached, merged nor
 *               repeated; addresses are those of htvm_soc.h, and a board whose devices are
 *               elsewhere translates them in htvm_hal_write and htvm_hal_read
 *   addresses   the arguments of htvm_hal_addr have static storage: constants, arenas, inputs,
 *               outputs.  All of them must be in memory that the DMA can access, and addresses
 *               must count bytes like pointers: addr(p + n) == addr(p) + n
 *   memories    constants with HTVM_HAL_MEMORY(name) are for devices that read them in this memory of
 *               the SoC, at the addresses of htvm_soc.h; the linker script, or the program that
 *               loads the firmware, puts them there
 *   caches      if the core has a data cache over that memory, write back dirty lines in
 *               htvm_hal_write before a start, and invalidate stale ones in htvm_hal_read after an
 *               idle status; or leave the memory uncached
 *   marks       may be left empty.  Each step is enclosed by a pair; pairs are never nested and
 *               never come from an interrupt; the platform decides how long a mark takes
 *   interrupts  drivers poll and need none.  A handler may run at any time, but must not touch the
 *               devices, nor enter the model's functions with an arena in use
 *   stack       the README of an export states its size; nothing is allocated
 *   C library   memcpy and memset; for networks with float32 operators also math.h's functions
 */
#ifndef HTVM_HAL_H
#define HTVM_HAL_H

#include <stdint.h>

#define HTVM_ERROR_TIMEOUT (-64) /* a device was busy for too long */

#include "htvm_hal_platform.h"

#ifndef HTVM_HAL_TIMEOUT
/* Devices always answer: those of a simulator do. */
static inline int32_t htvm_hal_timeout(uint32_t polls)
{
    (void)polls;
    return 0;
}

static inline int32_t htvm_hal_timed_out(void)
{
    return 0;
}
#endif

#endif
