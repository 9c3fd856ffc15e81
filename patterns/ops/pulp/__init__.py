"""Operators with the integer arithmetic of the PULP flow and of ITA."""
