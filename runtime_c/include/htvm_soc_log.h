/* The log of a SoC's device models: what the devices did in a run, and the first error reported.
 *
 * Models keep it in their htvm_soc_t; htvm_soc_error and htvm_soc_events (htvm_soc_model.h) return
 * its contents.  Device models must be linked with soc/common. */
#ifndef HTVM_SOC_LOG_H
#define HTVM_SOC_LOG_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* How bytes lie in memory: rows of pixels of bytes, strides in bytes.  No bytes: all in a row. */
typedef struct {
    uint32_t rows, row_stride, pixels, pixel_stride, bytes;
} htvm_rows_t;

/* One entry of the timeline; times in cycles.  Entries of the unit "host" are times in which the
 * host waits: from the read that finds a device busy (or its queue full) to one that does not. */
typedef struct {
    const char *unit, *what; /* not copied */
    uint64_t start, end;
    uint64_t issued;   /* when the host started it */
    uint64_t bytes;    /* bytes moved (DMA), or bytes of weights loaded */
    uint64_t macs;     /* useful multiply-accumulates */
    uint64_t array;    /* cycles the array computes */
    uint64_t weights;  /* cycles spent loading weights, or waiting for them */
    uint32_t from, to; /* device address of the first byte read (DMA only) and written */
    uint64_t written;  /* number of result bytes from there on; 0 if there are no results yet */
    htvm_rows_t from_rows, to_rows; /* which of these bytes; optional */
} htvm_event_t;

/* An object with all bytes zero is an empty log. */
typedef struct {
    htvm_event_t *events;
    size_t count, room;
    bool complained;
    char complaint[320];
} htvm_log_t;

void htvm_log_free(htvm_log_t *log);

/* Logs an event; logs a complaint if the simulating machine is out of memory. */
void htvm_log_event(htvm_log_t *log, htvm_event_t event);

/* Keeps a complaint as "device: message" if it is the first. */
void htvm_log_complaint(htvm_log_t *log, const char *device, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));

/* The first complaint, or NULL. */
const char *htvm_log_error(const htvm_log_t *log);

/* Prints the events as JSON lines, in the order in which they were logged. */
void htvm_log_print(const htvm_log_t *log, FILE *out);

#endif
