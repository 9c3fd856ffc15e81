/* The host platform: the generated C, the drivers and the device models in one native program.
 *
 * The generated main.c includes this file and defines `int main(void)`, which reads its inputs,
 * runs the model and writes its outputs.  The platform keeps the real main for itself: it takes
 * the file names from the command line
 *
 *     program [--set ADDR:VALUE]... [--events FILE] INPUT... -- OUTPUT...
 *
 * and reports the devices' complaints after the model's main.  --set writes a device register
 * before anything else, for settings of device models that no program can change.
 * Exit code: that of the model's main; HTVM_HOST_COMPLAINT after a complaint; HTVM_HOST_USAGE when
 * a file or an argument is wrong.
 */
#ifndef HTVM_HOST_H
#define HTVM_HOST_H

#include <stdint.h>

#define HTVM_HOST_COMPLAINT 97
#define HTVM_HOST_USAGE 98

/* Fills dst with the input file of this index, which must have exactly `bytes` bytes, or writes
 * the output file of this index.  Return 0, or HTVM_HOST_USAGE after a message on stderr. */
int htvm_host_read(int index, void *dst, uint32_t bytes);
int htvm_host_write(int index, const void *src, uint32_t bytes);

/* Marks the bytes on both sides of an input or output, HTVM_HOST_GUARD each; says afterwards whether
 * nothing wrote there: 0, or HTVM_HOST_COMPLAINT after a message on stderr. */
#define HTVM_HOST_GUARD 512
void htvm_host_guard(uint8_t *before, uint8_t *after);
int htvm_host_intact(const char *name, const uint8_t *before, const uint8_t *after);

/* Device address of an object of the program (static storage only: the models cannot see stack
 * and heap): in L2, or in the memory that HTVM_HAL_MEMORY placed it in.  0, which no device accepts, for any other pointer. */
uint32_t htvm_host_address(const void *p);

/* Pointer to a device address in L2 or in an L1 that cores reach themselves; NULL elsewhere. */
void *htvm_host_pointer(uint32_t addr);

void htvm_host_register_write(uint32_t addr, uint32_t value);
uint32_t htvm_host_register_read(uint32_t addr);

/* In a library: one use of the machine, with devices as after a reset.  htvm_host_begin returns 0, or
 * 1 if there is no memory; htvm_host_end returns what a device complained of, valid until the next
 * begin, or NULL. */
int htvm_host_begin(void);
const char *htvm_host_end(void);

#if !defined(HTVM_HOST_IMPLEMENTATION) && !defined(HTVM_HOST_LIBRARY)
#define main htvm_program_main
#endif

int htvm_program_main(void);

#endif
