"""Layers: what an accelerator may be asked to compute, with exact shapes."""
