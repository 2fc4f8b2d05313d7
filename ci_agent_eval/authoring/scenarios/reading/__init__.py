"""Texts of three formats as values that know where they stand."""
