/* Driver of ITA.
 *
 * A task may be programmed while another runs; it then begins by itself.  A loop over tiles that
 * programs the next task before it waits for this one keeps ITA busy:
 *
 *   uint32_t next = snitch_ita_program(&first);
 *   for (...) {
 *       const uint32_t now = next;
 *       next = snitch_ita_program(&following);
 *       error = snitch_ita_wait_for(now);
 *       ... store what task `now` wrote ...
 *   }
 *
 * Functions that wait return 0, or the SNITCH_ERROR_* code (snitch_regs.h) with which the device
 * refused a task; the error is returned when the task is waited for.  Only one hart may use ITA.
 */
#ifndef SNITCH_ITA_DRIVER_H
#define SNITCH_ITA_DRIVER_H

#include <stdint.h>

#include "snitch_regs.h"

/* y = saturate(((x * mult) >> shift, rounded half up) + add) to [-128, 127]. */
typedef struct {
    uint8_t mult, shift;
    int8_t add;
    uint8_t reserved; /* 0 */
} snitch_ita_requant_t;

/* out[r][c] = act(requant(sum over i of left[r][i] * right[c][i] + bias)); sizes are multiples of
 * 64 up to 512; addresses are device addresses in L1, strides are bytes from one row to the next,
 * and both are multiples of 8.  Operations, kinds of bias, activations and flags are in
 * snitch_regs.h.  The layout is part of the register map. */
typedef struct {
    uint16_t rows, cols, inner;
    uint16_t length; /* QK: number of valid columns; the others are padding */
    uint8_t operation, bias_kind, activation, flags;
    snitch_ita_requant_t requant;
    snitch_ita_requant_t act_requant; /* GELU and ReLU */
    int16_t gelu_b, gelu_c;           /* GELU; b <= 0 */
    uint32_t left, left_stride;       /* [rows][inner] */
    uint32_t right, right_stride;     /* [cols][inner] */
    uint32_t bias;                    /* 3 bytes for each column, or row */
    uint32_t out, out_stride;         /* [rows][cols] */
} snitch_ita_task_t;

/* Waits until a context is free, programs it and starts it; returns the task's number. */
uint32_t snitch_ita_program(const snitch_ita_task_t *task);

/* Waits until this task and all before it are done. */
int32_t snitch_ita_wait_for(uint32_t number);

/* Waits until all tasks are done. */
int32_t snitch_ita_wait(void);

#endif
