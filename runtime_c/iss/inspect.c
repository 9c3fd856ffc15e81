/* Looking at a run: what memories hold at its marks. */
#include "iss.h"

#include <string.h>

/* For SoCs whose models say nothing of their own memory. */
__attribute__((weak)) const uint8_t *htvm_soc_memory(const htvm_soc_t *soc, uint32_t addr,
                                                     uint32_t bytes)
{
    (void)soc, (void)addr, (void)bytes;
    return NULL;
}

const uint8_t *htvm_iss_memory(bus_t *bus, uint32_t addr, uint32_t bytes)
{
    const uint8_t *ram = htvm_iss_bus_map(bus, addr, bytes);
    return ram != NULL ? ram : htvm_soc_memory(bus->soc, addr, bytes);
}

/* A byte of no run of equal ones, and never 0. */
static uint8_t dirt(uint32_t addr)
{
    return (uint8_t)(1u + addr * 2654435761u % 255u);
}

bool htvm_iss_dirty(bus_t *bus)
{
    for (size_t i = 0; i < bus->dirtied_count; ++i) {
        const snapshot_t *what = &bus->dirtied[i];
        uint8_t *memory = (uint8_t *)htvm_iss_memory(bus, what->addr, what->size);
        if (memory == NULL) {
            return false;
        }
        for (uint32_t at = 0; at < what->size; ++at) {
            memory[at] = dirt(what->addr + at);
        }
    }
    return true;
}

bool htvm_iss_snapshot(bus_t *bus)
{
    for (size_t i = 0; i < bus->snapshot_count; ++i) {
        const snapshot_t *what = &bus->snapshots[i];
        const uint8_t *memory = htvm_iss_memory(bus, what->addr, what->size);
        if (memory == NULL || fwrite(memory, 1, what->size, bus->snapshot_file) != what->size) {
            return false;
        }
    }
    return true;
}
