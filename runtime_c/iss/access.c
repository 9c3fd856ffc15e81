/* Loads and stores that leave the RAM from which the program runs. */
#include "iss.h"

#include <inttypes.h>
#include <stdio.h>

bool htvm_iss_load_elsewhere(iss_t *iss, const insn_t *insn, uint32_t addr, uint32_t size,
                             uint32_t *value)
{
    const uint8_t *bytes = htvm_iss_bus_map(&iss->bus, addr, size);
    if (bytes != NULL) {
        *value = size == 1 ? bytes[0] : size == 2 ? get16(bytes) : get32(bytes);
        return true;
    }
    if (size == 4 && addr % 4 == 0 && htvm_soc_owns(addr)) {
        return htvm_iss_device_read(iss, insn, addr, value);
    }
    snprintf(iss->trap, sizeof iss->trap,
             "load of %" PRIu32 " bytes from 0x%08" PRIx32 ", where there is no RAM and no %s",
             size, addr, size == 4 ? "device register" : "byte-wide device");
    return false;
}

bool htvm_iss_store_elsewhere(iss_t *iss, uint32_t addr, uint32_t size, uint32_t value)
{
    uint8_t *bytes = htvm_iss_bus_map(&iss->bus, addr, size);
    if (bytes != NULL) {
        for (uint32_t i = 0; i < size; ++i) {
            bytes[i] = (uint8_t)(value >> (8 * i));
        }
        return true;
    }
    if (htvm_iss_bus_control(&iss->bus, addr, size, value, iss->cycles)) {
        return true;
    }
    if (size == 4 && addr % 4 == 0 && htvm_soc_owns(addr)) {
        return htvm_iss_device_write(iss, addr, value);
    }
    snprintf(iss->trap, sizeof iss->trap,
             "store of %" PRIu32 " bytes to 0x%08" PRIx32 ", where there is no RAM and no %s", size,
             addr, size == 4 ? "device register" : "byte-wide device");
    return false;
}
