"""The help desk of a small shop."""

__version__ = "1.4"
