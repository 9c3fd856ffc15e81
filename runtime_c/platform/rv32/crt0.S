/* Start of a firmware: stack, zeroed memory, counters, main, end of run.  RAM holds the loaded
 * program already, so nothing is copied. */
    .section .init, "ax"
    .globl _start
_start:
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
