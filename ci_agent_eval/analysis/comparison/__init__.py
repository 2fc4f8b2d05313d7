"""Comparison: this run held against runs of the base. Pure."""
