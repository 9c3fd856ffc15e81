/* Counts the instructions that an emulator executes: called for every block of straight code. */
#include <stddef.h>
#include <stdint.h>

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
    uint32_t outside; /* a block outside of the program was executed */
} htvm_count_t;

void htvm_count_block(void *emulator, uint64_t address, uint32_t size, void *user);

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
    count->taken += address != count->next;
    count->next = address + size;
    count->entered[at / 2]++;
    count->entered[(at + size) / 2]--;
    count->instructions += *known & 0xffffu;
    if (count->instructions >= count->limit) {
        count->stop(emulator);
    }
}
