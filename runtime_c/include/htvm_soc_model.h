/* Device models of a SoC, as the instruction-set simulator and the host platform see them.
 *
 * A model is a set of devices behind 32-bit registers, with their private memories.  It has no
 * clock of its own: each access passes the current time (in cycles), and the model returns when
 * something will change next, so that a simulator can skip the polling in between.  All state is
 * in the object; any number of objects may exist at the same time.
 */
#ifndef HTVM_SOC_MODEL_H
#define HTVM_SOC_MODEL_H

#include <stdint.h>
#include <stdio.h>

typedef struct {
    void *ctx;
    /* Host pointer to `bytes` bytes of memory at device address `addr`; NULL unless all of them
     * are mapped. */
    uint8_t *(*map)(void *ctx, uint32_t addr, uint32_t bytes);
} htvm_bus_t;

typedef struct htvm_soc htvm_soc_t;

/* Returns NULL if out of memory.  The bus is copied. */
htvm_soc_t *htvm_soc_new(const htvm_bus_t *bus);
void htvm_soc_free(htvm_soc_t *soc);

/* Whether a register access to this address belongs to the devices. */
int htvm_soc_owns(uint32_t addr);

uint32_t htvm_soc_read(htvm_soc_t *soc, uint32_t addr, uint64_t now);
void htvm_soc_write(htvm_soc_t *soc, uint32_t addr, uint32_t value, uint64_t now);

/* Earliest time after `now` at which a status register changes; UINT64_MAX if none will. */
uint64_t htvm_soc_next_event(htvm_soc_t *soc, uint64_t now);

/* The first complaint (device, address, size), or NULL. */
const char *htvm_soc_error(const htvm_soc_t *soc);

/* What the devices did, as JSON lines: {"unit":...,"start":...,"end":...,"what":...,...}; times in
 * which the host polls a device have the unit "host".
 *
 * These members serve to find the origin of an element; a model may omit them: "issued" (when the
 * host started it), "from" (DMA: first address read), "to" and "written" (first address and number
 * of the bytes written), "from_rows" and "to_rows" (where there are gaps between these bytes: rows,
 * their stride, pixels of a row, their stride, bytes of a pixel). */
void htvm_soc_events(const htvm_soc_t *soc, FILE *out);

/* A device's accesses to L1: in `busy` of every `of` cycles from `from` on, spread evenly, it takes
 * `width` neighbouring banks, and cores do not get them; the first time they begin with `bank`, and
 * `step` banks further each time after it, modulo the number of banks.  It refuses a core in at most
 * `most` cycles of an access. */
typedef struct {
    uint64_t from;
    uint32_t busy, of;
    uint32_t bank, step, width, most;
} htvm_soc_port_t;

enum { HTVM_SOC_PORTS = 4 };

/* The devices that access L1 from a cycle on until another. */
typedef struct {
    uint64_t from, until; /* UINT64_MAX: until a register is accessed */
    uint32_t count;
    htvm_soc_port_t port[HTVM_SOC_PORTS];
} htvm_soc_banks_t;

/* What holds in cycle `at`, which may lie ahead of that of the last access, or a little behind it.
 * Must not change the devices.  For simulators of cores that share L1 with devices; optional, they
 * have a default that takes none. */
htvm_soc_banks_t htvm_soc_banks(const htvm_soc_t *soc, uint64_t at);

/* Host pointer to `bytes` bytes of the devices' own memory at device address `addr`; NULL unless
 * all of them are there.  For inspecting a run from outside; optional, simulators have a default
 * without any memory. */
const uint8_t *htvm_soc_memory(const htvm_soc_t *soc, uint32_t addr, uint32_t bytes);

#endif
