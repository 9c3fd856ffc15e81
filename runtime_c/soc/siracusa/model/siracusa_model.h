/* Device models of N-EUREKA and of the DMA: what their files share.  Private to this folder.
 *
 * Up to SIRACUSA_NEUREKA_CONTEXTS jobs are queued and run one after another.  A job is checked, and
 * when it is done is known, when it is triggered; it reads and writes memory when that time is over.
 * L1 is memory that cores access, too: what a job touches must not be changed by anybody else from
 * the trigger to the end. */
#ifndef SIRACUSA_MODEL_H
#define SIRACUSA_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "htvm_soc_log.h"
#include "htvm_soc_model.h"
#include "siracusa_dma_regs.h"
#include "siracusa_neureka_regs.h"

/* Dimensions of the engine's buffers, for arrays; htvm_soc.h has their values. */
#define SIRACUSA_BLOCK SIRACUSA_NEUREKA_BLOCK
#define SIRACUSA_PATCH (SIRACUSA_NEUREKA_BLOCK + SIRACUSA_NEUREKA_FILTER - 1u)
#define SIRACUSA_TAPS (SIRACUSA_NEUREKA_FILTER * SIRACUSA_NEUREKA_FILTER)
#define SIRACUSA_CHANNELS SIRACUSA_NEUREKA_SCALE_CHANNELS /* the most of any tile */

/* Bytes at device addresses that a job reads or writes: rows of pixels of bytes. */
typedef struct {
    const char *role; /* in messages */
    uint32_t first, rows, row_stride, pixels, pixel_stride, bytes;
    uint8_t *memory; /* of the first byte */
    uint64_t sum;    /* checksum of the bytes while the job waits or runs */
} siracusa_area_t;

enum { OUTPUT, INPUT, WEIGHTS, SCALES, SHIFTS, BIASES, AREAS };

/* Blocks along one axis of the output. */
typedef struct {
    uint32_t blocks, last; /* number of blocks, outputs in the last */
    uint32_t before;       /* padding before the first input */
    uint32_t loaded;       /* inputs that the last block loads */
} siracusa_axis_t;

/* A job whose registers were checked; areas without a role are not used. */
typedef struct {
    uint32_t id, context;
    uint32_t mode, weight_bits, conf0;
    uint32_t ko_tiles, last_ko, ki_tiles, last_ki;
    siracusa_axis_t rows, columns;
    int32_t padding; /* the value of padded pixels, as wide as the input's */
    uint32_t offset, mask;
    siracusa_area_t areas[AREAS];
    uint64_t start, end;
    uint64_t accesses; /* to L1 */
} siracusa_job_t;

enum { SOURCE, DESTINATION, SIDES };

/* A transfer of the DMA.  Its bytes move when it is done. */
typedef struct {
    uint32_t counter;
    bool in; /* to L1 */
    siracusa_area_t sides[SIDES];
    uint64_t end;
    uint64_t beats; /* cycles before that in which its bytes arrive */
} siracusa_transfer_t;

enum { MOST_WORDS = 7 };

/* The DMA.  Transfers are in the order in which they were queued; those of a direction are done in
 * that order. */
typedef struct {
    uint32_t words[MOST_WORDS]; /* of the transfer that is being programmed */
    size_t word_count;
    uint32_t allocated; /* counters, a bit each */
    uint32_t counter;   /* of the transfers that are programmed; SIRACUSA_DMA_NONE: none */
    siracusa_transfer_t queue[SIRACUSA_DMA_QUEUE_DEPTH];
    size_t queued;
    uint64_t free_at[2]; /* when each direction is done: out, in */
} siracusa_dma_t;

struct htvm_soc {
    htvm_bus_t bus;
    uint64_t now; /* of the latest access */
    siracusa_dma_t dma;
    uint32_t reg[SIRACUSA_NEUREKA_CONTEXTS][SIRACUSA_NEUREKA_JOB_REGISTERS];
    siracusa_job_t queue[SIRACUSA_NEUREKA_CONTEXTS];
    size_t queued;
    bool acquired;     /* a job was acquired and not triggered yet */
    uint32_t context;  /* of that job, or of the next */
    uint32_t next_id;  /* likewise */
    uint32_t last_id;  /* of the job that ran last */
    uint32_t finished; /* jobs done */
    uint8_t written[HTVM_L1_SIZE]; /* scratch: bytes that a job writes */
    /* Does not tell who waits: cores poll side by side, and only the simulator knows which. */
    htvm_log_t log;
};

static inline bool siracusa_flag(const siracusa_job_t *job, uint32_t flag)
{
    return (job->conf0 & flag) != 0;
}

static inline uint32_t siracusa_up(uint32_t value, uint32_t step)
{
    return value / step + (value % step != 0);
}

/* Rows and columns of the filter. */
static inline uint32_t siracusa_filter(const siracusa_job_t *job)
{
    return job->mode == SIRACUSA_NEUREKA_MODE_1X1 ? 1u : SIRACUSA_NEUREKA_FILTER;
}

/* Channels of a whole Ki tile and Ko tile of this mode. */
uint32_t siracusa_ki_channels(uint32_t mode);
uint32_t siracusa_ko_channels(uint32_t mode);

/* Channels of Ko tile number `tile`, and of Ki tile number `tile`. */
uint32_t siracusa_ko(const siracusa_job_t *job, uint32_t tile);
uint32_t siracusa_ki(const siracusa_job_t *job, uint32_t tile);

/* Outputs of block number `block` along an axis, and inputs that it loads. */
uint32_t siracusa_outputs(const siracusa_axis_t *axis, uint32_t block);
uint32_t siracusa_loaded(const siracusa_job_t *job, const siracusa_axis_t *axis, uint32_t block);

/* Keeps the message if it is the first of the run, and drops all jobs.  Always returns false, so
 * that checks can end with `return siracusa_complain(...)`. */
bool siracusa_complain(htvm_soc_t *soc, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same of the DMA, which drops all transfers. */
bool siracusa_dma_complain(htvm_soc_t *soc, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The DMA's registers. */
uint32_t siracusa_dma_read(htvm_soc_t *soc, uint32_t offset);
void siracusa_dma_write(htvm_soc_t *soc, uint32_t offset, uint32_t value);

/* Completes the transfers that are done by now. */
void siracusa_dma_advance(htvm_soc_t *soc);

/* Whether a job may be queued beside the transfers under way; false after a complaint. */
bool siracusa_check_transfers(htvm_soc_t *soc, const siracusa_job_t *job);

/* Reads a job from the registers; false after a complaint about their values. */
bool siracusa_read_job(htvm_soc_t *soc, siracusa_job_t *job);

/* Finds all bytes that a job touches; false after a complaint that they are not in memory, or
 * overlap. */
bool siracusa_find_areas(htvm_soc_t *soc, siracusa_job_t *job);

/* Finds the bytes of a transfer's side in L1; false after a complaint that they are not all there. */
bool siracusa_find_in_l1(htvm_soc_t *soc, siracusa_area_t *area);

/* Whether two areas have a byte in common; only bytes in L1 count. */
bool siracusa_meet(htvm_soc_t *soc, const siracusa_area_t *a, const siracusa_area_t *b);

/* A sum that differs, most likely, if a byte of the area does. */
uint64_t siracusa_checksum(const siracusa_area_t *area);

/* Remembers what is in a job's areas; whether it still is, with a complaint if not. */
void siracusa_remember(siracusa_job_t *job);
bool siracusa_unchanged(htvm_soc_t *soc, const siracusa_job_t *job);

/* Bytes from the first to the last of an area, with the gaps. */
uint64_t siracusa_span(const siracusa_area_t *area);

/* The rows of an area, for the log. */
htvm_rows_t siracusa_rows(const siracusa_area_t *area);

/* Cycles of a job, and those of them in which the array computes. */
uint64_t siracusa_cycles(const siracusa_job_t *job);
uint64_t siracusa_array_cycles(const siracusa_job_t *job);

/* Accesses of a job to L1, each at most as wide as the engine's port. */
uint64_t siracusa_accesses(const siracusa_job_t *job);

/* Multiply-accumulates of a job. */
uint64_t siracusa_macs(const siracusa_job_t *job);

/* Computes a job, and writes its output; false after a complaint. */
bool siracusa_compute(htvm_soc_t *soc, const siracusa_job_t *job);

#endif
