"""Setting up a repository: the files that `agent-eval init` writes, and what `doctor` checks."""
