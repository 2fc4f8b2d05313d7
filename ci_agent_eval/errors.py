"""The errors this program raises on purpose: what happened, then what to do about it."""

from __future__ import annotations


class AgentEvalError(Exception):
    """Base of every deliberate error; `exit_code` is what the process ends with."""

    exit_code = 3


class InputError(AgentEvalError):
    """Usage, configuration or an input that cannot be understood."""

    exit_code = 2


class PublishError(AgentEvalError):
    """Something that was asked to be published could not be."""

    exit_code = 3
