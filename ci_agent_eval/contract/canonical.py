"""Canonical JSON: the same value is always the same bytes.

`results.json` is one JSON document laid out with one episode a line, so that it can
be streamed, diffed and merged line by line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from pydantic import BaseModel

from ci_agent_eval.contract.base import SCHEMA_VERSION
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.results import JournalLine

HEADER_END = '"episodes":['
FOOTER = "]}\n"


def canonical_json(value: BaseModel) -> str:
    """Render a value on one line: sorted keys, and defaults left out.

    The schema version and an episode's outcome are always there: no reader is to guess them.
    """
    data = value.model_dump(mode="json", exclude_defaults=True)
    if "schema_version" in type(value).model_fields:
        data["schema_version"] = SCHEMA_VERSION
    if isinstance(value, Episode):
        data["outcome"] = value.outcome
    if isinstance(value, JournalLine):
        data["episode"]["outcome"] = value.episode.outcome
    return json.dumps(data, ensure_ascii=True, sort_keys=True, separators=(",", ":"))


def render_results_header(suite: str, *, complete: bool) -> str:
    """Return the first line of `results.json`, up to the opening of its list of episodes."""
    name = json.dumps(suite)
    whole = "" if complete else '"complete":false,'
    return f'{{"schema_version":"{SCHEMA_VERSION}",{whole}"suite":{name},{HEADER_END}\n'


def render_results(
    suite: str, episode_lines: Iterable[str], *, complete: bool = True
) -> Iterable[str]:
    """Yield `results.json` in pieces from the canonical lines of its episodes, in order.

    `complete` is False where the run did not finish or its files were not whole, so that
    the file says so even where nothing else of the run comes along.
    """
    yield render_results_header(suite, complete=complete)
    separator = ""
    for line in episode_lines:
        yield separator + line
        separator = ",\n"
    yield ("\n" if separator else "") + FOOTER
