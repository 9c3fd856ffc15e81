/* The ELF loader: what it accepts, what it says about the rest, and that no file breaks it. */
#include <stdlib.h>
#include <string.h>

#include "htvm_test.h"
#include "iss.h"

enum { RAM_BASE = 0x1000, RAM_BYTES = 256, HEADERS = 52 + 32, CODE_BYTES = 16 };
enum { IMAGE_BYTES = HEADERS + CODE_BYTES };

static void sound_image(uint8_t image[IMAGE_BYTES])
{
    static const uint8_t ident[7] = {0x7f, 'E', 'L', 'F', 1, 1, 1};
    uint8_t *segment = image + 52;

    memset(image, 0, IMAGE_BYTES);
    memcpy(image, ident, sizeof ident);
    put16(image + 16, 2);          /* executable */
    put16(image + 18, 243);        /* RISC-V */
    put32(image + 24, RAM_BASE);   /* entry */
    put32(image + 28, 52);         /* program headers */
    put16(image + 42, 32);
    put16(image + 44, 1);
    put32(segment, 1);             /* load */
    put32(segment + 4, HEADERS);
    put32(segment + 8, RAM_BASE);
    put32(segment + 12, RAM_BASE);
    put32(segment + 16, CODE_BYTES);
    put32(segment + 20, CODE_BYTES + 4);
    for (uint8_t i = 0; i < CODE_BYTES; ++i) {
        image[HEADERS + i] = (uint8_t)(i + 1);
    }
}

static iss_t machine(void)
{
    iss_t iss;
    htvm_iss_init(&iss);
    CHECK(htvm_iss_bus_add_ram(&iss.bus, RAM_BASE, RAM_BYTES));
    return iss;
}

static void loads_a_sound_file(void)
{
    uint8_t image[IMAGE_BYTES];
    iss_t iss = machine();
    sound_image(image);
    memset(iss.bus.rams[0].bytes, 0xee, RAM_BYTES);
    CHECK(htvm_iss_load_elf(&iss, image, sizeof image) == NULL);
    CHECK_EQ(iss.pc, RAM_BASE);
    CHECK_EQ(iss.bus.rams[0].bytes[0], 1);
    CHECK_EQ(iss.bus.rams[0].bytes[CODE_BYTES - 1], CODE_BYTES);
    CHECK_EQ(iss.bus.rams[0].bytes[CODE_BYTES], 0); /* zeroed tail */
    CHECK_EQ(iss.bus.rams[0].bytes[CODE_BYTES + 4], 0xee);
    htvm_iss_bus_free(&iss.bus);
}

typedef struct {
    size_t at;      /* byte of the file */
    unsigned bytes; /* 2 or 4 */
    uint32_t value;
    const char *complaint;
} defect_t;

static void names_each_defect(void)
{
    static const defect_t defects[] = {
        {0, 4, 0x12345678, "not an ELF file"},
        {4, 2, 0x0102, "not a 32-bit little-endian"},
        {18, 2, 62, "not a RISC-V program"},
        {16, 2, 1, "not an executable"},
        {36, 4, 4, "floating-point ABI"},
        {44, 2, 0, "nothing to load"},
        {44, 2, 0xffff, "program headers lie outside"},
        {42, 2, 8, "program headers lie outside"},
        {28, 4, 0xfffffff0, "program headers lie outside"},
        {52 + 4, 4, 0xfffffff0, "outside of the file"},
        {52 + 4, 4, HEADERS + 1, "outside of the file"},
        {52 + 16, 4, CODE_BYTES + 5, "longer in the file"},
        {52 + 12, 4, RAM_BASE - 1, "outside of the machine's RAM"},
        {52 + 12, 4, RAM_BASE + RAM_BYTES - 1, "outside of the machine's RAM"},
        {52 + 12, 4, 0xfffffffc, "outside of the machine's RAM"},
        {52 + 20, 4, 0xffffffff, "outside of the machine's RAM"},
    };
    for (size_t i = 0; i < sizeof defects / sizeof defects[0]; ++i) {
        uint8_t image[IMAGE_BYTES];
        iss_t iss = machine();
        sound_image(image);
        if (defects[i].bytes == 2) {
            put16(image + defects[i].at, defects[i].value);
        } else {
            put32(image + defects[i].at, defects[i].value);
        }
        CHECK_HAS(htvm_iss_load_elf(&iss, image, sizeof image), defects[i].complaint);
        htvm_iss_bus_free(&iss.bus);
    }
}

/* Exactly as long as it claims to be, so that the sanitizer sees reads behind its end. */
static const char *load_copy(const uint8_t *image, size_t size)
{
    iss_t iss = machine();
    uint8_t *copy = malloc(size == 0 ? 1 : size);
    const char *problem = "out of memory";
    if (copy != NULL) {
        memcpy(copy, image, size);
        problem = htvm_iss_load_elf(&iss, copy, size);
    }
    free(copy);
    htvm_iss_bus_free(&iss.bus);
    return problem;
}

static void survives_truncation(void)
{
    uint8_t image[IMAGE_BYTES];
    sound_image(image);
    for (size_t size = 0; size < sizeof image; ++size) {
        CHECK(load_copy(image, size) != NULL);
    }
}

static void survives_noise(void)
{
    static const uint32_t favourites[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffffc};
    uint32_t state = 1;
    size_t accepted = 0;
    for (int round = 0; round < 100000; ++round) {
        uint8_t image[IMAGE_BYTES];
        sound_image(image);
        const uint32_t changes = 1 + round % 3;
        for (uint32_t i = 0; i < changes; ++i) {
            state = state * 1664525u + 1013904223u;
            const size_t at = 16 + (state >> 8) % (HEADERS - 16 - 3);
            const uint32_t value = state >> 30 == 0 ? state : favourites[(state >> 4) % 6];
            put32(image + at, value);
        }
        accepted += load_copy(image, sizeof image) == NULL;
    }
    CHECK(accepted > 0);
}

int main(void)
{
    loads_a_sound_file();
    names_each_defect();
    survives_truncation();
    survives_noise();
    return htvm_test_report();
}
