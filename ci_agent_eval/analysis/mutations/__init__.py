"""Mutations of recorded episodes: known changes, and whether the tests noticed them. Pure."""
