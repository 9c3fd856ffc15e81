"""`Graph`, the integer form of a network, and the way into it from Relax and out again."""
