"""The files of a team: the scenario manifest, quarantine and acknowledged regressions. Pure.

The manifest is a reviewed list of the scenarios that a suite must run: a TOML file with one entry
per scenario, `"id" = "file of its test"`, in the tables `[required]` and `[advisory]`. An entry of
a parametrized scenario lists its cases, one per line. The file is parsed by line, so that a comment
above a scenario stays with it.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final, get_args

from pydantic import AfterValidator, BeforeValidator, Field

from ci_agent_eval.contract.base import KnownKeysModel
from ci_agent_eval.contract.episode import Gating
from ci_agent_eval.errors import InputError

MANIFEST_NAME: Final = "agent-eval-scenarios.toml"
UPDATE_COMMAND: Final = "agent-eval scenarios --write"

TABLES: tuple[Gating, ...] = get_args(Gating)

_TABLE = re.compile(r"\[\s*(\w+)\s*\](?:\s*#.*)?")
_HEAD = (
    "# The scenarios that a run of this suite has to contain, each with the file of its test.",
    f"# `{UPDATE_COMMAND}` updates this list; review what it removes.",
)


@dataclass(frozen=True, slots=True)
class KnownScenario:
    """A scenario of a collection or of results."""

    scenario_id: str
    gate: Gating
    file: str | None = None
    """Relative to the repository root."""
    was: tuple[str, ...] = ()
    """Former ids."""
    files: tuple[str, ...] = field(default=(), compare=False)
    """All files of its tests, if it has several tests."""
    cases: tuple[str, ...] = ()
    """The parameters of its tests, if all their cases are this scenario."""

    def is_in(self, file: str | None) -> bool:
        """Return whether one of its tests is in a file; True if either is unknown."""
        files = self.files or ((self.file,) if self.file else ())
        return not file or not files or file in files


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """A scenario of the manifest."""

    scenario_id: str
    gate: Gating
    file: str | None
    line: int = 0
    """1-based; 0: not in the file yet."""
    text: str = ""
    """The entry as written."""
    comments: tuple[str, ...] = ()
    """The comments above it."""
    cases: tuple[str, ...] = ()
    """Empty: it says nothing about cases."""

    @property
    def head(self) -> str:
        """The entry without its cases."""
        return f"{quote_toml(self.scenario_id)} = {quote_toml(self.file or '')}"


@dataclass(frozen=True, slots=True)
class ScenarioManifest:
    """The entries and comments of a manifest file."""

    name: str
    """The file's name in messages."""
    entries: Mapping[str, ManifestEntry] = field(default_factory=dict)
    """By scenario id."""
    headers: Mapping[Gating, tuple[str, ...]] = field(default_factory=dict)
    """The comments above each table."""
    tail: tuple[str, ...] = ()
    """The comments at the end of the file."""


def merge_scenarios(found: Iterable[KnownScenario]) -> dict[str, KnownScenario]:
    """Return each scenario once: required if any of its tests is, with its first file."""
    merged: dict[str, KnownScenario] = {}
    for one in found:
        known = merged.get(one.scenario_id, one)
        files = sorted({file for file in (*known.files, known.file, one.file) if file})
        merged[one.scenario_id] = replace(
            known,
            gate="required" if "required" in (known.gate, one.gate) else "advisory",
            file=files[0] if files else None,
            files=tuple(files),
            was=tuple(sorted({*known.was, *one.was})),
            cases=tuple(sorted({*known.cases, *one.cases})),
        )
    return merged


def parse_manifest(text: str, name: str) -> ScenarioManifest:
    """Parse a manifest; raises InputError with the line number."""
    entries: dict[str, ManifestEntry] = {}
    headers: dict[Gating, tuple[str, ...]] = {}
    table: Gating | None = None
    comments: list[str] = []
    for number, line in _iterate_lines(text):
        where = f"{name}:{number}"
        if line.startswith("#"):
            comments.append(line)
        elif found := _TABLE.fullmatch(line):
            table = _parse_table(found[1], headers, where)
            headers[table] = tuple(comments)
            comments = []
        elif line:
            entry = _parse_entry(line, table, where)
            if (known := entries.get(entry.scenario_id)) is not None:
                raise InputError(
                    f"{where}: scenario {entry.scenario_id!r} is in line {known.line} already; "
                    "remove one of the two"
                )
            entries[entry.scenario_id] = replace(entry, line=number, comments=tuple(comments))
            comments = []
    return ScenarioManifest(name, entries, headers, tuple(comments))


def _iterate_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line with its number; an entry that lists cases is one line."""
    # Not `splitlines`: a scenario id may contain its other line separators.
    numbered = enumerate(text.split("\n"), start=1)
    for number, written in numbered:
        lines = [written.strip(" \t\r")]
        if lines[0].endswith("[") and not lines[0].startswith("#"):
            for _, inner in numbered:
                lines.append(inner.rstrip(" \t\r"))
                if inner.lstrip().startswith("]"):
                    break
        yield number, "\n".join(lines)


def _parse_table(name: str, seen: Mapping[Gating, object], where: str) -> Gating:
    for table in TABLES:
        if name == table and table not in seen:
            return table
    known = " and ".join(f"[{table}]" for table in TABLES)
    problem = "is there twice" if name in seen else "is not a table of it"
    raise InputError(f"{where}: [{name}] {problem}; the tables are {known}, each once")


def _parse_entry(line: str, table: Gating | None, where: str) -> ManifestEntry:
    if table is None:
        raise InputError(f"{where}: stands in no table; begin with [required]")
    try:
        ((scenario_id, value),) = tomllib.loads(line).items()
    except ValueError:  # from tomllib, or a line without exactly one key
        raise InputError(f"{where}: {_ADVICE}") from None
    if isinstance(value, dict) and value.keys() == {"file", "cases"}:
        file, cases = value["file"], value["cases"]
        if not (isinstance(cases, list) and cases and all(isinstance(one, str) for one in cases)):
            raise InputError(f"{where}: {_CASES_ADVICE}")
    elif isinstance(value, dict) and value.keys() & {"file", "cases"}:
        raise InputError(f"{where}: {_CASES_ADVICE}")
    else:
        file, cases = value, []
    if not isinstance(file, str) or not scenario_id:
        raise InputError(f"{where}: {_ADVICE}")
    return ManifestEntry(scenario_id, table, file or None, text=line, cases=tuple(cases))


_ADVICE = 'write each scenario on a line of its own, as "scenario id" = "file of its test"'
_CASES_ADVICE = (
    'write its cases as "scenario id" = { file = "file of its test", cases = ["[case]"] }'
)


def update_manifest(
    manifest: ScenarioManifest,
    found: Mapping[str, KnownScenario],
    is_kept: Callable[[ManifestEntry], bool],
) -> ScenarioManifest:
    """Return the manifest with the found scenarios and the other entries that `is_kept`."""
    kept = {name: entry for name, entry in manifest.entries.items() if is_kept(entry)}
    former = find_former_ids(manifest, found)
    entries: dict[str, ManifestEntry] = {}
    for name, one in found.items():
        known = manifest.entries.get(name)
        kept_cases = known.cases if known is not None and is_kept(known) else ()
        merged = replace(one, cases=tuple(sorted({*one.cases, *kept_cases})))
        entries[name] = _update_entry(merged, manifest, former.get(name))
    return replace(manifest, entries={**kept, **entries})


def _update_entry(
    one: KnownScenario, manifest: ScenarioManifest, former: str | None
) -> ManifestEntry:
    known = manifest.entries.get(one.scenario_id)
    same = known is not None and sorted(known.cases) == sorted(one.cases)
    if known is not None and same and (known.gate, known.file) == (one.gate, one.file):
        return known
    above = known or manifest.entries.get(former or "")
    comments = above.comments if above else ()
    entry = ManifestEntry(one.scenario_id, one.gate, one.file, 0, "", comments, one.cases)
    return replace(entry, text=_write_entry(entry))


def _write_entry(entry: ManifestEntry) -> str:
    if not entry.cases:
        return entry.head
    file = f"file = {quote_toml(entry.file or '')}"
    cases = "".join(f"  {quote_toml(case)},\n" for case in entry.cases)
    return f"{quote_toml(entry.scenario_id)} = {{ {file}, cases = [\n{cases}] }}"


def find_former_ids(
    manifest: ScenarioManifest, found: Mapping[str, KnownScenario]
) -> dict[str, str]:
    """Map each renamed scenario to its entry's id; each entry is used at most once."""
    taken: dict[str, str] = {}
    for name, one in sorted(found.items()):
        if name in manifest.entries:
            continue
        for former in one.was:
            if former in manifest.entries and former not in found and former not in taken.values():
                taken[name] = former
                break
    return taken


def render_manifest(manifest: ScenarioManifest) -> str:
    """Return the file's text: tables sorted by scenario id, comments at their entries."""
    return "\n".join(_render_lines(manifest)).strip("\n") + "\n"


def _render_lines(manifest: ScenarioManifest) -> Iterator[str]:
    above = manifest.headers or {"required": _HEAD}
    for table in TABLES:
        entries = [one for _, one in sorted(manifest.entries.items()) if one.gate == table]
        if entries or above.get(table):
            yield ""
            yield from above.get(table, ())
            yield f"[{table}]"
        for entry in entries:
            yield from entry.comments
            yield entry.text
    if manifest.tail:
        yield ""
        yield from manifest.tail


def quote_toml(text: str) -> str:
    """Return a TOML basic string: JSON's escapes, and one for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def _parse_date(value: Any) -> dt.date:
    """Parse `YYYY-MM-DD` or a TOML date; refuse a time, which would need a time zone."""
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return value
    if isinstance(value, str) and _DATE.fullmatch(value):
        try:
            return dt.date.fromisoformat(value)
        except ValueError:
            raise ValueError(f"{value} is not a day of the calendar") from None
    raise ValueError('must be a date written as "YYYY-MM-DD"')


Day = Annotated[dt.date, BeforeValidator(_parse_date)]
"""A day in UTC."""

_Text = Annotated[str, Field(min_length=1, max_length=500, pattern=r"\S")]


_WILD = re.compile(r"\[[^]]*\]|[*?\s]")
"""Wildcards of Python's fnmatch."""


def _refuse_catch_all(pattern: str) -> str:
    """Refuse a pattern of wildcards alone, which would waive every scenario."""
    if not _WILD.sub("", pattern):
        raise ValueError("matches every scenario; name those that are meant")
    return pattern


class Waiver(KnownKeysModel):
    """A waiver for the scenarios that match it."""

    scenario: Annotated[_Text, AfterValidator(_refuse_catch_all)] = Field(
        description="a scenario id, or a glob of them"
    )
    agent: _Text | None = Field(default=None, description="an agent, or a glob; None: any")
    reason: _Text
    until: Day = Field(description="the last day on which it holds")


class QuarantineEntry(Waiver):
    """`[[quarantine]]`: the scenario runs and is reported but does not gate."""

    owner: _Text


class QuarantineFile(KnownKeysModel):
    """A separate file of quarantined scenarios."""

    quarantine: tuple[QuarantineEntry, ...] = ()


class AcknowledgedEntry(Waiver):
    """`[[acknowledged]]`: the scenario's regressions are accepted."""


class AcknowledgedFile(KnownKeysModel):
    """`agent-eval-acknowledged.toml`: regressions that a team accepts until they expire."""

    acknowledged: tuple[AcknowledgedEntry, ...] = ()


def render_acknowledgement(scenario: str, agent: str | None, reason: str, until: str) -> str:
    """Return an entry of the file of acknowledged regressions, as TOML."""
    values = {"scenario": scenario, "agent": agent, "reason": reason, "until": until}
    lines = (f"{key} = {quote_toml(value)}" for key, value in values.items() if value is not None)
    return "\n".join(("[[acknowledged]]", *lines)) + "\n"
