/* Banks of L1 that the DMA and N-EUREKA take from the cores.
 *
 * A transfer takes the banks of a word of the DMA in as many cycles as it has words, a job those of the
 * engine's port in as many as it has accesses; both are spread evenly over the cycles in which bytes
 * arrive, or the job runs.  Neither waits for cores: their cycles are those without conflicts.
 */
#include "htvm_soc_banks.h"
#include "siracusa_model.h"

#define BANK HTVM_CLUSTER_BANK_BYTES

static htvm_soc_port_t port_of_transfer(const siracusa_transfer_t *transfer)
{
    const siracusa_area_t *l1 = &transfer->sides[transfer->in ? DESTINATION : SOURCE];
    const uint32_t words = siracusa_up(l1->rows * l1->bytes, SIRACUSA_DMA_BYTES_PER_CYCLE);
    const uint32_t beats = (uint32_t)transfer->beats;
    return (htvm_soc_port_t){
        .from = transfer->end - transfer->beats,
        .busy = words < beats ? words : beats,
        .of = beats,
        .bank = l1->first / BANK,
        .step = SIRACUSA_DMA_BYTES_PER_CYCLE / BANK,
        .width = SIRACUSA_DMA_BYTES_PER_CYCLE / BANK,
        .most = SIRACUSA_DMA_MOST_REFUSALS,
    };
}

static htvm_soc_port_t port_of_job(const siracusa_job_t *job)
{
    const siracusa_area_t *input = &job->areas[INPUT];
    const uint64_t cycles = job->end - job->start;
    return (htvm_soc_port_t){
        .from = job->start,
        .busy = (uint32_t)(job->accesses < cycles ? job->accesses : cycles),
        .of = (uint32_t)cycles,
        .bank = input->first / BANK,
        .step = siracusa_up(input->pixel_stride, BANK),
        .width = SIRACUSA_NEUREKA_WORD_BYTES / BANK,
        .most = SIRACUSA_NEUREKA_MAX_STALL,
    };
}

htvm_soc_banks_t htvm_soc_banks(const htvm_soc_t *soc, uint64_t at)
{
    htvm_soc_banks_t banks = {.from = 0, .until = UINT64_MAX};
    for (size_t n = 0; n < soc->dma.queued; n++) {
        const siracusa_transfer_t *transfer = &soc->dma.queue[n];
        htvm_banks_add(&banks, at, port_of_transfer(transfer), transfer->end);
    }
    for (size_t n = 0; n < soc->queued; n++) {
        const siracusa_job_t *job = &soc->queue[n];
        htvm_banks_add(&banks, at, port_of_job(job), job->end);
    }
    return banks;
}
