"""Checks: pure objects that turn an episode into assertions with reasons."""
