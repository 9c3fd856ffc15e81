"""Shared by all tests."""

from __future__ import annotations

from hypothesis import settings

# The same examples on every run and machine: a failure is the change's, not the day's.
settings.register_profile("htvm", derandomize=True, deadline=None)
settings.load_profile("htvm")
