"""The fake as a process of its own, for tests that reach it from a container.

``python -m tests.github_fake --port-file F`` serves one repository ``octo/shop`` with pull request 7
(head ``a`` * 40), and knows the token ``ghs_fake`` of ``github-actions[bot]``. The port stands in
``F``, and then on stdout, as soon as requests are served. ``GET /_fake/state`` answers the state,
the request log and the violations.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from pathlib import Path

from tests.github_fake.server import FakeGitHub


def _write_whole(path: Path, text: str) -> None:
    """Write a file so that a reader sees all of it or none."""
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)


def main(arguments: list[str]) -> int:
    """Serve until SIGTERM or SIGINT; exit 0, or 1 when something broke the description."""
    parser = argparse.ArgumentParser(prog="python -m tests.github_fake")
    parser.add_argument("--port-file", type=Path, required=True)
    parser.add_argument("--no-validate", action="store_true")
    options = parser.parse_args(arguments)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with FakeGitHub(validate=not options.no_validate) as fake:
        fake.token("ghs_fake")
        fake.add_repo("octo/shop")
        fake.add_pull("octo/shop", 7, "a" * 40)
        _write_whole(options.port_file, f"{fake.port}\n")
        print(f"serving on {fake.url}", flush=True)  # noqa: T201 - to its starter
        stop.wait()
    return 1 if fake.violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
