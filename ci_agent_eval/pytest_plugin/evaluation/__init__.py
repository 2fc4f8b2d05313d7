"""Evaluations: files whose plain asserts are recorded individually and do not end the test."""
