/* Arm Ethos-U55 and -U65 (one core) as a functional model: it executes the command streams that the
 * NPU's driver is given, bit for bit, and complains about what a stream must not do.
 *
 * It needs no operating system: no allocation, no standard output.  All state is in the caller's
 * workspace.  It has no clock.
 *
 * Behind the interface of Arm's driver (ethosu_driver.h) it has one workspace, of
 * HTVM_ETHOS_U_WORKSPACE bytes (a macro of its build), and looks for everything unless built with
 * HTVM_ETHOS_U_UNCHECKED. */
#ifndef HTVM_ETHOS_U_H
#define HTVM_ETHOS_U_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HTVM_ETHOS_U_REGIONS = 8,
    /* Bytes of workspace that suffice for state; more makes convolutions faster. */
    HTVM_ETHOS_U_WORKSPACE_LEAST = 96 * 1024,
};

/* What a run ends with. */
typedef enum {
    HTVM_ETHOS_U_DONE = 0,
    HTVM_ETHOS_U_BAD_CALL = 1,    /* arguments: null or unaligned pointers, a workspace too small */
    HTVM_ETHOS_U_BAD_PAYLOAD = 2, /* no driver actions, or for another NPU */
    HTVM_ETHOS_U_BAD_STREAM = 3,  /* a command that the NPU must not be given */
    HTVM_ETHOS_U_TOO_LONG = 4,    /* the limit of multiply-accumulates */
} htvm_ethos_u_status_t;

typedef struct {
    uint32_t region;
    uint64_t first, bytes;
} htvm_ethos_u_range_t;

/* A zero or NULL in an optional member leaves out what it describes. */
typedef struct {
    const void *payload; /* driver actions from "COP1" on; 16-byte aligned */
    size_t payload_bytes;
    uint8_t *const *base; /* of every region; NULL: there is none; 16-byte aligned */
    const size_t *bytes;  /* of every region */
    uint32_t regions;     /* at most HTVM_ETHOS_U_REGIONS */
    uint32_t macs;        /* per cycle: 32, 64, 128, 256; optional: as the payload says */
    uint32_t product;     /* 55, 65; optional: as the payload says */
    bool checked;         /* look for everything, not only for what cannot be executed */
    uint32_t constant;    /* bit set of regions that the NPU must not write; optional */
    /* Bytes that hold values before the start.  Optional: all do.  Only if checked. */
    const htvm_ethos_u_range_t *written;
    uint32_t written_count;
    uint64_t work_limit; /* multiply-accumulates (or elements) of a run; optional */
    /* 16-byte aligned; at least HTVM_ETHOS_U_WORKSPACE_LEAST bytes, and with `written` an eighth of
     * the bytes of all regions more. */
    void *workspace;
    size_t workspace_bytes;
} htvm_ethos_u_call_t;

typedef struct {
    uint32_t commands; /* operations executed */
    uint64_t macs;     /* multiply-accumulates of convolutions */
    char complaint[240]; /* empty if there is none: operation, command, register, address */
} htvm_ethos_u_result_t;

/* Executes a payload; `result` is filled in any case. */
htvm_ethos_u_status_t htvm_ethos_u_run(const htvm_ethos_u_call_t *call,
                                       htvm_ethos_u_result_t *result);

/* The first complaint behind the driver's interface since the program began, or NULL. */
const char *htvm_ethos_u_complaint(void);

#endif
