"""Compatibility with Opik: its decorators, and sending experiments."""
