"""Proof with the real coding agents that steering holds a full-suite run."""
