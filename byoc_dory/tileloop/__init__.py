"""Tile loops: one value per layer, from which steps, cycles, bytes, tiles and C are derived."""
