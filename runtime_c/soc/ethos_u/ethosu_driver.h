/* What the model offers of Arm's core driver: declarations as in its header of this name, so that
 * the same generated C is linked with this model or with the driver. */
#ifndef ETHOSU_DRIVER_H
#define ETHOSU_DRIVER_H

#include <stddef.h>
#include <stdint.h>

struct ethosu_driver;

/* The one NPU; NULL while it is reserved. */
struct ethosu_driver *ethosu_reserve_driver(void);
void ethosu_release_driver(struct ethosu_driver *drv);

/* Executes a payload on regions; all of them need a size.  0, or -1 after a complaint. */
int ethosu_invoke_v3(struct ethosu_driver *drv, const void *custom_data_ptr,
                     const int custom_data_size, uint64_t *const base_addr,
                     const size_t *base_addr_size, const int num_base_addr, void *user_arg);

#endif
