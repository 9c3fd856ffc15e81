/* Counts the instructions that an emulator executes: called for every block of straight code. */
#include <stddef.h>
#include <stdint.h>

/* Lines of flash that its interface keeps, the one used last first; a new one replaces the last. */
typedef struct {
    uint32_t *lines; /* line + 1; 0: none yet */
    uint32_t number;
    uint64_t missed; /* reads of lines that were not kept */
} htvm_lines_t;

typedef struct {
    uint64_t instructions; /* counted so far, with the block that has begun */
    uint64_t limit;        /* from so many on, the emulator is stopped */
    const uint8_t *code;   /* the program, of `bytes` bytes from address `base` on */
    uint32_t *known;       /* a block at each even address: its size << 16 | instructions; 0: unknown */
    int64_t *entered; /* at each halfword: blocks that began there, less those that ended before it */
    uint64_t taken;   /* blocks that did not begin where the one before had ended */
    uint64_t next;    /* address where the last block ended */
    int (*stop)(void *emulator);
    uint32_t base, bytes;
    uint32_t outside;    /* a block outside of the program was executed */
    uint32_t line_bytes; /* of flash; 0: reads of lines are not counted */
    htvm_lines_t fetched, loaded;
} htvm_count_t;

void htvm_count_block(void *emulator, uint64_t address, uint32_t size, void *user);
void htvm_count_load(void *emulator, int kind, uint64_t address, int size, int64_t value,
                     void *user);

/* Reads `size` bytes at `address`. */
static void read_lines(htvm_lines_t *kept, uint32_t line_bytes, uint64_t address, uint32_t size)
{
    const uint32_t last = (uint32_t)((address + size - 1) / line_bytes) + 1;
    for (uint32_t line = (uint32_t)(address / line_bytes) + 1; line <= last; line++) {
        uint32_t moved = line, at = 0;
        while (at < kept->number) {
            const uint32_t here = kept->lines[at];
            kept->lines[at++] = moved;
            moved = here;
            if (here == line) {
                break;
            }
        }
        kept->missed += moved != line || kept->number == 0;
    }
}

/* A load of constants. */
void htvm_count_load(void *emulator, int kind, uint64_t address, int size, int64_t value,
                     void *user)
{
    htvm_count_t *const count = user;
    (void)emulator;
    (void)kind;
    (void)value;
    read_lines(&count->loaded, count->line_bytes, address, (uint32_t)size);
}

/* Thumb: the first halfword tells whether an instruction has two. */
static uint32_t instructions_in(const uint8_t *code, uint32_t bytes)
{
    uint32_t number = 0;
    for (uint32_t at = 0; at < bytes; number++) {
        const uint32_t top = code[at + 1] >> 3;
        at += top == 0x1du || top == 0x1eu || top == 0x1fu ? 4 : 2;
    }
    return number;
}

void htvm_count_block(void *emulator, uint64_t address, uint32_t size, void *user)
{
    htvm_count_t *const count = user;
    const uint64_t at = address - count->base;
    if (address < count->base || at + size > count->bytes || size > 0xffffu) {
        count->outside = 1;
        count->stop(emulator);
        return;
    }
    uint32_t *const known = &count->known[at / 2];
    if (*known >> 16 != size || *known == 0) {
        *known = size << 16 | instructions_in(count->code + at, size);
    }
    if (count->line_bytes != 0) {
        read_lines(&count->fetched, count->line_bytes, address, size);
    }
    count->taken += address != count->next;
    count->next = address + size;
    count->entered[at / 2]++;
    count->entered[(at + size) / 2]--;
    count->instructions += *known & 0xffffu;
    if (count->instructions >= count->limit) {
        count->stop(emulator);
    }
}
