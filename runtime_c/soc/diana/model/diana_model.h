/* DIANA's device models: what the devices share.  Private to this folder. */
#ifndef DIANA_MODEL_H
#define DIANA_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diana_regs.h"
#include "htvm_soc_model.h"

#define DIANA_REGISTERS 16u
#define DIANA_MESSAGE_BYTES 320u

/* One device: its registers by word, and when it will be idle. */
typedef struct {
    const char *name;
    uint32_t reg[DIANA_REGISTERS];
    uint32_t error;
    uint64_t busy_until;
} diana_device_t;

/* One entry of the timeline; times in cycles. */
typedef struct {
    const char *unit, *what;
    uint64_t start, end;
    uint64_t bytes;  /* moved (DMA), or weights loaded */
    uint64_t macs;   /* useful multiply-accumulates */
    uint64_t array;  /* cycles the array computes */
    uint64_t weights; /* cycles spent loading weights */
} diana_event_t;

struct htvm_soc {
    htvm_bus_t bus;
    diana_device_t dma, digital;
    uint8_t *l1;
    uint8_t *shadow; /* per L1 byte: 1 once somebody wrote a meaningful value */
    bool complained;
    char message[DIANA_MESSAGE_BYTES];
    diana_event_t *events;
    size_t event_count, event_room;
};

static inline uint32_t diana_round_up(uint32_t value, uint32_t step)
{
    return (value + step - 1u) / step * step;
}

static inline uint32_t diana_blocks(uint32_t value, uint32_t step)
{
    return value / step + (value % step != 0);
}

/* Puts the device into its error state and keeps the message if it is the first of the run.
 * Always returns false, so that checks can end with `return diana_complain(...)`. */
bool diana_complain(htvm_soc_t *soc, diana_device_t *device, uint32_t code, const char *format,
                    ...) __attribute__((format(printf, 4, 5)));

/* Whether `bytes` bytes at this L1 offset are inside L1 and aligned; complains if not. */
bool diana_check_l1(htvm_soc_t *soc, diana_device_t *device, const char *role, uint32_t offset,
                    uint64_t bytes, uint32_t align);

/* Marks the device busy and writes the event down; `event` has everything but unit and times. */
void diana_start(htvm_soc_t *soc, diana_device_t *device, diana_event_t event, uint64_t now,
                 uint64_t cycles);

/* Value of a register given its byte offset. */
static inline uint32_t diana_reg(const diana_device_t *device, uint32_t offset)
{
    return device->reg[offset / 4u];
}

/* Start commands; the registers hold the parameters. */
void diana_dma_command(htvm_soc_t *soc, uint64_t now);
void diana_digital_start(htvm_soc_t *soc, uint64_t now);

#endif
