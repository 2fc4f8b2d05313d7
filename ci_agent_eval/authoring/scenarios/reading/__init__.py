"""Parsers of YAML, JSON and CSV that keep the line of every value."""
