"""Arm Ethos-U55 and U65 beside a Cortex-M55; Vela compiles the regions."""
