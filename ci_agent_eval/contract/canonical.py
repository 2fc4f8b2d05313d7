"""Canonical JSON: equal values have equal bytes.

`results.json` is one JSON document with one episode per line, so that it can be streamed,
diffed and merged by line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from pydantic import BaseModel

from ci_agent_eval.contract.base import SCHEMA_VERSION
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.results import Confirmation, Experiment, JournalLine

HEADER_START = '{"schema_version":'
HEADER_END = '"episodes":['
FOOTER = "]}\n"


def canonical_json(value: BaseModel) -> str:
    """Render a value on one line with sorted keys and without defaults.

    The schema version and an episode's outcome are always written, even if they are defaults.
    """
    data = value.model_dump(mode="json", exclude_defaults=True)
    if "schema_version" in type(value).model_fields:
        data["schema_version"] = SCHEMA_VERSION
    if isinstance(value, Episode):
        data["outcome"] = value.outcome
    if isinstance(value, JournalLine):
        data["episode"]["outcome"] = value.episode.outcome
    if isinstance(value, Confirmation):
        for run, written in zip(value.runs, data.get("runs", ()), strict=True):
            for episode, fields in zip(run.episodes, written.get("episodes", ()), strict=True):
                fields["outcome"] = episode.outcome
    return json.dumps(data, ensure_ascii=True, sort_keys=True, separators=(",", ":"))


def render_results_header(suite: str, *, complete: bool, experiment: Experiment | None) -> str:
    """Return the first line of `results.json`, up to the opening bracket of its episodes."""
    name = json.dumps(suite)
    whole = "" if complete else '"complete":false,'
    tried = "" if experiment is None else f'"experiment":{canonical_json(experiment)},'
    return f'{HEADER_START}"{SCHEMA_VERSION}",{whole}{tried}"suite":{name},{HEADER_END}\n'


def render_results(
    suite: str,
    episode_lines: Iterable[str],
    *,
    complete: bool = True,
    experiment: Experiment | None = None,
) -> Iterable[str]:
    """Yield `results.json` in pieces from the canonical lines of its episodes, in order.

    `complete` is False if the run did not finish or its files were incomplete; it is written to
    the file.
    """
    yield render_results_header(suite, complete=complete, experiment=experiment)
    separator = ""
    for line in episode_lines:
        yield separator + line
        separator = ",\n"
    yield ("\n" if separator else "") + FOOTER
