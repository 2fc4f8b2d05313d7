"""The ledger of a run, shared by its processes: model usage and rate limits.

A single process keeps it in memory; the workers of pytest-xdist share a file.
"""
