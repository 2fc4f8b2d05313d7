"""Human labels of stored transcripts, in CSV, matched with the judged assertions."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ci_agent_eval.analysis.judge_agreement import JudgedAssertion, LabelKey, TranscriptKey
from ci_agent_eval.checks.judge_questions import render_judged_conversation
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.located_value import LocatedProblem
from ci_agent_eval.errors import InputError


def compute_transcript_digest(episode: Episode) -> str:
    """Return 12 hexadecimal digits that change with the conversation and its tool calls."""
    return hashlib.sha256(render_judged_conversation(episode).encode()).hexdigest()[:12]


def load_labels(path: Path) -> tuple[HumanLabel, ...]:
    """Load a file of labels. Raises InputError with its line."""
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check --labels") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not a text in UTF-8; save the labels as UTF-8") from None
    try:
        return parse_labels(text)
    except LocatedProblem as problem:
        raise InputError(f"{path}:{problem.line}: {problem.message}") from None


@dataclass(frozen=True, slots=True)
class LabelMatcher:
    """Matches the labels of a file with judged assertions."""

    path: Path
    judged: Sequence[JudgedAssertion]
    digests: Mapping[TranscriptKey, str]
    unjudged: frozenset[TranscriptKey]
    """Transcripts whose judge gave no verdict; their labels are not used."""

    def match_all(self, labels: Sequence[HumanLabel]) -> Mapping[LabelKey, bool]:
        """Return the labels by assertion. Raises InputError for a label without its assertion."""
        judged = {one.key for one in self.judged}
        found: dict[LabelKey, bool] = {}
        for label in labels:
            transcript = self._find_transcript(label)
            if transcript in self.unjudged:
                continue
            key = LabelKey(transcript, self._find_assertion(label))
            if key not in judged:
                raise self._build_error(label, f"{key.assertion!r} does not apply to its scenario")
            if key in found:
                raise self._build_error(label, "labels a transcript that is labelled already")
            found[key] = label.passed
        return found

    def _find_transcript(self, label: HumanLabel) -> TranscriptKey:
        keys = sorted(
            key
            for key in self.digests
            if key.scenario == label.scenario_id and label.iteration in (None, key.iteration)
        )
        if label.transcript is not None:
            same = [key for key in keys if self.digests[key] == label.transcript]
            if keys and not same:
                raise self._build_error(
                    label,
                    f"is about another transcript of {label.scenario_id!r} than the judged one; "
                    "name the results that were labelled with --results, or label it again",
                )
            keys = same
        if len(keys) != 1:
            problem = "no judged transcript" if not keys else f"{len(keys)} judged transcripts"
            raise self._build_error(
                label,
                f"matches {problem} of scenario {label.scenario_id!r}; give its iteration, or name "
                "the results that were labelled with --results",
            )
        return keys[0]

    def _find_assertion(self, label: HumanLabel) -> str:
        names = sorted({one.assertion.name for one in self.judged if one.is_judged})
        if label.assertion is None and len(names) == 1:
            return names[0]
        if label.assertion not in names:
            known = ", ".join(map(repr, names)) or "none"
            raise self._build_error(label, f"needs the name of a judged assertion, one of: {known}")
        return label.assertion

    def _build_error(self, label: HumanLabel, problem: str) -> InputError:
        return InputError(f"{self.path}:{label.line}: {problem}")


def refuse_labelled_template(path: Path) -> None:
    """Raise InputError if a template has labels, which a new one would overwrite."""
    try:
        parse_labels(path.read_text("utf-8-sig"))
    except (OSError, UnicodeDecodeError, LocatedProblem):
        return
    raise InputError(
        f"{path}: has labels, which would be overwritten; move it, and name it with --labels"
    )


def render_label_template(
    judged: Sequence[JudgedAssertion], digests: Mapping[TranscriptKey, str]
) -> str:
    """Return a CSV file of the judged assertions, to be labelled without seeing the verdicts."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(LABEL_HEADER.split(","))
    for one in sorted(judged, key=lambda one: one.key):
        if one.is_judged:
            key = one.transcript
            name = one.assertion.name
            writer.writerow([key.scenario, key.iteration, name, "", digests[key]])
    return written.getvalue()


_WORDS = {"pass": True, "true": True, "yes": True, "1": True} | {
    "fail": False,
    "false": False,
    "no": False,
    "0": False,
}
_COLUMNS = ("scenario_id", "iteration", "assertion", "label", "transcript")
LABEL_HEADER = ",".join(_COLUMNS)
"""First line of a file of labels."""


@dataclass(frozen=True, slots=True)
class HumanLabel:
    """A person's verdict on one transcript."""

    scenario_id: str
    passed: bool
    line: int
    """Line of the file, from 1."""
    iteration: int | None = None
    """None: the scenario has one."""
    assertion: str | None = None
    """Name of the assertion that the label is about; None: there is one judged assertion."""
    transcript: str | None = None
    """Digest of the transcript that the person read; None: not compared."""


def parse_labels(text: str) -> tuple[HumanLabel, ...]:
    """Parse the labels of a CSV file with a header. Raises LocatedProblem."""
    found = tuple(_build_label(line, row) for line, row in _read_table(text) if _has_label(row))
    if not found:
        raise LocatedProblem(1, "has no label; write pass or fail in the column label")
    return found


def _has_label(row: dict[str, Any]) -> bool:
    """Return whether a row is labelled; a blank cell is a transcript that nobody has read yet."""
    return row.get("label") not in ("", None)


def _read_table(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        for row in reader:
            if None in row or None in row.values():
                raise LocatedProblem(reader.line_num, "has another number of cells than the header")
            yield reader.line_num, row
    except csv.Error as error:
        raise LocatedProblem(reader.line_num, f"is not CSV: {error}") from None


def _build_label(line: int, row: dict[str, Any]) -> HumanLabel:
    unknown = sorted(set(row) - set(_COLUMNS))
    if unknown:
        known = ", ".join(_COLUMNS)
        raise LocatedProblem(line, f"has an unknown column {unknown[0]!r}; known are {known}")
    scenario = row.get("scenario_id")
    if not isinstance(scenario, str) or not scenario:
        raise LocatedProblem(line, "names no scenario_id")
    label = row["label"]
    passed = _WORDS.get(str(label).strip().lower())
    if passed is None:
        raise LocatedProblem(line, f"label {label!r} is neither pass nor fail")
    return HumanLabel(
        scenario,
        passed,
        line,
        _parse_iteration(line, row.get("iteration")),
        _parse_text(row.get("assertion")),
        _parse_text(row.get("transcript")),
    )


def _parse_iteration(line: int, value: Any) -> int | None:
    if value in ("", None):
        return None
    if not str(value).isdecimal() or int(value) < 1:
        raise LocatedProblem(line, f"iteration {value!r} is not a whole number of at least 1")
    return int(value)


def _parse_text(value: Any) -> str | None:
    return str(value) if value not in ("", None) else None
