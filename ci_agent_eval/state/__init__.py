"""Snapshots of the state that an agent changes: databases, folders, mocks of HTTP."""
