/* generic RV32 microcontroller: generated from its description; change it there. */
#ifndef HTVM_SOC_H
#define HTVM_SOC_H

/* L2: code, constants, arena, stack */
#define HTVM_L2_BASE 0x40000000u
#define HTVM_L2_SIZE 4194304u

/* registers of the simulator */
#define HTVM_SIM_PUTCHAR 0x80000000u
#define HTVM_SIM_EXIT 0x80000004u
#define HTVM_SIM_TRACE 0x80000008u

#endif
