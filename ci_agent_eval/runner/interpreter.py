"""The suite's interpreter: its installed packages, and access to our plugin."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import ci_agent_eval
from ci_agent_eval.errors import InputError

PACKAGES = ("ci-agent-eval", "pydantic", "pytest")
MIN_PYTHON = (3, 11)
MIN_PYTEST = 8
MIN_PYDANTIC = 2
PROBE_SECONDS = 60.0

# Runs in the suite's interpreter of any version: uses only old syntax.
_PROBE = f"""
import json, sys
sys.path[:] = [entry for entry in sys.path if entry]
from importlib import metadata
found = {{}}
for name in {PACKAGES!r}:
    try:
        found[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        found[name] = None
print(json.dumps({{"python": list(sys.version_info[:2]), "packages": found}}))
"""


def find_suite_python(environ: Mapping[str, str]) -> str:
    """Return the suite's interpreter: the configured, the active environment's, or this one."""
    if configured := environ.get("AGENT_EVAL_PYTHON"):
        return configured
    environment = environ.get("VIRTUAL_ENV")
    return str(Path(environment) / "bin/python") if environment else sys.executable


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python interpreter with its version and the versions of the packages we need."""

    python: str
    version: tuple[int, int]
    packages: Mapping[str, str | None]

    @property
    def has_plugin(self) -> bool:
        """Whether the plugin is installed, so that pytest loads it through its entry point."""
        return self.packages["ci-agent-eval"] is not None

    def require_suite_support(self) -> None:
        """Raise InputError with the package to install if it cannot run a suite."""
        if self.version < MIN_PYTHON:
            raise InputError(
                f"{self.python} is Python {'.'.join(map(str, self.version))}; "
                "the plugin needs 3.11 or newer: name another interpreter"
            )
        for name in ("pytest", "pydantic"):
            if self.packages[name] is None:
                raise InputError(
                    f"{self.python} has no {name}; install ci-agent-eval[pytest] there"
                )
        for name, oldest in (("pytest", MIN_PYTEST), ("pydantic", MIN_PYDANTIC)):
            if self.get_version(name) < (oldest,):
                raise InputError(
                    f"{self.python} has {name} {self.packages[name]}; "
                    f"the plugin needs {oldest} or newer: upgrade it"
                )

    def get_version(self, package: str) -> tuple[int, ...]:
        """Return the leading numbers of an installed package's version, such as (8, 4)."""
        found = re.match(r"\d+(?:\.\d+)*", self.packages[package] or "")
        return tuple(map(int, found[0].split("."))) if found else ()


def inspect_interpreter(python: str, environ: Mapping[str, str]) -> Interpreter:
    """Return an interpreter's versions; starts a process unless it is our own interpreter.

    Raises InputError if it cannot be started.
    """
    if _is_ours(Path(python)):
        packages = {name: _find_version(name) for name in PACKAGES}
        return Interpreter(python, sys.version_info[:2], packages)
    try:
        done = subprocess.run(
            [python, "-c", _PROBE],
            env=environ,
            capture_output=True,
            check=True,
            timeout=PROBE_SECONDS,
        )
        answer = json.loads(done.stdout)
        return Interpreter(python, tuple(answer["python"]), answer["packages"])
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise InputError(
            f"{python} cannot run the suite ({_first_line(error)}); name the Python of its "
            "virtual environment"
        ) from None


def _is_ours(python: Path) -> bool:
    """Return whether it is our interpreter, or another name of it in the same environment."""
    ours = Path(sys.executable)
    if python == ours:
        return True
    return python.parent == ours.parent and python.exists() and python.samefile(ours)


def _find_version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _first_line(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError) and error.stderr:
        return str(error.stderr.decode("utf-8", "replace").strip().splitlines()[-1])
    return str(error).partition("\n")[0]


@contextmanager
def provide_plugin(interpreter: Interpreter) -> Iterator[tuple[str, Path | None]]:
    """Yield the plugin's name for `-p`, and the folder it needs on PYTHONPATH, if any.

    An installed plugin is named by its entry point, so that pytest does not load it twice.
    Otherwise a temporary folder holds only this package, so that the reporter's other packages
    do not affect the suite.
    """
    if interpreter.has_plugin:
        yield "ci_agent_eval", None
        return
    with tempfile.TemporaryDirectory(prefix="agent-eval-") as folder:
        package = Path(ci_agent_eval.__file__).parent
        (Path(folder) / package.name).symlink_to(package, target_is_directory=True)
        yield "ci_agent_eval.pytest_plugin", Path(folder)
