"""Explaining a build: where each operator runs and why, and which changes would bring most."""
