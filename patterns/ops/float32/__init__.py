"""Operators on float32 tensors, for the parts of a network that compute in reals."""
