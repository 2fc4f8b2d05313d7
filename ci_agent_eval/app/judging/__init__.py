"""Judging stored episodes again, without running the agent."""
