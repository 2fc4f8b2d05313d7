"""Hooks of coding agents: an event on standard input, an answer on standard output."""
