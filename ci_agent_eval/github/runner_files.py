"""Files of GitHub's runner for a step: event, step summary, outputs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ci_agent_eval.errors import InputError
from ci_agent_eval.github.event import Event, parse_event
from ci_agent_eval.github.publication import PublishedPart

SUMMARY_BYTES = 1024 * 1024
"""Above it the runner drops a step's whole summary, and the job still passes."""

OUTPUT_BYTES = 1024 * 1024
"""GitHub's limit for a job's outputs."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class RunnerFiles:
    """Paths of the output files; None: outside a workflow, or not wanted."""

    step_summary: Path | None = None
    """$GITHUB_STEP_SUMMARY."""
    outputs: Path | None = None
    """$GITHUB_OUTPUT."""


def load_event(environ: Mapping[str, str]) -> Event:
    """Read the event that started the workflow run. Raises InputError."""
    if missing := list_missing_variables(environ):
        raise InputError(
            f"set {' and '.join(missing)}, as GitHub's workflows do; "
            "`agent-eval publish --dry-run` shows what would be published"
        )
    path = environ["GITHUB_EVENT_PATH"]
    return parse_event(environ["GITHUB_EVENT_NAME"], _load_json(Path(path)), environ, file=path)


def list_missing_variables(environ: Mapping[str, str], *others: str) -> list[str]:
    """Return the variables of the event, and `others`, that are not set."""
    names = ("GITHUB_EVENT_NAME", "GITHUB_EVENT_PATH", *others)
    return [name for name in names if not environ.get(name)]


def _load_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            f"{path}: {error.strerror or error}. Point GITHUB_EVENT_PATH at GitHub's event file."
        ) from error
    except ValueError as error:
        raise InputError(
            f"{path}: not JSON ({error}). Pass GitHub's own event file, unchanged."
        ) from error


def append_step_summary(path: Path, text: str, *, short: str) -> PublishedPart:
    """Append to the step summary within its limit; use `short` if `text` is too long.

    Other programs of the same step may have written to it before.
    """
    name = "step summary"
    try:
        before = path.stat().st_size if path.exists() else 0
        whole, brief = _encode_block(text), _encode_block(short)
        if before + len(whole) <= SUMMARY_BYTES:
            _append_bytes(path, whole)
            return PublishedPart(name, "written", "Wrote the step summary.")
        room = before + len(brief) <= SUMMARY_BYTES
        if room:
            _append_bytes(path, brief)
    except OSError as error:
        return PublishedPart(
            name, "failed", f"Could not write the step summary: {path}: {error.strerror}."
        )
    fate = "shortened to its headline" if room else "left out"
    return PublishedPart(
        name,
        "skipped",
        f"The step summary was {fate}: {len(whole):,} bytes on top of the {before:,} already there "
        f"are more than GitHub's {SUMMARY_BYTES:,}. The report folder has all of it.",
    )


def _encode_block(text: str) -> bytes:
    """Encode Markdown with blank lines around it."""
    return f"\n{text.strip()}\n\n".encode("utf-8", "backslashreplace")


def _append_bytes(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def append_outputs(
    path: Path, outputs: Mapping[str, str], token: Callable[[], str]
) -> PublishedPart:
    """Set a step's outputs; `token` returns random words for multi-line delimiters.

    Raises ValueError for an invalid name.
    """
    data = "".join(_format_output(name, value, token) for name, value in outputs.items())
    encoded = data.encode("utf-8", "backslashreplace")
    if len(encoded) > OUTPUT_BYTES:
        sentence = f"The outputs were not set: {len(encoded):,} bytes, and GitHub takes 1 MiB."
        return PublishedPart("outputs", "failed", f"{sentence} Read the report folder instead.")
    try:
        _append_bytes(path, encoded)
    except OSError as error:
        return PublishedPart(
            "outputs", "failed", f"Could not set outputs: {path}: {error.strerror}."
        )
    return PublishedPart("outputs", "written", "Set the outputs.")


def _format_output(name: str, value: str, token: Callable[[], str]) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a name for an output")
    if not re.search(r"[\r\n]", value):
        return f"{name}={value}\n"
    # With a predictable delimiter, a value could set other outputs.
    delimiter = f"end_{token()}"
    while delimiter in value:
        delimiter += f"_{token()}"
    return f"{name}<<{delimiter}\n{value}\n{delimiter}\n"
