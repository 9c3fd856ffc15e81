"""The operators of the integer form; whose arithmetic each has stands in its path."""
