"""The simulated machines: instruction-set simulator, native platform, and the cycles of a run."""
