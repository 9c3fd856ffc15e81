/* dla: the accelerator as a simulator executes it: SRAM, registers, instructions, checks, cycles.
 *
 * It knows neither a SoC nor a clock: the device model (dla_soc.c) and the native library for sweeps
 * (dla_native.c) use it.  All numbers of a design are data; nothing depends on vector instructions. */
#ifndef DLA_CORE_H
#define DLA_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "dla_isa.h"

/* The numbers of a design that the simulator needs. */
typedef struct {
    uint32_t pes_in, pes_out; /* channels in parallel; pes_in * pes_out PEs */
    uint32_t sram;            /* bytes */
    uint32_t dma_bytes;       /* bytes per cycle */
    uint32_t dma_setup;       /* cycles */
} dla_design_t;

/* System memory: `bytes` bytes from `offset` on in a slot; NULL unless all of them are there. */
typedef struct {
    void *ctx;
    uint8_t *(*find)(void *ctx, uint32_t slot, uint64_t offset, uint64_t bytes);
} dla_far_t;

/* An instruction with the values that the registers had when it was issued. */
typedef struct {
    const char *name;
    uint32_t opcode, flags, kind;
    uint32_t reg[DLA_CONFIG_REGISTERS];
    uint64_t cycles; /* that it takes */
    uint64_t macs;   /* multiply-accumulates, with those of padding */
    uint64_t bytes;  /* moved between system memory and SRAM */
} dla_job_t;

typedef struct {
    dla_design_t design;
    dla_far_t far;
    uint32_t reg[DLA_CONFIG_REGISTERS];
    uint32_t known; /* bit set of the registers that somebody wrote */
    uint8_t *sram;
    uint8_t *written; /* 1 for each byte of SRAM that somebody wrote */
    int16_t *wide;    /* scratch: widened operands */
    uint64_t wide_elements;
    bool complained;
    char complaint[240];
} dla_core_t;

/* false if there is not enough memory on this machine */
bool dla_core_init(dla_core_t *core, const dla_design_t *design, dla_far_t far);
void dla_core_free(dla_core_t *core);

/* All of these return false after a complaint, whose text is in the core. */
bool dla_core_write(dla_core_t *core, uint32_t reg, uint32_t value);
bool dla_core_issue(dla_core_t *core, uint32_t word, dla_job_t *job); /* checks, computes nothing */
bool dla_core_execute(dla_core_t *core, const dla_job_t *job);

/* ---- for the files of the model ---- */

/* A tensor in SRAM; strides in bytes. */
typedef struct {
    const char *what;
    uint32_t at, channels, height, width, pixel, row, size; /* size: bytes of an element */
} dla_view_t;

bool dla_complain(dla_core_t *core, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool dla_check(dla_core_t *core, const dla_job_t *job);
bool dla_has_window(uint32_t opcode);
bool dla_is_product(uint32_t opcode);
bool dla_has_two(uint32_t opcode);
/* whether the results are int32 */
bool dla_gives_int32(uint32_t opcode, uint32_t flags);
bool dla_takes_int32(uint32_t opcode);
dla_view_t dla_operand(const dla_job_t *job, int number);
dla_view_t dla_result(const dla_job_t *job);
void dla_count(const dla_design_t *design, dla_job_t *job);
bool dla_convolve(dla_core_t *core, const dla_job_t *job);
bool dla_convolve_depthwise(dla_core_t *core, const dla_job_t *job);
void dla_elements(dla_core_t *core, const dla_job_t *job);
void dla_pool(dla_core_t *core, const dla_job_t *job);
/* `elements` int16 of scratch memory; NULL, with a complaint, if there are none */
int16_t *dla_scratch(dla_core_t *core, uint64_t elements);

static inline uint32_t dla_high(uint32_t value) { return value >> 16; }
static inline uint32_t dla_low(uint32_t value) { return value & 0xffffu; }

/* Floors, for negative numbers, too. */
static inline int32_t dla_shift(int32_t value, uint32_t bits)
{
    return value >= 0 ? (int32_t)((uint32_t)value >> bits) : (int32_t) ~(~(uint32_t)value >> bits);
}

/* clip(value >> SHIFT), with the limits of CLIP. */
static inline int8_t dla_requantized(int32_t value, uint32_t bits, int32_t low, int32_t high)
{
    const int32_t shifted = dla_shift(value, bits);
    return (int8_t)(shifted < low ? low : shifted > high ? high : shifted);
}

#endif
