/* Driver of N-EUREKA.
 *
 * Two jobs may be queued; the second begins by itself when the first ends.  A loop over tiles that
 * programs the next job before it waits for this one keeps the engine busy:
 *
 *   uint32_t next = siracusa_neureka_program(first);
 *   for (...) {
 *       const uint32_t now = next;
 *       next = siracusa_neureka_program(following);
 *       siracusa_neureka_wait_for(now);
 *       ... store what job `now` wrote ...
 *   }
 *
 * One core may use the engine.  It has no error register: what is wrong with a job is told by the
 * device model, which ends the simulation.
 */
#ifndef SIRACUSA_NEUREKA_DRIVER_H
#define SIRACUSA_NEUREKA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "siracusa_neureka_regs.h"

/* A convolution with stride 1, of bytes in L1, rows of pixels of channels.  Addresses are device
 * addresses, strides in bytes; channels of a pixel are contiguous. */
typedef struct {
    uint32_t flags;          /* SIRACUSA_NEUREKA_* of CONF0: SCALED, PREFETCH, SCALE_32, STREAM_IN,
                                SIGNED_OUTPUT, CHANNEL_SHIFT, BIAS, SIGNED_INPUT */
    uint32_t weights;        /* in L1 or in the weight memory */
    uint32_t input, output;  /* the first pixel, padding not included */
    uint32_t scales, shifts, biases; /* for each output channel, those that `flags` ask for */
    uint32_t input_row, input_pixel; /* strides */
    uint32_t output_row, output_pixel;
    int32_t offset;          /* added to every weight */
    uint16_t rows, columns;  /* of the output */
    uint16_t inputs, outputs; /* channels */
    uint16_t mask;           /* taps that are off, bit 3 * row + column; 0 for 1x1 */
    uint8_t mode;            /* SIRACUSA_NEUREKA_MODE_* */
    uint8_t weight_bits;     /* 2 to 8 */
    uint8_t shift;           /* of all channels, unless they have shifts of their own */
    uint8_t padding_top, padding_right, padding_bottom, padding_left; /* at most 2; 0 for 1x1 */
    uint8_t padding_value;   /* the byte that padded pixels hold */
} siracusa_neureka_job_t;

/* Job registers, by number. */
typedef struct {
    uint32_t value[SIRACUSA_NEUREKA_JOB_REGISTERS];
} siracusa_neureka_registers_t;

/* Where a tile's job finds its data, as device addresses. */
typedef struct {
    uint32_t weights, input, output;
    uint32_t factors; /* scales, shifts and biases */
} siracusa_neureka_places_t;

/* Computes the registers of a job. */
void siracusa_neureka_fill(siracusa_neureka_registers_t *registers,
                           const siracusa_neureka_job_t *job);

/* Waits until a context is free, writes its registers and starts the job; returns its number. */
uint32_t siracusa_neureka_program(const siracusa_neureka_registers_t *registers);

/* The same for a job whose addresses in `registers` count from these places: the first register from
 * the weights, the next two from input and output, those of scales, shifts and biases from the
 * factors.  So jobs of equal tiles share their registers, which are best in L1. */
uint32_t siracusa_neureka_start(const siracusa_neureka_registers_t *registers,
                                const siracusa_neureka_places_t *places);

/* The same in two steps: the registers are written, and the job is started. */
uint32_t siracusa_neureka_prepare(const siracusa_neureka_registers_t *registers,
                                  const siracusa_neureka_places_t *places);
void siracusa_neureka_trigger(void);

/* Whether this job, one of the last 128, is done. */
int siracusa_neureka_is_done(uint32_t number);

/* Waits until it is, and all before it. */
void siracusa_neureka_wait_for(uint32_t number);

/* Waits until all jobs are done. */
void siracusa_neureka_wait(void);

/* The last tile of a layer may be left to the next one (siracusa_left_driver.c): the layer returns
 * while the engine computes it.  The next one writes the registers of its first job meanwhile, then
 * waits for that tile, lets the cores complete it, and triggers the job.  Jobs that do not read what
 * the cores write may be started before.  Until the tile is complete, no other kernel may run.
 *
 * Leaves it to the next layer to wait for a job, and to run the kernel (see cluster.h) that completes
 * its tile, if not NULL.  `args`, of up to SIRACUSA_NEUREKA_LEFT_BYTES, a multiple of 4, are copied. */
#define SIRACUSA_NEUREKA_LEFT_BYTES 48u
void siracusa_neureka_leave(uint32_t number,
                            void (*kernel)(const void *args, uint32_t core, uint32_t cores),
                            const void *args, uint32_t bytes);

/* Completes the tile that was left; does nothing if that is done. */
void siracusa_neureka_complete(void);

/* Starts a job like siracusa_neureka_start, when the tile that was left is complete. */
uint32_t siracusa_neureka_start_behind(const siracusa_neureka_registers_t *registers,
                                       const siracusa_neureka_places_t *places);

/* Drops all jobs; numbers begin with 0 again. */
void siracusa_neureka_clear(void);

#endif
