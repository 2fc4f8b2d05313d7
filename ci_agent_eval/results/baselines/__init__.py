"""Baselines: the runs of the base that a run is compared with, wherever they are kept."""
