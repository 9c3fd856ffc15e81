/* tiny: the driver.  It reaches devices and L1 through the HAL alone, so that the same source runs
 * as firmware and natively. */
#include "tiny_driver.h"

#include <string.h>

#include "htvm_hal.h"
#include "tiny_regs.h"

static void set(uint32_t offset, uint32_t value)
{
    htvm_hal_write(TINY_MAC_REGISTERS + offset, value);
}

void tiny_start(const tiny_product_t *product)
{
    set(TINY_REG_IN, product->input);
    set(TINY_REG_WEIGHTS, product->weights);
    set(TINY_REG_OUT, product->out);
    set(TINY_REG_ROWS, product->rows);
    set(TINY_REG_K, product->k);
    set(TINY_REG_C, product->c);
    set(TINY_REG_PITCH, product->pitch);
    set(TINY_REG_SHIFT, product->shift);
    set(TINY_REG_LOW, (uint32_t)product->low);
    set(TINY_REG_HIGH, (uint32_t)product->high);
    set(TINY_REG_START, 1);
}

int32_t tiny_finish(void)
{
    uint32_t status;
    uint32_t polls = 0;
    do {
        status = htvm_hal_read(TINY_MAC_REGISTERS + TINY_REG_STATUS);
    } while (status == TINY_STATUS_BUSY && htvm_hal_timeout(++polls) == 0);
    return status == TINY_STATUS_BUSY ? htvm_hal_timeout(polls) : (int32_t)status;
}

void tiny_load(uint32_t l1, const void *from, uint32_t bytes)
{
    memcpy(htvm_hal_pointer(HTVM_L1_BASE + l1), from, bytes);
}

void tiny_store(int8_t *to, uint32_t pitch, uint32_t l1, uint32_t rows, uint32_t bytes)
{
    const int8_t *from = htvm_hal_pointer(HTVM_L1_BASE + l1);
    if (bytes == pitch) {
        memcpy(to, from, rows * bytes);
        return;
    }
    for (uint32_t row = 0; row < rows; ++row) {
        memcpy(to + row * pitch, from + row * bytes, bytes);
    }
}
