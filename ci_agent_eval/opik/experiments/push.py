"""Sending an experiment to Opik within a bounded time.

It is done by a separate process, because the package takes seconds to import, runs threads, and
waits at exit for a server that may hang. Standard input holds the experiment as JSON; the last line
of standard output says what went wrong.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.contract.experiment import Experiment
from ci_agent_eval.contract.wording import one_line
from ci_agent_eval.opik.experiments.opik_settings import (
    OpikServer,
    find_connection_problem,
    find_server,
    is_installed,
)
from ci_agent_eval.opik.experiments.opik_sink import BATCH, OpikSink

IMPORT_S = 30.0
"""Seconds allowed for importing Opik on a slow machine."""

BATCH_S = 20.0
"""Seconds allowed for each batch of results, and for what comes before the first."""

REQUEST_S = 4.0
"""Timeout of one request, in seconds, to connect and to be answered."""

_QUIET = {
    "OPIK_SENTRY_ENABLE": "false",
    "OPIK_ANALYTICS_ENABLE": "false",
    "OPIK_CONSOLE_LOGGING_LEVEL": "CRITICAL",
}


def find_usable_server(environ: Mapping[str, str], file: Mapping[str, str]) -> OpikServer | None:
    """Return Opik's server, or None if the package is not installed or not configured."""
    return find_server(environ, file) if is_installed() else None


def send_to_opik(
    experiment: Experiment, server: OpikServer, environ: Mapping[str, str]
) -> str | None:
    """Send an experiment; return the problem if not all of it arrived.

    The process is killed if the server hangs. An unreachable server costs the time of one ping.
    """
    if (problem := find_connection_problem(server)) is not None:
        return f"Opik at {server.host} does not answer ({problem})"
    try:
        done = subprocess.run(
            [sys.executable, "-m", __name__],
            input=canonical_json(experiment),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(environ),
            text=True,
            errors="replace",
            timeout=IMPORT_S + BATCH_S * (2 + len(experiment.results) / BATCH),
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"Opik at {server.host} stopped answering"
    if done.returncode == 0:
        return None
    said = done.stdout.strip().rpartition("\n")[2]
    return f"Opik at {server.host}: {said or 'the process that sends ended early'}"


def main() -> int:
    """Send the experiment of standard input, completely or not at all."""
    os.environ.update({name: os.environ.get(name, value) for name, value in _QUIET.items()})
    try:
        experiment = Experiment.model_validate_json(sys.stdin.buffer.read())
        _open_sink().send(experiment)
    except BaseException as error:  # noqa: BLE001 - the boundary: reported to the parent
        text = one_line(str(error)) or "no reason given"
        sys.stdout.write(f"\n{type(error).__name__}: {text}"[:300])
        return 1
    return 0


def _open_sink() -> OpikSink:
    opik, hooks = import_module("opik"), import_module("opik.hooks")
    # Opik's own timeouts are 20 and 100 s.
    hook = hooks.HttpxClientHook(client_modifier=None, client_init_arguments={"timeout": REQUEST_S})
    hooks.add_httpx_client_hook(hook)
    client: Any = opik.Opik(_show_misconfiguration_message=False)
    return OpikSink(client, opik.ExperimentItemReferences)


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    # Opik's threads and exit handlers would wait for a server that hangs.
    os._exit(status)
