"""Printing: the value after each stage of a build, as text to read."""
