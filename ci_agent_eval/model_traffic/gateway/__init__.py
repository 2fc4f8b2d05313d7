"""The gateway: a loopback server that records the model calls of other processes.

Each episode has its own address, `http://127.0.0.1:PORT/e/TOKEN/PROVIDER`, which its subprocesses
use in place of the provider's (`providers.build_environment`). `app` passes requests
to the episode's `TrafficRecorder` and forwards them; `server` runs it in a thread.
"""

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
