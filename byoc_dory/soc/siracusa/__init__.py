"""Siracusa's N-EUREKA in numbers: its cycles and the layout of its weights; no target yet."""
