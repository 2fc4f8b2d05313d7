"""Snapshots of the state that an agent changes: a function's value, a folder, a SQLite file."""
