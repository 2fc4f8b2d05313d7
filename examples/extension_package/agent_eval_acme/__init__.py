"""Extensions of ci-agent-eval; `pyproject.toml` names them as entry points."""
