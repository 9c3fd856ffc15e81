/* Timing of the CV32E40P core with memories that never wait.
 *
 * The core has four stages: fetch, decode, execute, write-back.  An instruction costs one cycle,
 * plus what the following rules add.  Most additions depend only on an instruction and the one
 * behind it in memory; they are worked out once, when the instruction is decoded, and charged to
 * the first of the two.  What depends on data or on the way taken is added when it executes.
 *
 *   at decoding    load, then an instruction that reads its register           +1
 *                  load, then one that overwrites its register from the ALU    +1
 *                  mulh, mulhsu, mulhu                                         +4
 *                  access to a counter or trap CSR                             +3
 *                  fence, fence.i: flushes, then fetches anew                  +3
 *                  wfi, even if there is no need to wait                       +5
 *   at execution   div, rem                              +2 + leading zeros of the divisor
 *                  access that crosses a word boundary                         +1
 *                  taken branch                                                +2
 *                  jump                           mostly +1, see htvm_iss_jump_cycles()
 *                  redirection to a 32-bit instruction off a word boundary     +1
 *
 * The CORE-V extensions add no rule: a register that an instruction reads and writes counts as
 * read, an incremented address is a result of the ALU, and going back in a hardware loop is free
 * (the first instruction of the body is then the one behind the last).
 */
#ifndef HTVM_ISS_TIMING_H
#define HTVM_ISS_TIMING_H

#include "insn.h"

enum {
    MULH_EXTRA = 4,
    CSR_EXTRA = 3,
    FENCE_EXTRA = 3,
    WFI_EXTRA = 5,
    CROSSING_EXTRA = 1,
    BRANCH_EXTRA = 2
};

/* Whether accesses to this CSR flush the pipeline. */
bool htvm_iss_csr_flushes(uint32_t csr);

/* Cost of `insn` as far as it is known when `next`, the one behind it in memory, is decoded. */
uint8_t htvm_iss_static_cycles(const insn_t *insn, const insn_t *next);

/* Cycles that div, divu, rem and remu spend on this divisor beyond the first. */
uint32_t htvm_iss_division_extra(uint32_t divisor, bool is_signed);

/* What is still in the pipeline when a jump reaches the decode stage. */
typedef struct {
    const insn_t *last;   /* the instruction right before the jump; NULL after a bubble */
    const insn_t *second; /* the one before that */
    uint32_t busy;        /* cycles that the last one spends in the execute stage */
} pipeline_t;

typedef struct {
    uint32_t cycles;
    bool hidden; /* no bubble: the target follows the jump immediately */
} jump_time_t;

/* Cost of a jump.
 *
 * The decode stage redirects the fetch as soon as it knows the target, even while the execute
 * stage is busy with the instruction before; the bubble then hides behind that one.  jalr must
 * first wait until its base register is in the register file: the core forwards no results to
 * the fetch address. */
jump_time_t htvm_iss_jump_cycles(const insn_t *jump, const pipeline_t *pipe, bool target_straddles);

#endif
