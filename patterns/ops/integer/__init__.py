"""Operators on plain integers, which know no scales: the same in every source's arithmetic."""
