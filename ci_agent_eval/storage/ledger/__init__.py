"""What the processes of one run share: what it has spent, and what of its rate limits is taken.

One process keeps it in memory. The workers of pytest-xdist keep it in a file of the run's own.
"""
