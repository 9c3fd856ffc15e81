"""Explaining a build: where each operator runs and why, and which changes would help most."""
