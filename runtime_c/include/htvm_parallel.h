/* Several cores for kernels that no accelerator takes.
 *
 * What a SoC whose description has a cluster provides: running a function on all cores, and
 * bringing operands into the memory close to them, HTVM_<memory>_SIZE bytes of which a kernel may
 * use as it likes while it runs (accelerators keep nothing there between their layers).  Only the
 * host core calls these functions, and no kernel does.
 */
#ifndef HTVM_PARALLEL_H
#define HTVM_PARALLEL_H

#include <stdint.h>

/* What each core executes with the same arguments and its own number, below `cores`. */
typedef void (*htvm_parallel_kernel_t)(const void *args, uint32_t core, uint32_t cores);

/* Runs a function on all cores and returns when all are done.  It reads nothing that another core
 * writes in the same call. */
void htvm_parallel_run(htvm_parallel_kernel_t kernel, const void *args);

/* Pointer to a byte offset in the memory close to the cores. */
void *htvm_parallel_memory(uint32_t offset);

/* Orders a copy from or to that memory; at least one byte.  Copies are executed in their order. */
void htvm_parallel_copy(void *to, const void *from, uint32_t bytes);

/* Waits until all copies are done. */
void htvm_parallel_wait(void);

/* The first of `count` iterations that are a core's; those before the next core's are, too. */
static inline int32_t htvm_parallel_begin(uint32_t count, uint32_t core, uint32_t cores)
{
    const uint32_t each = count / cores, left = count - each * cores;
    return (int32_t)(core * each + (core < left ? core : left));
}

#endif
