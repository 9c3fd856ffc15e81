"""Products on an in-memory array: ternary weights, converters, passes."""
