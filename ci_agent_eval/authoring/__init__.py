"""The functions that authors of tests import."""
