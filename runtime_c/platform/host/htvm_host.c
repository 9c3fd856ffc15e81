/* The host platform: address mapping, register access, and the real main.  Compiled with
 * HTVM_HOST_LIBRARY, it is part of a shared library, and has no main: see htvm_host_begin. */
#define _GNU_SOURCE /* dl_iterate_phdr */
#define HTVM_HOST_IMPLEMENTATION
#include "htvm_host.h"

#include <inttypes.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "htvm_soc.h"
#include "htvm_soc_model.h"

#define MAX_SEGMENTS 16

typedef struct {
    uintptr_t start, end;
} segment_t;

/* One native program or library is one machine; this is its state. */
static struct {
    segment_t segments[MAX_SEGMENTS]; /* the loaded segments that this is part of */
    size_t segment_count;
    uintptr_t lowest;
    htvm_soc_t *soc;
    uint64_t now; /* register accesses, plus the time spent waiting for devices */
    uint32_t last_read; /* address of the last access if it was a read, else 0 */
    char message[256]; /* the last complaint, in a library */
    char **inputs, **outputs;
    int input_count, output_count;
} machine;

#ifdef HTVM_L1_MAPPED
/* On this platform, the firmware's own data in L1, such as stacks, is elsewhere. */
static _Alignas(64) uint8_t l1[HTVM_L1_SIZE];
#endif

#ifdef HTVM_CONSTANT_MEMORIES
/* Constants that are in memories of their own are in sections of these names (htvm_hal_platform.h);
 * the linker defines where those that exist begin and end. */
#define DECLARE(name)                                                       \
    extern const uint8_t __start_htvm_##name[] __attribute__((weak));       \
    extern const uint8_t __stop_htvm_##name[] __attribute__((weak));
HTVM_CONSTANT_MEMORIES(DECLARE)

#define DESCRIBE(name) {HTVM_##name##_BASE, __start_htvm_##name, __stop_htvm_##name},
static const struct {
    uint32_t base;
    const uint8_t *start, *stop;
} constants[] = {HTVM_CONSTANT_MEMORIES(DESCRIBE)};

/* Device address of a constant in a memory of its own; 0 if it is in none. */
static uint32_t constant_address(uintptr_t at)
{
    for (size_t i = 0; i < sizeof constants / sizeof constants[0]; i++) {
        const uintptr_t start = (uintptr_t)constants[i].start;
        if (at >= start && at < (uintptr_t)constants[i].stop) {
            return constants[i].base + (uint32_t)(at - start);
        }
    }
    return 0;
}

/* The reverse, if so many bytes are there; else NULL. */
static uint8_t *constant_at(uint32_t addr, uint32_t bytes)
{
    for (size_t i = 0; i < sizeof constants / sizeof constants[0]; i++) {
        const size_t size = (size_t)(constants[i].stop - constants[i].start);
        const uint32_t offset = addr - constants[i].base;
        if (offset < size && bytes <= size - offset) {
            return (uint8_t *)(uintptr_t)(constants[i].start + offset);
        }
    }
    return NULL;
}
#endif

static int note_segments(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    (void)data;
    bool own = false;
    machine.segment_count = 0;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type == PT_LOAD && machine.segment_count < MAX_SEGMENTS) {
            segment_t *segment = &machine.segments[machine.segment_count++];
            segment->start = (uintptr_t)(info->dlpi_addr + header->p_vaddr);
            segment->end = segment->start + header->p_memsz;
            own = own || ((uintptr_t)&machine >= segment->start && (uintptr_t)&machine < segment->end);
        }
    }
    return own; /* other programs and libraries are not in its L2 */
}

static bool in_image(uintptr_t start, uint64_t bytes)
{
    for (size_t i = 0; i < machine.segment_count; i++) {
        const segment_t *segment = &machine.segments[i];
        if (start >= segment->start && start <= segment->end && bytes <= segment->end - start) {
            return true;
        }
    }
    return false;
}

#ifdef HTVM_L1_MAPPED
/* Returns the offset of an address in L1, including its end; UINT32_MAX if it is elsewhere. */
static uint32_t l1_offset(uintptr_t address, uintptr_t base)
{
    const bool inside = address >= base && address - base <= HTVM_L1_SIZE;
    return inside ? (uint32_t)(address - base) : UINT32_MAX;
}
#endif

/* L2 of this machine is the program's image: its lowest address is the base of L2. */
static uint8_t *map(void *ctx, uint32_t addr, uint32_t bytes)
{
    (void)ctx;
#ifdef HTVM_L1_MAPPED
    const uint32_t offset = l1_offset(addr, HTVM_L1_BASE);
    if (offset != UINT32_MAX) {
        return bytes <= HTVM_L1_SIZE - offset ? l1 + offset : NULL;
    }
#endif
#ifdef HTVM_CONSTANT_MEMORIES
    uint8_t *const constant = constant_at(addr, bytes);
    if (constant != NULL) {
        return constant;
    }
#endif
    if (addr < HTVM_L2_BASE) {
        return NULL;
    }
    const uintptr_t start = machine.lowest + (addr - HTVM_L2_BASE);
    return in_image(start, bytes) ? (uint8_t *)start : NULL;
}

static bool begin(void)
{
    const htvm_bus_t bus = {.ctx = NULL, .map = map};
    dl_iterate_phdr(note_segments, NULL);
    machine.lowest = UINTPTR_MAX;
    for (size_t i = 0; i < machine.segment_count; i++) {
        const uintptr_t page = machine.segments[i].start & ~(uintptr_t)15;
        machine.lowest = page < machine.lowest ? page : machine.lowest;
    }
    machine.now = 0;
    machine.last_read = 0;
    machine.soc = htvm_soc_new(&bus);
    return machine.soc != NULL;
}

uint32_t htvm_host_address(const void *p)
{
    const uintptr_t start = (uintptr_t)p;
#ifdef HTVM_L1_MAPPED
    const uint32_t offset = l1_offset(start, (uintptr_t)l1);
    if (offset != UINT32_MAX) {
        return HTVM_L1_BASE + offset;
    }
#endif
#ifdef HTVM_CONSTANT_MEMORIES
    const uint32_t constant = constant_address(start);
    if (constant != 0) {
        return constant;
    }
#endif
    if (!in_image(start, 0) || start - machine.lowest > UINT32_MAX - HTVM_L2_BASE) {
        return 0;
    }
    return HTVM_L2_BASE + (uint32_t)(start - machine.lowest);
}

void *htvm_host_pointer(uint32_t addr) { return map(NULL, addr, 0); }

void htvm_host_register_write(uint32_t addr, uint32_t value)
{
    machine.now++;
    machine.last_read = 0;
    htvm_soc_write(machine.soc, addr, value, machine.now);
}

uint32_t htvm_host_register_read(uint32_t addr)
{
    /* A program that reads a register again is waiting: let the next event happen first.  A first
     * read must not do so, or races between devices would never be found. */
    const uint64_t next = htvm_soc_next_event(machine.soc, machine.now);
    machine.now = addr != machine.last_read || next == UINT64_MAX ? machine.now + 1 : next;
    machine.last_read = addr;
    return htvm_soc_read(machine.soc, addr, machine.now);
}

#ifdef HTVM_HOST_LIBRARY
int htvm_host_begin(void) { return begin() ? 0 : 1; }

const char *htvm_host_end(void)
{
    const char *const error = htvm_soc_error(machine.soc);
    if (error != NULL) {
        snprintf(machine.message, sizeof machine.message, "%s", error);
    }
    htvm_soc_free(machine.soc);
    machine.soc = NULL;
    return error == NULL ? NULL : machine.message;
}
#else
static int usage(const char *what, const char *name)
{
    fprintf(stderr, "host platform: %s %s\n", what, name);
    return HTVM_HOST_USAGE;
}

int htvm_host_read(int index, void *dst, uint32_t bytes)
{
    if (index < 0 || index >= machine.input_count) {
        fprintf(stderr, "host platform: no file given for input %d\n", index);
        return HTVM_HOST_USAGE;
    }
    FILE *file = fopen(machine.inputs[index], "rb");
    if (file == NULL) {
        return usage("cannot open", machine.inputs[index]);
    }
    const size_t got = fread(dst, 1, bytes, file);
    const bool more = fgetc(file) != EOF;
    fclose(file);
    if (got != bytes || more) {
        fprintf(stderr, "host platform: input %d is not %" PRIu32 " B: %s\n", index, bytes,
                machine.inputs[index]);
        return HTVM_HOST_USAGE;
    }
    return 0;
}

int htvm_host_write(int index, const void *src, uint32_t bytes)
{
    if (index < 0 || index >= machine.output_count) {
        fprintf(stderr, "host platform: no file given for output %d\n", index);
        return HTVM_HOST_USAGE;
    }
    FILE *file = fopen(machine.outputs[index], "wb");
    if (file == NULL) {
        return usage("cannot write", machine.outputs[index]);
    }
    const size_t put = fwrite(src, 1, bytes, file);
    if (fclose(file) != 0 || put != bytes) {
        return usage("cannot write", machine.outputs[index]);
    }
    return 0;
}

/* Differs from byte to byte, so that a copy of a neighbour is seen, too. */
static uint8_t guard_byte(uint32_t at)
{
    return (uint8_t)(0xa5u ^ (at * 29u));
}

void htvm_host_guard(uint8_t *before, uint8_t *after)
{
    for (uint32_t at = 0; at < HTVM_HOST_GUARD; at++) {
        before[at] = guard_byte(at);
        after[at] = guard_byte(at);
    }
}

int htvm_host_intact(const char *name, const uint8_t *before, const uint8_t *after)
{
    for (uint32_t at = 0; at < HTVM_HOST_GUARD; at++) {
        const uint32_t from_start = HTVM_HOST_GUARD - 1u - at;
        if (before[from_start] != guard_byte(from_start)) {
            fprintf(stderr, "the program wrote %" PRIu32 " B before the start of %s\n", at + 1u, name);
            return HTVM_HOST_COMPLAINT;
        }
        if (after[at] != guard_byte(at)) {
            fprintf(stderr, "the program wrote %" PRIu32 " B past the end of %s\n", at, name);
            return HTVM_HOST_COMPLAINT;
        }
    }
    return 0;
}

static void split_arguments(int argc, char **argv)
{
    machine.inputs = argv;
    while (machine.input_count < argc && strcmp(argv[machine.input_count], "--") != 0) {
        machine.input_count++;
    }
    if (machine.input_count < argc) {
        machine.outputs = argv + machine.input_count + 1;
        machine.output_count = argc - machine.input_count - 1;
    }
}

static int write_events(const char *name)
{
    FILE *file = fopen(name, "w");
    if (file == NULL) {
        return usage("cannot write", name);
    }
    htvm_soc_events(machine.soc, file);
    return fclose(file) != 0 ? usage("cannot write", name) : 0;
}

/* Writes a setting, ADDR:VALUE, into its register. */
static bool set(const char *setting)
{
    char *end;
    const unsigned long long addr = strtoull(setting, &end, 0);
    if (*end != ':' || addr > UINT32_MAX || !htvm_soc_owns((uint32_t)addr)) {
        return false;
    }
    const unsigned long long value = strtoull(end + 1, &end, 0);
    if (*end != '\0' || value > UINT32_MAX) {
        return false;
    }
    htvm_soc_write(machine.soc, (uint32_t)addr, (uint32_t)value, 0);
    return htvm_soc_error(machine.soc) == NULL;
}

int main(int argc, char **argv)
{
    const char *events = NULL;
    int first = 1;
    if (!begin()) {
        return usage("no memory for", "the device models");
    }
    for (; first + 1 < argc && strcmp(argv[first], "--set") == 0; first += 2) {
        if (!set(argv[first + 1])) {
            return usage("cannot set", argv[first + 1]);
        }
    }
    if (first + 1 < argc && strcmp(argv[first], "--events") == 0) {
        events = argv[first + 1];
        first += 2;
    }
    split_arguments(argc - first, argv + first);
    int code = htvm_program_main();
    if (htvm_soc_error(machine.soc) != NULL) {
        fprintf(stderr, "%s\n", htvm_soc_error(machine.soc));
        code = HTVM_HOST_COMPLAINT;
    }
    if (events != NULL) {
        const int written = write_events(events);
        code = code == 0 ? written : code;
    }
    htvm_soc_free(machine.soc);
    return code;
}
#endif
