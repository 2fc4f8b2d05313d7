"""What breaks under an agent that is not the agent's doing."""

from __future__ import annotations

from ci_agent_eval.errors import AgentEvalError


class ServerError(AgentEvalError):
    """A tool server died, never answered, or spoke what nobody could read.

    Raised by whatever speaks to a server; it ends the run with `server_error`. A tool that
    merely reports an error is none: the model is told, and goes on.
    """


class ModelError(AgentEvalError):
    """A model gave no answer that could be read; it ends the run with `model_error`."""
