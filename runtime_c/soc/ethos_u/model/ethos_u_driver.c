/* Ethos-U: the model in place of Arm's core driver. */
#include "ethosu_driver.h"

#include "htvm_ethos_u.h"

#ifndef HTVM_ETHOS_U_WORKSPACE
#define HTVM_ETHOS_U_WORKSPACE (256 * 1024)
#endif
#ifdef HTVM_ETHOS_U_UNCHECKED
#define CHECKED false
#else
#define CHECKED true
#endif

_Static_assert(HTVM_ETHOS_U_WORKSPACE >= HTVM_ETHOS_U_WORKSPACE_LEAST,
               "HTVM_ETHOS_U_WORKSPACE is less than HTVM_ETHOS_U_WORKSPACE_LEAST");

struct ethosu_driver {
    bool reserved, complained;
    htvm_ethos_u_result_t result, first;
    _Alignas(16) uint8_t workspace[HTVM_ETHOS_U_WORKSPACE];
};

/* The driver's interface has one NPU in it, without an argument. */
static struct ethosu_driver npu;

struct ethosu_driver *ethosu_reserve_driver(void)
{
    if (npu.reserved) {
        return NULL;
    }
    npu.reserved = true;
    return &npu;
}

void ethosu_release_driver(struct ethosu_driver *drv)
{
    if (drv != NULL) {
        drv->reserved = false;
    }
}

int ethosu_invoke_v3(struct ethosu_driver *drv, const void *custom_data_ptr,
                     const int custom_data_size, uint64_t *const base_addr,
                     const size_t *base_addr_size, const int num_base_addr, void *user_arg)
{
    uint8_t *base[HTVM_ETHOS_U_REGIONS] = {NULL};
    (void)user_arg;
    if (drv == NULL || base_addr == NULL || custom_data_size < 0 || num_base_addr < 0) {
        return -1;
    }
    for (int i = 0; i < num_base_addr && i < HTVM_ETHOS_U_REGIONS; ++i) {
        base[i] = (uint8_t *)(uintptr_t)base_addr[i];
    }
    const htvm_ethos_u_call_t call = {
        .payload = custom_data_ptr,
        .payload_bytes = (size_t)custom_data_size,
        .base = base,
        .bytes = base_addr_size,
        .regions = (uint32_t)num_base_addr,
        .checked = CHECKED,
        .workspace = drv->workspace,
        .workspace_bytes = sizeof drv->workspace,
    };
    if (htvm_ethos_u_run(&call, &drv->result) == HTVM_ETHOS_U_DONE) {
        return 0;
    }
    if (!drv->complained) {
        drv->complained = true;
        drv->first = drv->result;
    }
    return -1;
}

const char *htvm_ethos_u_complaint(void) { return npu.complained ? npu.first.complaint : NULL; }
