"""The fake as a process of its own, for tests that reach it from a container.

``python -m tests.github_fake --port-file F [--state-file S] [--config C] [--host H]``

The port stands in ``F``, and then on stdout, as soon as requests are served. ``GET /_fake/state`` answers the state,
the request log and the violations; ``S`` gets the same on SIGTERM or SIGINT. ``C`` is JSON::

    {"tokens": [{"token": "t", "login": "github-actions[bot]", "can_write": true}],
     "repos": [{"full_name": "octo/shop", "has_issues": true, "issues": [3],
                "pulls": [{"number": 7, "head_sha": "..."}],
                "comments": [{"issue": 7, "author": "octocat", "body": "hello"}],
                "artifacts": [{"run_id": 1, "name": "report", "size_in_bytes": 2}]}],
     "faults": [{"kind": "server_error", "on": "POST *", "nth": 1, "times": 1}]}

Every key but ``token``, ``full_name``, ``number``, ``head_sha`` and ``kind`` may be left out.
Without ``--config`` there is one repository ``octo/shop`` with pull request 7 (head ``a`` * 40)
and the token ``ghs_fake`` of ``github-actions[bot]``.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from tests.github_fake.server import FakeGitHub

_DEFAULT = {
    "tokens": [{"token": "ghs_fake"}],
    "repos": [{"full_name": "octo/shop", "pulls": [{"number": 7, "head_sha": "a" * 40}]}],
}


def configure(fake: FakeGitHub, config: dict[str, Any]) -> None:
    """Fill ``fake`` as ``config`` says; TypeError for a key nobody knows."""
    for token in config.get("tokens", ()):
        fake.token(**token)
    for repo in config.get("repos", ()):
        _configure_repo(fake, dict(repo))
    for fault in config.get("faults", ()):
        fake.faults.add(**fault)


def _configure_repo(fake: FakeGitHub, repo: dict[str, Any]) -> None:
    name = repo.pop("full_name")
    parts = {part: repo.pop(part, ()) for part in ("pulls", "comments", "artifacts")}
    fake.add_repo(name, **{**repo, "issues": set(repo.get("issues", ()))})
    for pull in parts["pulls"]:
        fake.add_pull(name, **pull)
    for comment in parts["comments"]:
        fake.add_comment(name, **comment)
    for artifact in parts["artifacts"]:
        fake.add_artifact(name, **artifact)


def _write_whole(path: Path, text: str) -> None:
    """Write a file so that a reader sees all of it or none."""
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)


def _arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.github_fake")
    parser.add_argument("--port-file", type=Path, required=True)
    parser.add_argument("--state-file", type=Path)
    parser.add_argument("--config", type=Path)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--no-validate", action="store_true")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Serve until SIGTERM or SIGINT; exit 0, or 1 when something broke the description."""
    options = _arguments(arguments)
    config = json.loads(options.config.read_text("utf-8")) if options.config else _DEFAULT
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with FakeGitHub(validate=not options.no_validate, host=options.host, port=options.port) as fake:
        configure(fake, config)
        _write_whole(options.port_file, f"{fake.port}\n")
        print(f"serving on {options.host}:{fake.port}", flush=True)  # noqa: T201 - to its starter
        stop.wait()
    if options.state_file:
        _write_whole(options.state_file, json.dumps(fake.state(), indent=1, sort_keys=True))
    return 1 if fake.violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
