"""The process that sends an experiment to Opik; standard input holds it as JSON.

A separate process, because the package takes seconds to import, runs threads, and waits at exit
for a server that may hang. It writes a line to standard output for every step; its parent kills it
if no line arrives in time.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

from ci_agent_eval.contract.experiment import Experiment
from ci_agent_eval.contract.wording import one_line
from ci_agent_eval.opik.experiments.opik_sink import OpikSink

STEP = "agent-eval-push step"
SENT = "agent-eval-push sent"
PROBLEM = "agent-eval-push problem "

REQUEST_S = 4.0
"""Timeout of one request, in seconds, to connect and to be answered."""

_QUIET = {
    "OPIK_SENTRY_ENABLE": "false",
    "OPIK_ANALYTICS_ENABLE": "false",
    "OPIK_CONSOLE_LOGGING_LEVEL": "CRITICAL",
}


def main() -> int:
    """Send the experiment, completely or not at all."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    try:
        experiment = Experiment.model_validate_json(sys.stdin.buffer.read())
        _open_sink().send(experiment, lambda: _write_line(STEP))
    except BaseException as error:  # noqa: BLE001 - the boundary: reported to the parent
        _write_line(PROBLEM + _format_error(error))
        return 1
    _write_line(SENT)
    return 0


def _open_sink() -> OpikSink:
    opik = import_module("opik")  # takes seconds
    _limit_requests()
    _write_line(STEP)
    client: Any = opik.Opik(_show_misconfiguration_message=False)
    _write_line(STEP)
    return OpikSink(client, opik.ExperimentItemReferences)


def _limit_requests() -> None:
    """Shorten Opik's timeouts, which are 20 and 100 s, through its hook."""
    hooks = import_module("opik.hooks")
    hook = hooks.HttpxClientHook(client_modifier=None, client_init_arguments={"timeout": REQUEST_S})
    hooks.add_httpx_client_hook(hook)


def _format_error(error: BaseException) -> str:
    text = one_line(str(error)) or "no reason given"
    return f"{type(error).__name__}: {text}"[:300]


def _write_line(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    status = main()
    # Opik's threads and exit handlers would wait for a server that hangs.
    os._exit(status)
