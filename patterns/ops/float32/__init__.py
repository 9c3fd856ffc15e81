"""Operators on float32 tensors, for what a network computes in reals."""
