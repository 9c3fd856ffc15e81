"""Sweeps over the parameters of a SoC: every design is compiled and executed."""
