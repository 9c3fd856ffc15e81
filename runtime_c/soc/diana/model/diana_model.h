/* Code shared by DIANA's device models, and private to this folder. */
#ifndef DIANA_MODEL_H
#define DIANA_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diana_regs.h"
#include "diana_crossbar.h"
#include "htvm_soc_log.h"
#include "htvm_soc_model.h"

#define DIANA_REGISTERS 16u

/* A range of L1 that a running device reads or writes. */
typedef struct {
    uint32_t offset;
    uint64_t bytes;
    bool write;
} diana_claim_t;

/* The largest number of ranges that a trigger touches: two operands and a result. */
#define DIANA_CLAIMS 3u

/* One device: its registers by word, when it will be idle, and the L1 it works on until then. */
typedef struct {
    const char *name; /* in messages */
    const char *unit; /* in events */
    uint32_t reg[DIANA_REGISTERS];
    uint32_t error;
    uint64_t busy_until;
    uint32_t triggers; /* so far */
    diana_claim_t claims[DIANA_CLAIMS];
    size_t claim_count;
} diana_device_t;

/* One command of the DMA that is not done yet. */
typedef struct {
    uint32_t l1, l2, bytes;
    bool to_l2;
    uint64_t end;
    uint8_t *memory; /* the bytes in L2 */
    uint8_t *before; /* what they were when the command was given */
} diana_transfer_t;

/* A setting of the simulation: one wrong byte in the result of one trigger, to test the tools that
 * look for errors. */
typedef struct {
    uint32_t registers; /* registers of the core; 0: no byte is wrong */
    uint32_t trigger;   /* its number on that core, counted from 1 */
    uint32_t byte;      /* offset in the result, as stored in L1 */
    uint32_t flip;      /* bits to invert */
} diana_fault_t;

struct htvm_soc {
    htvm_bus_t bus;
    diana_device_t dma, digital, analog;
    diana_fault_t fault; /* none unless a simulator asks for it */
    diana_noise_t noise; /* of the analog core; none unless a simulator asks for it */
    diana_transfer_t queue[DIANA_DMA_QUEUE_DEPTH]; /* oldest first */
    size_t queued;
    /* The last access if it was a read that told the host to wait. */
    bool waiting;
    uint32_t wait_address;
    uint64_t waiting_since;
    uint8_t *l1;
    uint8_t *shadow; /* for each byte of L1: 1 once it holds a meaningful value */
    htvm_log_t log;
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

/* Whether no device that is running at `now` writes what is claimed here, or reads what would be
 * written.  Complains if one does; otherwise keeps the claims for as long as `core` is busy. */
bool diana_claim(htvm_soc_t *soc, diana_device_t *core, const char *what,
                 const diana_claim_t *claims, size_t count, uint64_t now);

/* The same for a transfer. */
bool diana_claim_transfer(htvm_soc_t *soc, diana_claim_t claim, uint64_t now);

/* Whether a value is in the list. */
bool diana_listed(uint32_t value, const uint32_t *list, size_t count);

/* Checks that the cores share. */
bool diana_check_overlap(htvm_soc_t *soc, diana_device_t *device, const char *what, uint32_t in,
                         uint64_t in_bytes, uint32_t out, uint64_t out_bytes);

/* Whether logical bytes [from, to) behind the L1 offset `base` have all been written.  They lie
 * there with the order of each aligned group reversed. */
bool diana_check_written(htvm_soc_t *soc, diana_device_t *device, const char *what, uint32_t base,
                         uint32_t from, uint32_t to, uint32_t group);

/* Returns the weights at this address; NULL after a complaint. */
const uint8_t *diana_check_weights(htvm_soc_t *soc, diana_device_t *device, const char *what,
                                   uint32_t address, uint64_t bytes, uint32_t align);

/* Marks the device busy from `start` on, and logs the event; `event` has everything except the unit
 * and the times. */
void diana_start(htvm_soc_t *soc, diana_device_t *device, htvm_event_t event, uint64_t start,
                 uint64_t cycles);

/* Takes a setting of the fault. */
void diana_fault_set(htvm_soc_t *soc, uint32_t offset, uint32_t value);

/* Makes the result of a trigger wrong if the setting says so. */
void diana_fault_apply(htvm_soc_t *soc, diana_device_t *core, uint32_t registers,
                       const htvm_event_t *event);

/* Value of a register given its byte offset. */
static inline uint32_t diana_reg(const diana_device_t *device, uint32_t offset)
{
    return device->reg[offset / 4u];
}

/* Returns some bits of a register, of which `bit` is the lowest. */
static inline uint32_t diana_field(const diana_device_t *device, uint32_t offset, uint32_t bit,
                                   uint32_t bits)
{
    return diana_reg(device, offset) >> bit & ((1u << bits) - 1u);
}

/* Eight bits of a register as a signed number. */
static inline int32_t diana_signed_field(const diana_device_t *device, uint32_t offset,
                                         uint32_t bit)
{
    const int32_t value = (int32_t)diana_field(device, offset, bit, 8);
    return value < 128 ? value : value - 256;
}

/* Completes the transfers that are done at `now`: that is when their bytes move. */
void diana_dma_advance(htvm_soc_t *soc, uint64_t now);

/* Forgets all transfers. */
void diana_dma_drop(htvm_soc_t *soc);

/* Start commands; the registers hold the parameters. */
void diana_dma_command(htvm_soc_t *soc, uint64_t now);
void diana_digital_start(htvm_soc_t *soc, uint64_t now);
void diana_analog_start(htvm_soc_t *soc, uint64_t now);

/* Takes a setting of the simulation. */
void diana_analog_set(htvm_soc_t *soc, uint32_t offset, uint32_t value);

#endif
