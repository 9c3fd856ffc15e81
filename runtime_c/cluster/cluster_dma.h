/* Snitch cluster: transfers between L2 and L1 (or within either).
 *
 * Transfers are executed in the order in which they are started, while the caller goes on.  Only
 * hart 0 may call these functions; on rv32 the DMA core takes its transfers from a queue in L1 and
 * programs the DMA, on the host platform the caller programs it.
 */
#ifndef CLUSTER_DMA_H
#define CLUSTER_DMA_H

#include <stdint.h>

/* `rows` rows of `bytes` bytes; row r is read from `from` + r * from_stride and written to `to` +
 * r * to_stride.  Strides are in bytes, and ignored if there is one row; bytes and
 * rows are at least 1. */
typedef struct {
    void *to;
    const void *from;
    uint32_t bytes, rows;
    uint32_t to_stride, from_stride;
} cluster_dma_t;

/* Starts a transfer and returns its ticket.  Waits while the queue is full.  The descriptor is
 * copied; the bytes to move must not change until the transfer is done. */
uint32_t cluster_dma_start(const cluster_dma_t *what);

/* Starts a transfer for each of `planes` blocks of rows, `to_stride` and `from_stride` bytes apart, and
 * returns the ticket of the last. */
static inline uint32_t cluster_dma_start_planes(const cluster_dma_t *what, uint32_t planes,
                                                uint32_t to_stride, uint32_t from_stride)
{
    cluster_dma_t plane = *what;
    uint32_t ticket = cluster_dma_start(&plane);
    for (uint32_t n = 1; n < planes; n++) {
        plane.to = (uint8_t *)plane.to + to_stride;
        plane.from = (const uint8_t *)plane.from + from_stride;
        ticket = cluster_dma_start(&plane);
    }
    return ticket;
}

/* Waits until the transfer with this ticket, and thus all before it, are done. */
void cluster_dma_wait(uint32_t ticket);

/* Waits until all transfers are done. */
void cluster_dma_wait_all(void);

#endif
