"""The simulated machines: compiler, instruction-set simulator, firmware."""
