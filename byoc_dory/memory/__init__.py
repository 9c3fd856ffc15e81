"""Offsets of buffers in one memory, planned ahead of time from their lifetimes."""
