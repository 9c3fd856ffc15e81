/* The DMA: transfers of rows between L1 and other memory, one queue for each direction. */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "siracusa_model.h"

#define KNOWN                                                                                    \
    (SIRACUSA_DMA_MOST_BYTES | SIRACUSA_DMA_IN | SIRACUSA_DMA_INCREMENT |                        \
     SIRACUSA_DMA_ROWS_OUTSIDE | SIRACUSA_DMA_EVENT | SIRACUSA_DMA_INTERRUPT |                   \
     SIRACUSA_DMA_BROADCAST | SIRACUSA_DMA_ROWS_L1)

enum { OUTWARD, INWARD };

bool siracusa_dma_complain(htvm_soc_t *soc, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    htvm_log_complaint(&soc->log, "DMA", format, arguments);
    va_end(arguments);
    soc->dma.queued = 0;
    soc->dma.word_count = 0;
    return false;
}

/* ---- programming ---------------------------------------------------------------------------- */

/* Words of a transfer, by its first one. */
static size_t word_count(uint32_t command)
{
    const bool outside = (command & SIRACUSA_DMA_ROWS_OUTSIDE) != 0;
    const bool in_l1 = (command & SIRACUSA_DMA_ROWS_L1) != 0;
    return 3u + (outside ? 2u : 0u) + (in_l1 ? 2u : 0u);
}

/* One side of a transfer of `bytes` bytes; `rows` are the two words that say so, or NULL. */
static bool read_side(htvm_soc_t *soc, siracusa_area_t *side, uint32_t first, uint32_t bytes,
                      const uint32_t *rows)
{
    *side = (siracusa_area_t){.first = first, .rows = 1, .pixels = 1, .bytes = bytes};
    if (rows == NULL) {
        return true;
    }
    if (rows[0] == 0 || bytes % rows[0] != 0) {
        return siracusa_dma_complain(soc, "transfer of %" PRIu32 " B at 0x%08" PRIX32
                                     " in rows of %" PRIu32 " B, which is no divisor",
                                     bytes, first, rows[0]);
    }
    side->rows = bytes / rows[0];
    side->row_stride = rows[1];
    side->bytes = rows[0];
    return true;
}

static bool find_outside(htvm_soc_t *soc, siracusa_area_t *side)
{
    const uint64_t span = siracusa_span(side);
    const uint64_t end = side->first + span;
    const bool in_l1 = side->first < HTVM_L1_BASE + HTVM_L1_SIZE && end > HTVM_L1_BASE;
    side->memory = span > UINT32_MAX || in_l1
                       ? NULL
                       : soc->bus.map(soc->bus.ctx, side->first, (uint32_t)span);
    if (side->memory == NULL) {
        return siracusa_dma_complain(soc, "%s at 0x%08" PRIX32 " (%" PRIu32 " x %" PRIu32
                                     " B, every %" PRIu32 " B) is not in memory outside of L1",
                                     side->role, side->first, side->rows, side->bytes,
                                     side->row_stride);
    }
    return true;
}

static bool read_transfer(htvm_soc_t *soc, siracusa_transfer_t *transfer)
{
    const uint32_t *word = soc->dma.words;
    const uint32_t bytes = word[0] & SIRACUSA_DMA_MOST_BYTES;
    const bool outer_rows = (word[0] & SIRACUSA_DMA_ROWS_OUTSIDE) != 0;
    const bool l1_rows = (word[0] & SIRACUSA_DMA_ROWS_L1) != 0;
    transfer->counter = soc->dma.counter;
    transfer->in = (word[0] & SIRACUSA_DMA_IN) != 0;
    siracusa_area_t *l1 = &transfer->sides[transfer->in ? DESTINATION : SOURCE];
    siracusa_area_t *outside = &transfer->sides[transfer->in ? SOURCE : DESTINATION];
    if (!read_side(soc, l1, word[1], bytes, l1_rows ? word + (outer_rows ? 5 : 3) : NULL) ||
        !read_side(soc, outside, word[2], bytes, outer_rows ? word + 3 : NULL)) {
        return false;
    }
    transfer->sides[SOURCE].role = "source";
    transfer->sides[DESTINATION].role = "destination";
    const siracusa_area_t *to = &transfer->sides[DESTINATION];
    if (to->rows > 1 && to->row_stride < to->bytes) {
        return siracusa_dma_complain(soc, "transfer to 0x%08" PRIX32 ": rows of %" PRIu32
                                     " B every %" PRIu32 " B overwrite each other",
                                     to->first, to->bytes, to->row_stride);
    }
    return siracusa_find_in_l1(soc, l1) && find_outside(soc, outside);
}

/* ---- races ---------------------------------------------------------------------------------- */

/* Whether one of the areas is written, and both have a byte of L1 in common. */
static bool clash(htvm_soc_t *soc, const siracusa_area_t *a, bool a_written,
                  const siracusa_area_t *b, bool b_written)
{
    return (a_written || b_written) && siracusa_meet(soc, a, b);
}

/* The areas of a job and a transfer that must not meet, but do; false if there are none. */
static bool job_clashes(htvm_soc_t *soc, const siracusa_transfer_t *transfer,
                        const siracusa_job_t *job, size_t *side, size_t *area)
{
    for (*side = 0; *side < SIDES; ++*side) {
        for (*area = 0; *area < AREAS; ++*area) {
            if (job->areas[*area].role != NULL &&
                clash(soc, &transfer->sides[*side], *side == DESTINATION, &job->areas[*area],
                      *area == OUTPUT)) {
                return true;
            }
        }
    }
    return false;
}

bool siracusa_check_transfers(htvm_soc_t *soc, const siracusa_job_t *job)
{
    size_t side, area;
    for (size_t n = 0; n < soc->dma.queued; n++) {
        const siracusa_transfer_t *transfer = &soc->dma.queue[n];
        if (job_clashes(soc, transfer, job, &side, &area)) {
            return siracusa_complain(soc, "job %" PRIu32 ": %s at 0x%08" PRIX32 " (%" PRIu64
                                     " B) meet the %s of a transfer under way, 0x%08" PRIX32
                                     " (%" PRIu64 " B)",
                                     job->id, job->areas[area].role, job->areas[area].first,
                                     siracusa_span(&job->areas[area]),
                                     transfer->sides[side].role, transfer->sides[side].first,
                                     siracusa_span(&transfer->sides[side]));
        }
    }
    return true;
}

static bool check_jobs(htvm_soc_t *soc, const siracusa_transfer_t *transfer)
{
    size_t side, area;
    for (size_t n = 0; n < soc->queued; n++) {
        const siracusa_job_t *job = &soc->queue[n];
        if (job_clashes(soc, transfer, job, &side, &area)) {
            return siracusa_dma_complain(soc, "%s at 0x%08" PRIX32 " (%" PRIu64
                                         " B) meets %s of job %" PRIu32 " under way, 0x%08" PRIX32
                                         " (%" PRIu64 " B)",
                                         transfer->sides[side].role, transfer->sides[side].first,
                                         siracusa_span(&transfer->sides[side]),
                                         job->areas[area].role, job->id, job->areas[area].first,
                                         siracusa_span(&job->areas[area]));
        }
    }
    return true;
}

/* Whether rows of two transfers have a byte in common. */
static bool rows_meet(const siracusa_area_t *a, const siracusa_area_t *b)
{
    for (uint32_t row = 0; row < a->rows; row++) {
        const uint64_t start = (uint64_t)a->first + (uint64_t)row * a->row_stride;
        const uint64_t first_end = (uint64_t)b->first + b->bytes;
        uint64_t other = 0; /* the first row of b that ends behind `start` */
        if (start >= first_end) {
            other = b->rows > 1 && b->row_stride > 0 ? (start - first_end) / b->row_stride + 1u
                                                     : b->rows;
        }
        if (other < b->rows && b->first + other * b->row_stride < start + a->bytes) {
            return true;
        }
    }
    return false;
}

/* Transfers in opposite directions run side by side: none may write what the other touches. */
static bool check_opposite(htvm_soc_t *soc, const siracusa_transfer_t *transfer)
{
    for (size_t n = 0; n < soc->dma.queued; n++) {
        const siracusa_transfer_t *other = &soc->dma.queue[n];
        for (size_t i = 0; i < SIDES && other->in != transfer->in; i++) {
            /* The side in L1 of one is the destination, of the other the source. */
            const siracusa_area_t *mine = &transfer->sides[i];
            const siracusa_area_t *its = &other->sides[SIDES - 1u - i];
            if (rows_meet(mine, its)) {
                return siracusa_dma_complain(soc, "%s at 0x%08" PRIX32 " (%" PRIu64
                                             " B) meets the %s of a transfer under way, 0x%08"
                                             PRIX32 " (%" PRIu64 " B)",
                                             mine->role, mine->first, siracusa_span(mine),
                                             its->role, its->first, siracusa_span(its));
            }
        }
    }
    return true;
}

/* ---- time ----------------------------------------------------------------------------------- */

/* Cycles of the rows outside of L1: words that they touch; bursts that are too short do not fill
 * the time until their answers arrive, because only some can be under way. */
static uint64_t beats(const siracusa_area_t *outside)
{
    const uint32_t width = SIRACUSA_DMA_BYTES_PER_CYCLE;
    uint64_t total = 0;
    for (uint32_t row = 0; row < outside->rows; row++) {
        const uint32_t first = (outside->first + row * outside->row_stride) % width;
        for (uint32_t at = 0; at < outside->bytes; at += SIRACUSA_DMA_BURST_BYTES) {
            const uint32_t left = outside->bytes - at;
            const uint32_t bytes = left < SIRACUSA_DMA_BURST_BYTES ? left : SIRACUSA_DMA_BURST_BYTES;
            const uint32_t words = siracusa_up(first + bytes, width);
            const uint32_t answered =
                siracusa_up(SIRACUSA_DMA_CALL_CYCLES + words, SIRACUSA_DMA_OUTSTANDING);
            total += words > answered ? words : answered;
        }
    }
    return total;
}

static void remember(siracusa_transfer_t *transfer);
static bool spoil(htvm_soc_t *soc, const siracusa_area_t *to);

static void note(htvm_soc_t *soc, const siracusa_transfer_t *transfer, uint64_t start)
{
    const siracusa_area_t *to = &transfer->sides[DESTINATION];
    const htvm_event_t event = {
        .unit = "dma",
        .what = transfer->in ? "in" : "out",
        .start = start,
        .end = transfer->end,
        .issued = soc->now,
        .bytes = (uint64_t)to->rows * to->bytes,
        .from = transfer->sides[SOURCE].first,
        .to = to->first,
        .written = siracusa_span(to),
        .from_rows = siracusa_rows(&transfer->sides[SOURCE]),
        .to_rows = siracusa_rows(to),
    };
    htvm_log_event(&soc->log, event);
}

static void take(htvm_soc_t *soc)
{
    siracusa_dma_t *dma = &soc->dma;
    siracusa_transfer_t transfer;
    dma->word_count = 0;
    memset(&transfer, 0, sizeof transfer);
    if (!read_transfer(soc, &transfer)) {
        return;
    }
    if (dma->queued == SIRACUSA_DMA_QUEUE_DEPTH) {
        siracusa_dma_complain(soc, "transfer to 0x%08" PRIX32 ": the queue of %u is full",
                              transfer.sides[DESTINATION].first, SIRACUSA_DMA_QUEUE_DEPTH);
        return;
    }
    if (!check_jobs(soc, &transfer) || !check_opposite(soc, &transfer)) {
        return;
    }
    uint64_t *free_at = &dma->free_at[transfer.in ? INWARD : OUTWARD];
    const uint64_t arrives = soc->now + SIRACUSA_DMA_CALL_CYCLES;
    const uint64_t start = *free_at > soc->now ? *free_at : soc->now;
    transfer.beats = beats(&transfer.sides[transfer.in ? SOURCE : DESTINATION]);
    transfer.end = (*free_at > arrives ? *free_at : arrives) + transfer.beats;
    *free_at = transfer.end;
    if (!spoil(soc, &transfer.sides[DESTINATION])) {
        return;
    }
    remember(&transfer);
    note(soc, &transfer, start);
    dma->queue[dma->queued++] = transfer;
}

/* ---- execution ------------------------------------------------------------------------------ */

/* Places of the bytes of a side in their order: (row, byte within the row). */
static uint8_t *place(const siracusa_area_t *side, uint32_t at, uint32_t *left)
{
    const uint32_t row = at / side->bytes, inside = at % side->bytes;
    *left = side->bytes - inside;
    return side->memory + (size_t)row * side->row_stride + inside;
}

static bool unchanged(htvm_soc_t *soc, const siracusa_transfer_t *transfer)
{
    for (size_t i = 0; i < SIDES; i++) {
        const siracusa_area_t *side = &transfer->sides[i];
        if (side->sum != siracusa_checksum(side)) {
            return siracusa_dma_complain(soc, "%s at 0x%08" PRIX32 " (%" PRIu32 " x %" PRIu32
                                         " B) was written by somebody else while in use",
                                         side->role, side->first, side->rows, side->bytes);
        }
    }
    return true;
}

static void remember(siracusa_transfer_t *transfer)
{
    for (size_t i = 0; i < SIDES; i++) {
        transfer->sides[i].sum = siracusa_checksum(&transfer->sides[i]);
    }
}

/* While a transfer is under way, nobody knows what is where it writes: who reads what was there, or
 * what will be, is to compute something wrong.  False after a complaint. */
static bool spoil(htvm_soc_t *soc, const siracusa_area_t *to)
{
    for (size_t n = 0; n < soc->dma.queued; n++) {
        const siracusa_transfer_t *const queued = &soc->dma.queue[n];
        if (rows_meet(to, &queued->sides[DESTINATION]) && !unchanged(soc, queued)) {
            return false;
        }
    }
    for (uint32_t row = 0; row < to->rows; row++) {
        memset(to->memory + (size_t)row * to->row_stride, 0xA5, to->bytes);
    }
    for (size_t n = 0; n < soc->dma.queued; n++) {
        if (rows_meet(to, &soc->dma.queue[n].sides[DESTINATION])) {
            remember(&soc->dma.queue[n]);
        }
    }
    return true;
}

static void move(const siracusa_transfer_t *transfer)
{
    const siracusa_area_t *to = &transfer->sides[DESTINATION];
    const uint32_t bytes = to->rows * to->bytes;
    for (uint32_t at = 0; at < bytes;) {
        uint32_t count, room;
        const uint8_t *from = place(&transfer->sides[SOURCE], at, &count);
        uint8_t *into = place(to, at, &room);
        count = count < room ? count : room;
        memcpy(into, from, count);
        at += count;
    }
}

/* Takes a transfer that is done from the queue; false after a complaint. */
static bool complete(htvm_soc_t *soc, size_t number)
{
    siracusa_dma_t *dma = &soc->dma;
    for (size_t n = 0; n < dma->queued; n++) {
        if (!unchanged(soc, &dma->queue[n])) {
            return false;
        }
    }
    move(&dma->queue[number]);
    dma->queued--;
    memmove(dma->queue + number, dma->queue + number + 1,
            (dma->queued - number) * sizeof dma->queue[0]);
    for (size_t n = 0; n < dma->queued; n++) {
        remember(&dma->queue[n]); /* what was moved is what those behind find */
    }
    return true;
}

void siracusa_dma_advance(htvm_soc_t *soc)
{
    for (size_t n = 0; n < soc->dma.queued;) {
        if (soc->dma.queue[n].end > soc->now) {
            n++;
        } else if (!complete(soc, n)) {
            return;
        }
    }
}

/* ---- registers ------------------------------------------------------------------------------ */

static uint32_t allocate(siracusa_dma_t *dma)
{
    for (uint32_t counter = 0; counter < SIRACUSA_DMA_COUNTERS; counter++) {
        if ((dma->allocated >> counter & 1u) == 0) {
            dma->allocated |= 1u << counter;
            dma->counter = counter;
            return counter;
        }
    }
    dma->counter = SIRACUSA_DMA_NONE;
    return SIRACUSA_DMA_NONE;
}

static uint32_t busy(const siracusa_dma_t *dma)
{
    uint32_t value = 0;
    for (size_t n = 0; n < dma->queued; n++) {
        value |= 1u << dma->queue[n].counter;
    }
    return value;
}

static void free_counters(htvm_soc_t *soc, uint32_t which)
{
    const uint32_t wrong = which & (busy(&soc->dma) | ~soc->dma.allocated);
    if (wrong != 0) {
        siracusa_dma_complain(soc, "counters 0x%" PRIX32 " are freed, which are busy or not in use",
                              wrong);
        return;
    }
    soc->dma.allocated &= ~which;
}

static void push(htvm_soc_t *soc, uint32_t word)
{
    siracusa_dma_t *dma = &soc->dma;
    if (dma->counter >= SIRACUSA_DMA_COUNTERS || (dma->allocated >> dma->counter & 1u) == 0) {
        siracusa_dma_complain(soc, "a transfer without a counter");
        return;
    }
    if (dma->word_count == 0 && ((word & ~KNOWN) != 0 || (word & SIRACUSA_DMA_INCREMENT) == 0 ||
                                 (word & SIRACUSA_DMA_MOST_BYTES) == 0)) {
        siracusa_dma_complain(soc, "command 0x%08" PRIX32 " moves nothing, or has a bit that does "
                              "not exist or is missing", word);
        return;
    }
    dma->words[dma->word_count++] = word;
    if (dma->word_count == word_count(dma->words[0])) {
        take(soc);
    }
}

uint32_t siracusa_dma_read(htvm_soc_t *soc, uint32_t offset)
{
    if (offset == SIRACUSA_DMA_COMMAND) {
        return allocate(&soc->dma);
    }
    if (offset == SIRACUSA_DMA_STATUS) {
        return busy(&soc->dma);
    }
    siracusa_dma_complain(soc, "read of offset %" PRIu32 " (4 B), which is no register", offset);
    return 0;
}

void siracusa_dma_write(htvm_soc_t *soc, uint32_t offset, uint32_t value)
{
    if (offset == SIRACUSA_DMA_COMMAND) {
        push(soc, value);
    } else if (offset == SIRACUSA_DMA_STATUS) {
        free_counters(soc, value);
    } else {
        siracusa_dma_complain(soc, "write to offset %" PRIu32 " (4 B), which is no register",
                              offset);
    }
}
