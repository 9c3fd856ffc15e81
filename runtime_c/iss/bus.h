/* What the simulated core sees: RAMs, three simulator registers, and the SoC's devices. */
#ifndef HTVM_ISS_BUS_H
#define HTVM_ISS_BUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "htvm_soc_model.h"
#include "insn.h"

enum { MAX_RAMS = 8, MAX_SNAPSHOTS = 64, MAX_DIRTIED = 256 };

typedef struct {
    uint32_t base;
    uint32_t size;  /* bytes, even */
    uint8_t *bytes; /* zero at the start */
    insn_t *insns;  /* decode cache, one per halfword, then one OP_END_OF_RAM; NULL until used */
    size_t decoded; /* no instruction from here on has been decoded */
} ram_t;

typedef struct {
    uint64_t cycle;
    uint32_t event;
} mark_t;

/* A range of memory that is written to a file at the first mark and at those of odd events. */
typedef struct {
    uint32_t addr, size;
} snapshot_t;

typedef struct {
    ram_t rams[MAX_RAMS];
    size_t ram_count;
    bool has_putchar, has_exit, has_trace;
    uint32_t putchar_addr; /* a byte stored here is printed */
    uint32_t exit_addr;    /* a word stored here ends the run */
    uint32_t trace_addr;   /* a word stored here is a mark */
    htvm_soc_t *soc;
    mark_t *marks;
    size_t mark_count, mark_room;
    snapshot_t snapshots[MAX_SNAPSHOTS];
    size_t snapshot_count;
    FILE *snapshot_file; /* NULL: there are none */
    bool snapshot_failed;
    snapshot_t dirtied[MAX_DIRTIED];
    size_t dirtied_count;
    bool ended;
    uint32_t exit_word;
} bus_t;

/* Adds a RAM; false if there are too many, it is odd, overlaps another, or memory is short. */
bool htvm_iss_bus_add_ram(bus_t *bus, uint32_t base, uint32_t size);
void htvm_iss_bus_free(bus_t *bus);

/* The RAM that holds all of these bytes, or NULL. */
ram_t *htvm_iss_bus_find(bus_t *bus, uint32_t addr, uint32_t size);

/* The RAM to fetch instructions at this even address from, its decode cache ready; NULL if there is
 * none. */
ram_t *htvm_iss_bus_code(bus_t *bus, uint32_t addr);

/* Host pointer to RAM; NULL unless all of it is in one RAM.  Fits htvm_bus_t. */
uint8_t *htvm_iss_bus_map(void *bus, uint32_t addr, uint32_t size);

/* inspect.c: the same, and the devices' own memory. */
const uint8_t *htvm_iss_memory(bus_t *bus, uint32_t addr, uint32_t bytes);

/* inspect.c: fills the ranges that nobody has written; false if one is no memory. */
bool htvm_iss_dirty(bus_t *bus);

/* inspect.c: appends all ranges to the file; false if one is no memory, or it cannot be written. */
bool htvm_iss_snapshot(bus_t *bus);

/* Forgets all decoded instructions, as fence.i demands: until then, a program that overwrites
 * instructions runs those it overwrote. */
void htvm_iss_bus_forget_insns(bus_t *bus);

/* Stores to a simulator register; false if the address is none or the size is wrong. */
bool htvm_iss_bus_control(bus_t *bus, uint32_t addr, uint32_t size, uint32_t value, uint64_t now);

/* Memory of the simulated core is little-endian. */
static inline uint32_t get16(const uint8_t *p) { return (uint32_t)p[0] | (uint32_t)p[1] << 8; }
static inline uint32_t get32(const uint8_t *p) { return get16(p) | get16(p + 2) << 16; }
static inline void put16(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}
static inline void put32(uint8_t *p, uint32_t v)
{
    put16(p, v);
    put16(p + 2, v >> 16);
}

#endif
