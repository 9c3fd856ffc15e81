/* Code shared by the device models of the cluster's DMA and ITA, and private to this folder.
 *
 * Both take orders into a queue and execute them one after another.  The time at which an order is
 * done is known when it is given; its bytes are moved, or its result is written, only at that time.
 * Harts access L1, too, so the bytes that an order touches are checked when it is given, against
 * the orders of the other device, and when it is done: nobody may have written them since. */
#ifndef SNITCH_MODEL_H
#define SNITCH_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "htvm_soc_log.h"
#include "htvm_soc_model.h"
#include "snitch_arithmetic.h"
#include "snitch_regs.h"

#define SNITCH_REGISTERS 32u

/* Rows of bytes at device addresses that an order reads or writes. */
typedef struct {
    const char *role; /* in messages */
    uint32_t first, bytes, rows, stride;
    bool write;
    uint8_t *memory; /* of the first row */
    uint8_t *before; /* the rows, packed, when it was given or its predecessors done */
} snitch_area_t;

/* The largest number of areas of an order: two operands, a bias, a result. */
#define SNITCH_AREAS 4u

/* One order that is not done yet. */
typedef struct {
    snitch_area_t areas[SNITCH_AREAS];
    size_t area_count;
    uint64_t start;   /* when it begins to access L1 */
    uint64_t free_at; /* when the device may begin with the next */
    uint64_t end;     /* when the result is there */
    snitch_product_t product; /* only for ITA */
} snitch_order_t;

#define SNITCH_ORDERS                                                        \
    (SNITCH_ITA_DMA_QUEUE_DEPTH > SNITCH_ITA_ITA_CONTEXTS                    \
         ? SNITCH_ITA_DMA_QUEUE_DEPTH                                        \
         : SNITCH_ITA_ITA_CONTEXTS)

/* One device: its registers by word, and its orders, oldest first. */
typedef struct {
    const char *name; /* in messages */
    const char *unit; /* in events */
    uint32_t base, start; /* address of the registers, offset of the last of them */
    uint32_t reg[SNITCH_REGISTERS];
    uint32_t error;
    snitch_order_t queue[SNITCH_ORDERS];
    size_t queued, depth;
    uint32_t started, completed;
} snitch_device_t;

struct htvm_soc {
    htvm_bus_t bus;
    uint64_t now; /* of the latest access */
    snitch_device_t dma, ita;
    snitch_statistics_t statistics;
    /* Columns of the last QK, which an AV behind it must match; 0 if there was no QK. */
    uint32_t scored_cols;
    bool turned; /* whether an AV followed it */
    /* Without the times in which a hart waits: several poll at once, and only the simulator knows
     * which. */
    htvm_log_t log;
};

static inline uint32_t snitch_blocks(uint32_t value, uint32_t step)
{
    return value / step + (value % step != 0);
}

/* Value of a register given its byte offset. */
static inline uint32_t snitch_reg(const snitch_device_t *device, uint32_t offset)
{
    return device->reg[offset / 4u];
}

/* Returns the number of bytes from the first of an area to the last. */
static inline uint64_t snitch_span(const snitch_area_t *area)
{
    return (uint64_t)(area->rows - 1u) * area->stride + area->bytes;
}

/* The rows of an area, for the log. */
static inline htvm_rows_t snitch_rows(const snitch_area_t *area)
{
    return (htvm_rows_t){area->rows, area->stride, 1, 0, area->bytes};
}

/* Puts the device into its error state and keeps the message if it is the first of the run.
 * Always returns false, so that checks can end with `return snitch_complain(...)`. */
bool snitch_complain(htvm_soc_t *soc, snitch_device_t *device, uint32_t code, const char *format,
                     ...) __attribute__((format(printf, 4, 5)));

/* Whether L1 holds the area's first byte. */
bool snitch_begins_in_l1(const snitch_area_t *area);

/* Whether two areas have a byte in common. */
bool snitch_meet(const snitch_area_t *a, const snitch_area_t *b);

/* Finds the area's memory; complains if it is not mapped, or not all in L1. */
bool snitch_find_area(htvm_soc_t *soc, snitch_device_t *device, snitch_area_t *area);

/* Whether no order of `other` writes what this order touches, or reads what it writes. */
bool snitch_check_races(htvm_soc_t *soc, snitch_device_t *device, const snitch_order_t *order,
                        const snitch_device_t *other);

/* Appends an order whose times are known, and remembers what it touches; there must be room.  False
 * after a complaint that the simulating machine has no memory. */
bool snitch_queue(htvm_soc_t *soc, snitch_device_t *device, const snitch_order_t *order);

/* Whether the bytes that the order touches are unchanged; complains if they are not. */
bool snitch_check_unchanged(htvm_soc_t *soc, snitch_device_t *device, const snitch_order_t *order);

/* Removes the oldest order.  Orders behind it expect to find what it wrote. */
void snitch_retire(snitch_device_t *device);

/* Spoils what the oldest order will write, if there is one: while it is under way, nobody knows what
 * is there, and who reads what was there, or what will be, is to compute something wrong. */
void snitch_spoil(snitch_device_t *device);

/* Drops all orders, after a complaint. */
void snitch_drop(snitch_device_t *device);

/* Start commands; the registers hold the parameters. */
void snitch_dma_take(htvm_soc_t *soc);
void snitch_ita_take(htvm_soc_t *soc);

/* Executes the oldest order; false after a complaint. */
bool snitch_dma_complete(htvm_soc_t *soc);
bool snitch_ita_complete(htvm_soc_t *soc);

#endif
