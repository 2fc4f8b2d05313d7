"""Loaded results, and the figures computed from them. Pure."""
