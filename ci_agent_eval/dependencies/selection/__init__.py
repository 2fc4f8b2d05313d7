"""Selecting the scenarios that a change can have affected; runs no project code."""
