"""Operators on plain integers without scales, which are the same in every source's arithmetic."""
