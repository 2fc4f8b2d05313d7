"""Errors of the infrastructure, not of the agent."""

from __future__ import annotations

from ci_agent_eval.errors import AgentEvalError


class ServerError(AgentEvalError):
    """A tool server crashed, did not answer, or sent an invalid answer.

    It ends the run with `server_error`. A tool that reports an error does not raise it: the
    model gets the error and continues.
    """


class ModelError(AgentEvalError):
    """A model gave no valid answer; it ends the run with `model_error`."""
