"""The gateway for agents that run in other processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ci_agent_eval.model_traffic import attribution

if TYPE_CHECKING:
    from ci_agent_eval.model_traffic.gateway.server import EpisodeAddress


@contextmanager
def serve_processes(environ: Mapping[str, str]) -> Iterator[EpisodeAddress | None]:
    """Serve the processes of the running episode in the `with` block; None: none is recorded.

    `environ` holds the variables that they would have without the gateway. Raises InputError for
    contradicting variables.
    """
    recorder = attribution.find_recorder()
    if recorder is None:
        yield None
        return
    from ci_agent_eval.model_traffic.gateway.server import (  # noqa: PLC0415 - it brings the web server
        serve_episode,
    )

    with serve_episode(recorder, environ) as address:
        yield address
