/* Several cores for kernels that no accelerator takes.
 *
 * A SoC with a cluster in its description provides this interface: running a function on all
 * cores, and copying operands to the memory close to them.  A kernel may use HTVM_<memory>_SIZE
 * bytes of it freely while it runs (accelerators keep nothing there between their layers).  Only
 * the host core calls these functions, and never from a kernel.
 */
#ifndef HTVM_PARALLEL_H
#define HTVM_PARALLEL_H

#include <stdint.h>

/* Executed by each core with the same arguments and its own number, below `cores`. */
typedef void (*htvm_parallel_kernel_t)(const void *args, uint32_t core, uint32_t cores);

/* Runs a function on all cores and returns when all are done.  The function must not read anything
 * that another core writes in the same call. */
void htvm_parallel_run(htvm_parallel_kernel_t kernel, const void *args);

/* Pointer to a byte offset in the memory close to the cores. */
void *htvm_parallel_memory(uint32_t offset);

/* Starts a copy from or to that memory, of at least one byte.  Copies are executed in order. */
void htvm_parallel_copy(void *to, const void *from, uint32_t bytes);

/* Waits until all copies are done. */
void htvm_parallel_wait(void);

/* The first of `count` iterations for a core, which runs all before the next core's first one. */
static inline int32_t htvm_parallel_begin(uint32_t count, uint32_t core, uint32_t cores)
{
    const uint32_t each = count / cores, left = count - each * cores;
    return (int32_t)(core * each + (core < left ? core : left));
}

#endif
