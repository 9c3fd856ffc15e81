/* tiny: the driver.  It reaches devices through the HAL alone, so that the same source runs
 * as firmware and natively. */
#include "tiny_driver.h"

#include "htvm_hal.h"
#include "tiny_regs.h"

static void set(uint32_t offset, uint32_t value)
{
    htvm_hal_write(TINY_MAC_REGISTERS + offset, value);
}

void tiny_start(const tiny_product_t *product)
{
    set(TINY_MAC_REG_IN, product->input);
    set(TINY_MAC_REG_WEIGHTS, product->weights);
    set(TINY_MAC_REG_OUT, product->out);
    set(TINY_MAC_REG_ROWS, product->rows);
    set(TINY_MAC_REG_K, product->k);
    set(TINY_MAC_REG_C, product->c);
    set(TINY_MAC_REG_PITCH, product->pitch);
    set(TINY_MAC_REG_SHIFT, product->shift);
    set(TINY_MAC_REG_LOW, (uint32_t)product->low);
    set(TINY_MAC_REG_HIGH, (uint32_t)product->high);
    set(TINY_MAC_REG_START, 1);
}

int32_t tiny_finish(void)
{
    uint32_t status;
    uint32_t polls = 0;
    do {
        status = htvm_hal_read(TINY_MAC_REGISTERS + TINY_MAC_REG_STATUS);
    } while (status == TINY_STATUS_BUSY && htvm_hal_timeout(++polls) == 0);
    return status == TINY_STATUS_BUSY ? htvm_hal_timeout(polls) : (int32_t)status;
}

static uint32_t transfer(uint32_t l1, uint32_t l2, uint32_t pitch, uint32_t rows, uint32_t bytes,
                         uint32_t direction)
{
    const uint32_t started = htvm_hal_read(TINY_DMA_REGISTERS + TINY_DMA_REG_STARTED);
    tiny_wait(started + 1u - TINY_DMA_QUEUE_DEPTH); /* until the queue has room */
    htvm_hal_write(TINY_DMA_REGISTERS + TINY_DMA_REG_L1, l1);
    htvm_hal_write(TINY_DMA_REGISTERS + TINY_DMA_REG_L2, l2);
    htvm_hal_write(TINY_DMA_REGISTERS + TINY_DMA_REG_PITCH, pitch);
    htvm_hal_write(TINY_DMA_REGISTERS + TINY_DMA_REG_ROWS, rows);
    htvm_hal_write(TINY_DMA_REGISTERS + TINY_DMA_REG_BYTES, bytes);
    htvm_hal_write(TINY_DMA_REGISTERS + TINY_DMA_REG_START, direction);
    return htvm_hal_read(TINY_DMA_REGISTERS + TINY_DMA_REG_STARTED); /* none more, if refused */
}

uint32_t tiny_load(uint32_t l1, const void *from, uint32_t bytes)
{
    return transfer(l1, htvm_hal_addr(from), bytes, 1, bytes, TINY_DMA_IN);
}

uint32_t tiny_store(int8_t *to, uint32_t pitch, uint32_t l1, uint32_t rows, uint32_t bytes)
{
    return transfer(l1, htvm_hal_addr(to), pitch, rows, bytes, TINY_DMA_OUT);
}

void tiny_wait(uint32_t ticket)
{
    uint32_t polls = 0;
    /* Numbers may wrap: only their difference tells which is later. */
    while ((int32_t)(htvm_hal_read(TINY_DMA_REGISTERS + TINY_DMA_REG_DONE) - ticket) < 0 &&
           htvm_hal_timeout(++polls) == 0) {
    }
}

void tiny_wait_all(void)
{
    tiny_wait(htvm_hal_read(TINY_DMA_REGISTERS + TINY_DMA_REG_STARTED));
}
