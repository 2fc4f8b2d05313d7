"""Import inspect_ai's `.eval` logs: zip archives with one JSON file for each sample.

https://inspect.aisi.org.uk/eval-logs.html#sec-log-format. `header.json` has the log without its
samples. It is written last, so an archive without it is of an unfinished evaluation.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from ci_agent_eval.analysis.loaded_results import JUnitCase
from ci_agent_eval.errors import InputError
from ci_agent_eval.results.episodes import (
    MAX_LINE_BYTES,
    ImportRules,
    ParsedEpisode,
    import_episodes,
)
from ci_agent_eval.results.importers.inspect_ai import InspectAIImporter, drop_unread_keys
from ci_agent_eval.results.json_text import ReadProblem, parse_json
from ci_agent_eval.storage.archives import ArchiveLimits, extract_archive
from ci_agent_eval.storage.regular_file import open_regular

_HEADER = PurePosixPath("header.json")
_SAMPLES = "samples"
_LIMITS = ArchiveLimits(members=100_000, member_bytes=MAX_LINE_BYTES)


def read_eval_archive(
    path: Path, rules: ImportRules
) -> Iterator[ParsedEpisode | JUnitCase | ReadProblem]:
    """Read the episodes of an `.eval` log, and the problems of the archive."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            files = extract_archive(path, Path(folder), wanted=_is_wanted, limits=_LIMITS)
            document = _build_document(Path(folder), files)
        except (InputError, ValueError, OSError) as error:
            advice = "write it as JSON (inspect log convert --to json)"
            yield ReadProblem(f"{error}; {advice}")
            return
    yield from import_episodes(InspectAIImporter(), document, rules)


def _is_wanted(path: PurePosixPath) -> bool:
    return path == _HEADER or (path.parent.name == _SAMPLES and len(path.parts) == 2)


def _build_document(folder: Path, files: tuple[Path, ...]) -> dict[str, Any]:
    """Build the log as in inspect_ai's own JSON format."""
    header = folder / _HEADER
    if header not in files:
        raise InputError(
            f"it is a zip archive without {_HEADER}: no log of inspect_ai, or of a run that "
            "did not end"
        )
    samples = [drop_unread_keys(_parse_file(file)) for file in files if file != header]
    return {**_parse_file(header), "samples": samples}


def _parse_file(file: Path) -> dict[str, Any]:
    with open_regular(file) as opened:
        value = parse_json(opened.read())
    if not isinstance(value, dict):
        raise InputError(f"{file.name}: it is no JSON object")
    return value
