"""Evaluations: files whose plain asserts are recorded, one by one, and do not end the test."""
