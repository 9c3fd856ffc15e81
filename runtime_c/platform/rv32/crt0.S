/* Start of a firmware: stack, zeroed memory, counters, main, end of run.  RAM holds the loaded
 * program already, so nothing is copied. */
#include "htvm_soc.h"

    .section .init, "ax"
    .globl _start
_start:
#ifdef HTVM_CLUSTER_HARTS
    csrr    a0, mhartid             /* all harts start here */
    bnez    a0, worker
#ifdef HTVM_L1_MAPPED
    la      t0, __l1_start          /* both ends are multiples of 16 */
    la      t1, __l1_end
    bgeu    t0, t1, 4f
3:
    sw      zero, 0(t0)
    sw      zero, 4(t0)
    sw      zero, 8(t0)
    sw      zero, 12(t0)
    addi    t0, t0, 16
    bltu    t0, t1, 3b
4:
#endif
#endif
    la      sp, __stack_top
    csrw    mcountinhibit, zero     /* the core leaves reset with its counters stopped */
    la      t0, __bss_start         /* both ends are multiples of 16 */
    la      t1, __bss_end
    bgeu    t0, t1, 2f
1:
    sw      zero, 0(t0)
    sw      zero, 4(t0)
    sw      zero, 8(t0)
    sw      zero, 12(t0)
    addi    t0, t0, 16
    bltu    t0, t1, 1b
2:
    call    main
    call    htvm_exit
#ifdef HTVM_CLUSTER_HARTS
/* The other harts have their stacks below that of hart 0, the last one's first. */
worker:
    la      sp, __stack_low
    lui     t0, %hi(__last_hart)
    addi    t0, t0, %lo(__last_hart)
    lui     t1, %hi(__worker_stack)
    addi    t1, t1, %lo(__worker_stack)
    sub     t0, t0, a0
    mul     t0, t0, t1
    sub     sp, sp, t0
    call    htvm_hart_main          /* never returns */
#endif
