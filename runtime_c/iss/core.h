/* Which core this simulator is built for, from the SoC's htvm_soc.h.
 *
 * Without that header, or where it says nothing about the core, it is a CV32E40P that is alone
 * (execute.c, timing.h); with HTVM_CORE_COREV it has the PULP extensions (corev.h).  With
 * HTVM_CLUSTER_HARTS there may be many of them (harts.h), with the memory nearby and the latencies
 * that the header has.  With HTVM_CORE_SCOREBOARD cores have a scoreboard instead of the CV32E40P's
 * pipeline; there is one, or those of the cluster.
 */
#ifndef HTVM_ISS_CORE_H
#define HTVM_ISS_CORE_H

#ifdef __has_include
#if __has_include("htvm_soc.h")
#include "htvm_soc.h"
#endif
#endif

#if defined(HTVM_CORE_SCOREBOARD) || defined(HTVM_CLUSTER_HARTS)
#define HTVM_ISS_HARTS 1 /* harts.h instead of execute.c */

#ifdef HTVM_CLUSTER_HARTS
enum { MAX_HARTS = HTVM_CLUSTER_HARTS, BANKS = HTVM_CLUSTER_BANKS,
       BANK_BYTES = HTVM_CLUSTER_BANK_BYTES, RELEASE_CYCLES = HTVM_CLUSTER_RELEASE,
       WAKE_CYCLES = HTVM_CLUSTER_WAKE, WORKER_STACK = HTVM_CLUSTER_WORKER_STACK,
       FIRST_CORE = HTVM_CLUSTER_FIRST, CORES = HTVM_CLUSTER_CORES };
#define CONTROL_BASE HTVM_CLUSTER_REGISTERS
#else
enum { MAX_HARTS = 1, BANKS = 1, BANK_BYTES = 4, RELEASE_CYCLES = 0, WAKE_CYCLES = 0,
       WORKER_STACK = 0, FIRST_CORE = 0, CORES = 1 };
#define CONTROL_BASE UINT32_MAX
#endif

/* The memory whose banks harts share; its bytes are one RAM of the machine. */
#ifdef HTVM_CLUSTER_SHARED_SIZE
#define NEAR_BASE HTVM_L2_BASE
#define NEAR_SIZE HTVM_CLUSTER_SHARED_SIZE
#elif defined(HTVM_L1_MAPPED)
#define NEAR_BASE HTVM_L1_BASE
#define NEAR_SIZE (HTVM_L1_SIZE + HTVM_L1_RESERVED)
#else
#define NEAR_BASE 0u
#define NEAR_SIZE 0u
#endif

/* Control registers of the cluster, offsets in bytes. */
enum {
    CONTROL_MASK = 0,    /* harts that meet at the barrier, a bit each; read and write */
    CONTROL_BARRIER = 4, /* a read waits until all of them read it */
    CONTROL_WAKE = 8,    /* write: wakes harts, a bit each, now or at their next wfi */
    CONTROL_BYTES = 12
};

#endif
#endif
