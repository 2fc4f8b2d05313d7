"""Load baselines: earlier runs to compare with, from files, git or artifacts."""
