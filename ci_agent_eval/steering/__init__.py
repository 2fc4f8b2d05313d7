"""Steering: keep agents from running a whole pytest suite by accident."""
