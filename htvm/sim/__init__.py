"""The simulated machines: instruction-set simulator, native platform, what a run spent."""
