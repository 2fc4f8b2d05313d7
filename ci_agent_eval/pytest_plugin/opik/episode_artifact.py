"""All episodes of a session as one JSON file, in the layout of Opik's pull request.

It is written whatever the results of the tests and of any server are. An episode is known from its
setup, so an episode whose process died is included as an error.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.contract.wording import make_printable
from ci_agent_eval.pytest_plugin.collection.detection import REPORTED_EPISODE
from ci_agent_eval.storage.regular_file import replace_file

ATTRIBUTE = "agent_eval_artifact"
"""Attribute of a report that carries its episode as JSON to the main process."""


class EpisodeArtifact:
    """Collects episodes from reports, by test."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._problem: str | None = None
        self._episodes: dict[str, dict[str, Any]] = {}
        self._broken: set[str] = set()

    def claim(self) -> None:
        """Remove the file of an earlier run; raises pytest.UsageError if the file is not ours."""
        try:
            if self._path.exists():
                self._require_ours()
                self._path.unlink()
        except OSError as error:
            raise pytest.UsageError(
                f"--episode-artifact: {self._path} cannot be replaced ({error.strerror})"
            ) from None

    def _require_ours(self) -> None:
        """Recognize the file by its keys, which Opik's own file has too."""
        try:
            keys = json.loads(self._path.read_bytes())
        except ValueError:
            keys = None
        if not isinstance(keys, dict) or "episodes_total" not in keys:
            raise pytest.UsageError(
                f"--episode-artifact: {self._path} holds something else and stays as it is; move "
                "it, or give another --episode-artifact-path"
            )

    @staticmethod
    def attach(item: pytest.Item, report: pytest.TestReport) -> None:
        """Attach the current episode to the report of each phase."""
        if (episode := item.stash.get(REPORTED_EPISODE, None)) is not None:
            value = json.loads(canonical_json(episode)) | {"outcome": episode.outcome}
            passing = episode.is_passing()
            setattr(report, ATTRIBUTE, {"episode": value, "episode_passed": passing})

    def note_report(self, report: pytest.TestReport) -> None:
        """Keep the latest episode of each test; a later attempt starts again."""
        if report.when == "setup":
            self._broken.discard(report.nodeid)
        if report.failed:
            self._broken.add(report.nodeid)
        if (found := getattr(report, ATTRIBUTE, None)) is not None:
            self._episodes[report.nodeid] = found

    def write(self) -> None:
        """Write the file; its content depends only on the episodes."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with replace_file(self._path) as file:
                file.write(render_artifact(self._episodes, self._broken))
        except OSError as error:
            self._problem = f"{self._path}: cannot be written ({error.strerror})"

    def write_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Report that the file could not be written."""
        if self._problem is not None:
            terminalreporter.write_line(make_printable(f"note: {self._problem}"))


def render_artifact(episodes: dict[str, dict[str, Any]], broken: set[str]) -> str:
    """Render the file; its content does not depend on the order of the episodes."""
    records = [
        {
            "nodeid": found["episode"].get("nodeid") or nodeid,
            "pytest_passed": nodeid not in broken,
            "episode_passed": found["episode_passed"] and nodeid not in broken,
            "episode": found["episode"],
        }
        for nodeid, found in sorted(episodes.items())
    ]
    passed = sum(1 for record in records if record["episode_passed"])
    document = {
        "episodes_total": len(records),
        "episodes_passed": passed,
        "episodes_failed": len(records) - passed,
        "results": records,
    }
    return json.dumps(document, ensure_ascii=True, indent=2, sort_keys=True) + "\n"
