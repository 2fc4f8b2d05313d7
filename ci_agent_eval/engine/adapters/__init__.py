"""Adapters for your own agents: the protocol `AgentAdapter` and its implementations."""
