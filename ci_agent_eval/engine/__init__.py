"""The agent engine: declarations, runs, results. An extra: `ci-agent-eval[engine]`."""
