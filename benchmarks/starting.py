"""How long until something happens: imports of the program, and the image's way to GitHub."""

from __future__ import annotations

import json
import os
import re
import socket
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from uuid import uuid4

ROOT = Path(__file__).resolve().parent.parent
RUNS = 7
_IMPORT = re.compile(r"import time:\s*(\d+) \|\s*\d+ \| +(\S+)")
_CONTAINER = "agent-eval-benchmark"

Arguments = Sequence[str]


@dataclass(frozen=True)
class Imports:
    """What `-X importtime` says of a command."""

    modules: int
    milliseconds: float
    packages: tuple[tuple[str, float], ...]
    """The packages that took longest, with their milliseconds."""

    @property
    def shown(self) -> str:
        """The packages in a sentence."""
        return ", ".join(f"{name} {spent:.0f} ms" for name, spent in self.packages)


def imports(arguments: Arguments, folder: Path, shown: int = 4) -> Imports:
    """Return what the imports of a command take, the fastest of several runs."""
    return min(
        (_imports(arguments, folder, shown) for _ in range(RUNS)), key=lambda one: one.milliseconds
    )


def _imports(arguments: Arguments, folder: Path, shown: int) -> Imports:
    command = [sys.executable, "-X", "importtime", "-m", "ci_agent_eval", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    found = [(name, int(spent) / 1000) for spent, name in _IMPORT.findall(done.stderr)]
    packages: Counter[str] = Counter()
    for name, spent in found:
        packages[_package(name)] += spent  # type: ignore[assignment]
    total = sum(spent for _, spent in found)
    return Imports(len(found), total, tuple(packages.most_common(shown)))


def _package(module: str) -> str:
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names:
        return "the standard library"
    return {"pydantic_core": "pydantic", "pydantic_internal": "pydantic"}.get(top, top)


@contextmanager
def doorbell() -> Iterator[tuple[str, Callable[[], float]]]:
    """Listen on loopback; yield the address, and what waits for the first request there."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(120)

        def rung() -> float:
            caller, _ = server.accept()
            with caller:
                caller.recv(1)
            return perf_counter()

        yield f"http://127.0.0.1:{server.getsockname()[1]}", rung


def to_first_request(command: Callable[[str], Arguments], stop: Callable[[], object]) -> float:
    """Return the seconds from a command's start to its first request; `stop` ends it then."""
    with doorbell() as (address, rung):
        started = perf_counter()
        process = subprocess.Popen(
            command(address),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            return rung() - started
        finally:
            process.terminate()
            stop()
            process.wait()


def process_start(folder: Path, environ: Callable[[str], Mapping[str, str]]) -> float:
    """Return the median seconds from the program's start to its first request."""

    def command(address: str) -> Arguments:
        given = [f"{name}={value}" for name, value in environ(address).items()]
        action = [sys.executable, "-m", "ci_agent_eval", "action"]
        return ["/usr/bin/env", "-C", str(folder), "-i", *given, *action]

    return statistics.median(to_first_request(command, lambda: None) for _ in range(RUNS))


@dataclass(frozen=True)
class Image:
    """The action's image."""

    megabytes: float
    layers: tuple[tuple[str, float], ...]
    """Each layer's instruction, and its megabytes."""
    seconds: float
    """From `docker run` to the first request."""


def image(folder: Path, environ: Callable[[str], Mapping[str, str]]) -> Image | str:
    """Build and measure the image; a sentence where there is no engine."""
    sys.path.append(str(ROOT))
    from tests.container import engine  # noqa: PLC0415 - of the project, which is no package here

    if reason := engine.missing_engine():
        return reason
    name = f"{_CONTAINER}:{engine.content_tag()}"
    engine.build(name)
    seconds = statistics.median(_container_start(name, folder, environ) for _ in range(RUNS))
    return Image(_size(name), tuple(_layers(name)), seconds)


def _size(name: str) -> float:
    return json.loads(_docker("image", "inspect", name))[0]["Size"] / 1e6


def _layers(name: str) -> Iterator[tuple[str, float]]:
    form = '{"of": {{json .CreatedBy}}, "size": {{json .Size}}}'
    listed = _docker("history", "--no-trunc", "--human=false", "--format", form, name)
    for line in listed.splitlines():
        layer = json.loads(line)
        copied = re.search(r"COPY .* (/\S*)", layer["of"])
        if copied is not None and int(layer["size"]) > 0:
            yield f"COPY to {copied[1]}", int(layer["size"]) / 1e6


def _container_start(name: str, folder: Path, environ: Callable[[str], Mapping[str, str]]) -> float:
    inside, own = "/github/workspace", f"{_CONTAINER}-{uuid4()}"

    def command(address: str) -> Arguments:
        given = environ(address).items()
        variables = [f"-e{key}={value.replace(str(folder), inside)}" for key, value in given]
        mount = ["-v", f"{folder}:{inside}", "--workdir", inside]
        network = ["--rm", "--network", "host", "--name", own]
        return ["docker", "run", *network, *mount, *variables, name]

    return to_first_request(command, lambda: _docker("rm", "--force", own))


def _docker(*arguments: str) -> str:
    done = subprocess.run(
        ["docker", *arguments], capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    return done.stdout
