"""Sending the experiment of a run to an Opik server, within a bounded time."""
