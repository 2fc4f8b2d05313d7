"""Opik's configuration, its server's address, and whether the server answers.

Read as Opik's `config.py` does: `OPIK_…` variables override the section `[opik]` of the file
`OPIK_CONFIG_PATH` (default `~/.opik.config`). Opik is not imported, which would take seconds.
"""

from __future__ import annotations

import base64
import configparser
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import urljoin, urlsplit
from urllib.request import Request, urlopen

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
