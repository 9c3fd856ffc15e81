"""Operators that only move elements; scale and zero point stay the same."""
