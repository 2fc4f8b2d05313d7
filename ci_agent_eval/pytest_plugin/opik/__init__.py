"""Experiments and artifacts of a pytest session for Opik."""
