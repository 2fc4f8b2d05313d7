"""Sending an experiment to Opik within a bounded time.

It is done by a separate process, because the package takes seconds to import, runs threads, and
waits at exit for a server that may hang. Standard input holds the experiment as JSON; the last line
of standard output says what went wrong.
"""

from __future__ import annotations

import base64
import configparser
import json
import os
import ssl
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urljoin, urlsplit
from urllib.request import Request, urlopen

from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.contract.results import Experiment
from ci_agent_eval.contract.wording import one_line
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


CLOUD = "https://www.comet.com/opik/api/"
PING = "is-alive/ping"
PING_S = 2.0
"""Timeout of a ping, in seconds."""


@dataclass(frozen=True, slots=True)
class OpikServer:
    """The server that Opik is configured for."""

    url: str

    @property
    def host(self) -> str:
        """Host and port, without credentials."""
        parts = urlsplit(self.url)
        return parts.netloc.rpartition("@")[2] or "its server"


def is_installed() -> bool:
    """Return whether the package `opik` is installed, without importing it."""
    return find_spec("opik") is not None


def load_opik_file(environ: Mapping[str, str], home: Path) -> dict[str, str]:
    """Read the section `[opik]` of Opik's configuration file; empty if it cannot be read."""
    named = environ.get("OPIK_CONFIG_PATH", "").strip()
    path = Path(named).expanduser() if named else home / ".opik.config"
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read(path, encoding="utf-8")
        return dict(parser["opik"]) if parser.has_section("opik") else {}
    except (OSError, UnicodeDecodeError, configparser.Error):
        return {}


def find_server(environ: Mapping[str, str], file: Mapping[str, str]) -> OpikServer | None:
    """Return the configured server, or None if neither a key nor an address is set."""
    url = environ.get("OPIK_URL_OVERRIDE") or file.get("url_override")
    key = environ.get("OPIK_API_KEY") or file.get("api_key")
    if not url and not key:
        return None
    return OpikServer(url or _decode_address(key or "") or CLOUD)


def _decode_address(key: str) -> str | None:
    """Decode the address after the `*` of a key, as Opik's `opik_api_key.py` does."""
    _, star, attributes = key.partition("*")
    try:
        found = json.loads(base64.b64decode(attributes + "==")) if star else {}
        base = found.get("baseUrl")
        return urljoin(str(base), "opik/api/") if base else None
    except (ValueError, AttributeError):
        return None


def find_connection_problem(server: OpikServer, timeout_s: float = PING_S) -> str | None:
    """Return why the server does not answer, or None if it sends any answer."""
    if urlsplit(server.url).scheme not in {"http", "https"}:
        return "its address is neither http nor https"
    url = urljoin(server.url.rstrip("/") + "/", PING)
    try:
        with urlopen(Request(url), timeout=timeout_s):  # noqa: S310 - the scheme is checked above
            return None
    except HTTPError:
        return None  # an error status is an answer
    except URLError as error:
        # Opik may be configured to trust a certificate that is unknown here.
        return None if isinstance(error.reason, ssl.SSLError) else str(error.reason)
    except (OSError, ValueError) as error:
        return str(error) or type(error).__name__
