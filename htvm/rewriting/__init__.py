"""Exact rewrites: other operators that compute the same, which an accelerator takes."""
