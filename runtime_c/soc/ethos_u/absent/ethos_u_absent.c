/* Ethos-U: linked where neither Arm's core driver nor the model is, to measure what a firmware takes
 * without either.  There is no NPU, so a network returns the error for that. */
#include "ethosu_driver.h"

struct ethosu_driver *ethosu_reserve_driver(void) { return NULL; }

void ethosu_release_driver(struct ethosu_driver *drv) { (void)drv; }

int ethosu_invoke_v3(struct ethosu_driver *drv, const void *custom_data_ptr,
                     const int custom_data_size, uint64_t *const base_addr,
                     const size_t *base_addr_size, const int num_base_addr, void *user_arg)
{
    (void)drv, (void)custom_data_ptr, (void)custom_data_size, (void)base_addr;
    (void)base_addr_size, (void)num_base_addr, (void)user_arg;
    return -1;
}
