"""Where experiments may be sent, besides the store; the store always has them first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ci_agent_eval.opik.experiments.records import Experiment, Result


class Sink(Protocol):
    """A server of experiments."""

    def send(
        self, experiment: Experiment, results: Sequence[Result], on_step: Callable[[], None]
    ) -> None:
        """Send an experiment whole; sending it again changes nothing.

        `on_step` is called whenever a part has arrived. Raises SinkError where not all did.
        """


class SinkError(Exception):
    """The server did not take it all; the message says why."""
