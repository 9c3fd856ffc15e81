"""A plain RV32 microcontroller without accelerators, with L2 of any size."""
