/* Transfers; see cluster_dma.h.  A ticket is the transfer's number; the DMA counts them, too. */
#include "cluster_dma.h"

#include "htvm_hal.h"
#include "snitch_dma_core.h"
#include "snitch_regs.h"

#define REG(offset) (SNITCH_ITA_DMA_REGISTERS + (offset))

static void program(const cluster_dma_t *what)
{
    htvm_hal_write(REG(SNITCH_DMA_SOURCE), htvm_hal_addr(what->from));
    htvm_hal_write(REG(SNITCH_DMA_DEST), htvm_hal_addr(what->to));
    htvm_hal_write(REG(SNITCH_DMA_BYTES), what->bytes);
    htvm_hal_write(REG(SNITCH_DMA_ROWS), what->rows);
    htvm_hal_write(REG(SNITCH_DMA_SOURCE_STRIDE), what->from_stride);
    htvm_hal_write(REG(SNITCH_DMA_DEST_STRIDE), what->to_stride);
    htvm_hal_write(REG(SNITCH_DMA_START), 1);
}

/* Polls until all orders up to this one are done. */
static void await(uint32_t ticket)
{
    uint32_t polls = 0;
    while ((int32_t)(htvm_hal_read(REG(SNITCH_REG_COMPLETED)) - ticket) < 0 &&
           htvm_hal_timeout(++polls) == 0) {
    }
}

#ifdef HTVM_HAL_HARTS

#define DMA_CORE HTVM_CLUSTER_CORES /* the hart after the compute cores */
#define WAKE (HTVM_CLUSTER_REGISTERS + 8u)

enum { PLACES = 8 };

/* Transfers on their way to the DMA core: a ring, in which the number determines the place. */
static HTVM_HAL_L1 struct {
    cluster_dma_t order[PLACES];
    volatile uint32_t ordered; /* number of transfers started by hart 0 */
} queue;

uint32_t cluster_dma_start(const cluster_dma_t *what)
{
    const uint32_t ticket = queue.ordered + 1u;
    await(ticket - PLACES); /* until its place is free */
    queue.order[ticket % PLACES] = *what;
    __asm__ volatile("" ::: "memory"); /* write the transfer before counting it */
    queue.ordered = ticket;
    htvm_hal_write(WAKE, 1u << DMA_CORE);
    return ticket;
}

void cluster_dma_wait(uint32_t ticket)
{
    await(ticket);
}

void cluster_dma_wait_all(void)
{
    await(queue.ordered);
}

_Noreturn void snitch_dma_serve(void)
{
    uint32_t served = 0;
    for (;;) {
        htvm_hal_sleep();
        while (served != queue.ordered) {
            served++;
            await(served - SNITCH_ITA_DMA_QUEUE_DEPTH); /* until the DMA has room */
            program(&queue.order[served % PLACES]);
        }
    }
}

#else

uint32_t cluster_dma_start(const cluster_dma_t *what)
{
    uint32_t polls = 0;
    while (htvm_hal_read(REG(SNITCH_REG_ROOM)) == 0) {
        if (htvm_hal_timeout(++polls) != 0) {
            return htvm_hal_read(REG(SNITCH_REG_STARTED));
        }
    }
    program(what);
    return htvm_hal_read(REG(SNITCH_REG_STARTED)); /* it has not grown if the order was refused */
}

void cluster_dma_wait(uint32_t ticket)
{
    await(ticket);
}

void cluster_dma_wait_all(void)
{
    await(htvm_hal_read(REG(SNITCH_REG_STARTED)));
}

#endif
