"""Tiling, schedules and C for accelerators with software-managed memories (no TVM needed)."""
