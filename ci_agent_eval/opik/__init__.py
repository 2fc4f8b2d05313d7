"""Compatibility with Opik: its decorators, the experiment store, and sending experiments."""
