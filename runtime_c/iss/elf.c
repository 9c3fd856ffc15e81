/* Loading of ELF executables.  The file is not trusted: every offset is checked. */
#include "iss.h"

#include <string.h>

enum {
    EHDR_BYTES = 52,
    PHDR_BYTES = 32,
    ET_EXEC = 2,
    EM_RISCV = 243,
    PT_LOAD = 1,
    EF_RISCV_RVE_OR_FLOAT_ABI = 0x8 | 0x6
};

static const char *load_segment(iss_t *iss, const uint8_t *file, size_t size, const uint8_t *phdr)
{
    const uint32_t offset = get32(phdr + 4);
    const uint32_t addr = get32(phdr + 12); /* physical: nothing moves the segment later */
    const uint32_t file_bytes = get32(phdr + 16);
    const uint32_t memory_bytes = get32(phdr + 20);

    if (memory_bytes == 0) {
        return NULL;
    }
    if (file_bytes > memory_bytes) {
        return "a segment is longer in the file than in memory";
    }
    if (offset > size || file_bytes > size - offset) {
        return "a segment lies outside of the file (truncated?)";
    }
    uint8_t *memory = htvm_iss_bus_map(&iss->bus, addr, memory_bytes);
    if (memory == NULL) {
        return "a segment lies outside of the machine's RAM";
    }
    memcpy(memory, file + offset, file_bytes);
    memset(memory + file_bytes, 0, memory_bytes - file_bytes);
    return NULL;
}

static const char *check_header(const uint8_t *file, size_t size)
{
    static const uint8_t magic[7] = {0x7f, 'E', 'L', 'F', 1 /* 32 bit */, 1 /* little-endian */, 1};

    if (size < EHDR_BYTES || memcmp(file, magic, 4) != 0) {
        return "not an ELF file";
    }
    if (memcmp(file, magic, sizeof magic) != 0) {
        return "not a 32-bit little-endian ELF file";
    }
    if (get16(file + 18) != EM_RISCV) {
        return "not a RISC-V program";
    }
    if (get16(file + 16) != ET_EXEC) {
        return "not an executable (an object file, or position independent?)";
    }
    if ((get32(file + 36) & EF_RISCV_RVE_OR_FLOAT_ABI) != 0) {
        return "built for RV32E or a hardware floating-point ABI";
    }
    return NULL;
}

const char *htvm_iss_load_elf(iss_t *iss, const uint8_t *file, size_t size)
{
    const char *problem = check_header(file, size);
    if (problem != NULL) {
        return problem;
    }
    const uint32_t table = get32(file + 28);
    const uint32_t entry_bytes = get16(file + 42);
    const uint32_t count = get16(file + 44);
    if (count == 0) {
        return "nothing to load";
    }
    if (entry_bytes < PHDR_BYTES || table > size || (size - table) / entry_bytes < count) {
        return "the program headers lie outside of the file (truncated?)";
    }
    for (uint32_t i = 0; i < count; ++i) {
        const uint8_t *phdr = file + table + (size_t)i * entry_bytes;
        if (get32(phdr) == PT_LOAD) {
            problem = load_segment(iss, file, size, phdr);
            if (problem != NULL) {
                return problem;
            }
        }
    }
    iss->pc = get32(file + 24);
    return NULL;
}
