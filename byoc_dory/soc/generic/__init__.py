"""A plain RV32 microcontroller without accelerators, with as much L2 as asked for."""
