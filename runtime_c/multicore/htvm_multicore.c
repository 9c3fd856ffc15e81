/* Kernels on two equal cores without memory of their own; see htvm_parallel.h.  Operands stay where
 * they are, so there is nothing to copy.
 *
 * In simulators the second hart sleeps between kernels.  With the Pico's SDK it waits at the FIFO
 * between both cores, which then belongs to the network; LIB_PICO_MULTICORE is defined wherever
 * pico_multicore is linked.  With ESP-IDF, whose FreeRTOS schedules both cores, a task on the core that
 * does not run the network waits at a semaphore.  Elsewhere one core computes all shares, one after
 * another, with the same results: a board with another way to its second core replaces this file. */
#include "htvm_parallel.h"

#include <stdatomic.h>

#include "htvm_hal.h"

#define CORES 2u

#ifdef ESP_PLATFORM
#include "freertos/FreeRTOS.h"
#if portNUM_PROCESSORS > 1
#define HTVM_OTHER_TASK
#endif
#endif

#if defined(HTVM_HAL_HARTS) || defined(LIB_PICO_MULTICORE) || defined(HTVM_OTHER_TASK)
/* What the second core runs; it is not written again before that core has answered. */
static struct {
    htvm_parallel_kernel_t kernel;
    const void *args;
} job;
#endif

#ifdef HTVM_HAL_HARTS

/* Control registers of the simulated harts, by offset. */
#define MASK (HTVM_CLUSTER_REGISTERS + 0u)    /* the harts that take part in the barrier */
#define BARRIER (HTVM_CLUSTER_REGISTERS + 4u) /* a read waits until all have read it */
#define WAKE (HTVM_CLUSTER_REGISTERS + 8u)

#if HTVM_CLUSTER_CORES != 2
#error "this file is for two cores"
#endif

void htvm_parallel_run(htvm_parallel_kernel_t kernel, const void *args)
{
    job.kernel = kernel;
    job.args = args;
    atomic_signal_fence(memory_order_seq_cst); /* Writes of registers keep no others in front. */
    htvm_hal_write(MASK, 3u);
    htvm_hal_write(WAKE, 2u);
    kernel(args, 0, CORES);
    (void)htvm_hal_read(BARRIER);
    atomic_signal_fence(memory_order_seq_cst);
}

_Noreturn void htvm_hart_main(uint32_t hart)
{
    for (;;) {
        htvm_hal_sleep();
        atomic_signal_fence(memory_order_seq_cst);
        job.kernel(job.args, hart, CORES);
        atomic_signal_fence(memory_order_seq_cst);
        (void)htvm_hal_read(BARRIER);
    }
}

#elif defined(LIB_PICO_MULTICORE)

#include <stdbool.h>

#include "pico/multicore.h"

/* A word in the FIFO says that there is a job, or that it is done; its value means nothing. */
static void notify(void)
{
    atomic_thread_fence(memory_order_release);
    multicore_fifo_push_blocking(0);
}

static void await(void)
{
    (void)multicore_fifo_pop_blocking();
    atomic_thread_fence(memory_order_acquire);
}

/* The size of the SDK's own stack is the program's to set.  Both ends are aligned for every ABI. */
static _Alignas(16) uint32_t stack[HTVM_CLUSTER_WORKER_STACK / sizeof(uint32_t)];
_Static_assert(sizeof stack % 16u == 0, "a stack in units of 16 bytes");

static void serve(void)
{
    for (;;) {
        await();
        job.kernel(job.args, 1, CORES);
        notify();
    }
}

void htvm_parallel_run(htvm_parallel_kernel_t kernel, const void *args)
{
    static bool serving;
    if (!serving) {
        multicore_launch_core1_with_stack(serve, stack, sizeof stack);
        serving = true;
    }
    job.kernel = kernel;
    job.args = args;
    notify();
    kernel(args, 0, CORES);
    await();
}

#elif defined(HTVM_OTHER_TASK)

#include "freertos/semphr.h"
#include "freertos/task.h"

/* In bytes: what FreeRTOS needs, and what the SoC's description reserves for kernels. */
#define STACK_BYTES (configMINIMAL_STACK_SIZE + HTVM_CLUSTER_WORKER_STACK)

/* There is a job, and it is done. */
static SemaphoreHandle_t begun, ended;

static void notify(SemaphoreHandle_t semaphore)
{
    atomic_thread_fence(memory_order_release);
    (void)xSemaphoreGive(semaphore);
}

static void await(SemaphoreHandle_t semaphore)
{
    (void)xSemaphoreTake(semaphore, portMAX_DELAY);
    atomic_thread_fence(memory_order_acquire);
}

static void serve(void *nothing)
{
    (void)nothing;
    for (;;) {
        await(begun);
        job.kernel(job.args, 1, CORES);
        notify(ended);
    }
}

/* Creates the task on the other core, as urgent as this one, without allocating anything. */
static void create(void)
{
    static StaticSemaphore_t semaphores[2];
    static StackType_t stack[STACK_BYTES / sizeof(StackType_t)];
    static StaticTask_t task;
    begun = xSemaphoreCreateBinaryStatic(&semaphores[0]);
    ended = xSemaphoreCreateBinaryStatic(&semaphores[1]);
    (void)xTaskCreateStaticPinnedToCore(serve, "htvm", STACK_BYTES, NULL, uxTaskPriorityGet(NULL),
                                        stack, &task, 1 - xPortGetCoreID());
}

void htvm_parallel_run(htvm_parallel_kernel_t kernel, const void *args)
{
    if (begun == NULL) {
        create();
    }
    job.kernel = kernel;
    job.args = args;
    notify(begun);
    kernel(args, 0, CORES);
    await(ended);
}

#else

void htvm_parallel_run(htvm_parallel_kernel_t kernel, const void *args)
{
    for (uint32_t core = 0; core < CORES; core++) {
        kernel(args, core, CORES);
    }
}

#endif
