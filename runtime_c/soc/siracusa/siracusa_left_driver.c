/* The last tile of a layer on N-EUREKA, left to the next one. */
#include <string.h>

#include "cluster.h"
#include "siracusa_neureka_driver.h"
#include "siracusa_neureka_keep.h"
#include "siracusa_neureka_relu.h"

_Static_assert(sizeof(siracusa_neureka_keep_t) <= SIRACUSA_NEUREKA_LEFT_BYTES, "its arguments");
_Static_assert(sizeof(siracusa_neureka_relu_t) <= SIRACUSA_NEUREKA_LEFT_BYTES, "its arguments");

#ifndef HTVM_HAL_L1
#define HTVM_HAL_L1
#endif

/* What is left. */
static HTVM_HAL_L1 struct {
    enum { LEFT_NOTHING, LEFT_JOB, LEFT_KERNEL } what; /* to wait for */
    uint32_t number;         /* of the job */
    cluster_kernel_t kernel; /* NULL: none follows the job */
    uint32_t bytes;
    _Alignas(void *) uint32_t args[SIRACUSA_NEUREKA_LEFT_BYTES / sizeof(uint32_t)];
} left;

void siracusa_neureka_leave(uint32_t number, cluster_kernel_t kernel, const void *args,
                            uint32_t bytes)
{
    if (kernel != NULL && siracusa_neureka_is_done(number)) {
        cluster_start(kernel, args, bytes);
        left.what = LEFT_KERNEL;
        return;
    }
    left.what = LEFT_JOB;
    left.number = number;
    left.kernel = kernel;
    left.bytes = bytes;
    if (bytes != 0) {
        memcpy(left.args, args, bytes);
    }
}

void siracusa_neureka_complete(void)
{
    if (left.what == LEFT_JOB) {
        siracusa_neureka_wait_for(left.number);
        if (left.kernel != NULL) {
            cluster_run(left.kernel, left.args);
        }
    } else if (left.what == LEFT_KERNEL) {
        cluster_join();
    }
    left.what = LEFT_NOTHING;
}

uint32_t siracusa_neureka_start_behind(const siracusa_neureka_registers_t *registers,
                                       const siracusa_neureka_places_t *places)
{
    if (left.what == LEFT_JOB && left.kernel != NULL && siracusa_neureka_is_done(left.number)) {
        cluster_start(left.kernel, left.args, left.bytes);
        left.what = LEFT_KERNEL;
    }
    const uint32_t number = siracusa_neureka_prepare(registers, places);
    if (number < SIRACUSA_NEUREKA_JOB_IDS) {
        siracusa_neureka_complete();
        siracusa_neureka_trigger();
    }
    return number;
}
