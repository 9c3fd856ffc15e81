"""Operators that only move elements; all keep scale and zero point."""
