#include "bus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Noreturn static void out_of_memory(void)
{
    fputs("iss: out of memory\n", stderr);
    exit(2);
}

static size_t halfwords(const ram_t *ram) { return ram->size / 2; }

bool htvm_iss_bus_add_ram(bus_t *bus, uint32_t base, uint32_t size)
{
    if (bus->ram_count == MAX_RAMS || size < 4 || size % 2 != 0 || base % 4 != 0 ||
        size - 1 > UINT32_MAX - base) {
        return false;
    }
    for (size_t i = 0; i < bus->ram_count; ++i) {
        const ram_t *other = &bus->rams[i];
        if (base <= other->base + (other->size - 1) && other->base <= base + (size - 1)) {
            return false;
        }
    }
    ram_t *ram = &bus->rams[bus->ram_count];
    *ram = (ram_t){.base = base, .size = size};
    /* calloc: pages that nobody touches are never really allocated. */
    ram->bytes = calloc(size, 1);
    if (ram->bytes == NULL) {
        return false;
    }
    bus->ram_count += 1;
    return true;
}

void htvm_iss_bus_free(bus_t *bus)
{
    for (size_t i = 0; i < bus->ram_count; ++i) {
        free(bus->rams[i].bytes);
        free(bus->rams[i].insns);
    }
    free(bus->marks);
    *bus = (bus_t){0};
}

ram_t *htvm_iss_bus_find(bus_t *bus, uint32_t addr, uint32_t size)
{
    for (size_t i = 0; i < bus->ram_count; ++i) {
        ram_t *ram = &bus->rams[i];
        if (size <= ram->size && addr - ram->base <= ram->size - size) {
            return ram;
        }
    }
    return NULL;
}

ram_t *htvm_iss_bus_code(bus_t *bus, uint32_t addr)
{
    ram_t *ram = htvm_iss_bus_find(bus, addr, 2);
    if (ram != NULL && ram->insns == NULL) {
        /* calloc: most of a big decode cache is never touched, either. */
        ram->insns = calloc(halfwords(ram) + 1, sizeof *ram->insns);
        if (ram->insns == NULL) {
            out_of_memory();
        }
        ram->insns[halfwords(ram)].op = OP_END_OF_RAM;
    }
    return ram;
}

uint8_t *htvm_iss_bus_map(void *bus, uint32_t addr, uint32_t size)
{
    ram_t *ram = htvm_iss_bus_find(bus, addr, size);
    return ram == NULL ? NULL : ram->bytes + (addr - ram->base);
}

void htvm_iss_bus_forget_insns(bus_t *bus)
{
    for (size_t i = 0; i < bus->ram_count; ++i) {
        ram_t *ram = &bus->rams[i];
        if (ram->decoded > 0) {
            memset(ram->insns, 0, ram->decoded * sizeof *ram->insns);
            ram->decoded = 0;
        }
    }
}

static void add_mark(bus_t *bus, uint64_t cycle, uint32_t event)
{
    if (bus->mark_count == bus->mark_room) {
        const size_t room = bus->mark_room == 0 ? 64 : 2 * bus->mark_room;
        mark_t *grown = realloc(bus->marks, room * sizeof *grown);
        if (grown == NULL) {
            out_of_memory();
        }
        bus->marks = grown;
        bus->mark_room = room;
    }
    bus->marks[bus->mark_count++] = (mark_t){cycle, event};
}

bool htvm_iss_bus_control(bus_t *bus, uint32_t addr, uint32_t size, uint32_t value, uint64_t now)
{
    if (bus->has_putchar && addr == bus->putchar_addr && (size == 1 || size == 4)) {
        putchar((int)(value & 0xffu));
        return true;
    }
    if (size != 4) {
        return false;
    }
    if (bus->has_exit && addr == bus->exit_addr) {
        bus->ended = true;
        bus->exit_word = value;
        return true;
    }
    if (bus->has_trace && addr == bus->trace_addr) {
        add_mark(bus, now, value);
        if (bus->mark_count == 1 && !htvm_iss_dirty(bus)) {
            bus->snapshot_failed = true;
        }
        const bool wanted = value % 2u == 1u || bus->mark_count == 1;
        if (bus->snapshot_file != NULL && wanted && !htvm_iss_snapshot(bus)) {
            bus->snapshot_failed = true;
        }
        return true;
    }
    return false;
}
