"""Agent tests as a required status check."""

__version__ = "0.1.0"
