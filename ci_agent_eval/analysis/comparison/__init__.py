"""Comparison of a run with the runs of its baseline. Pure."""
