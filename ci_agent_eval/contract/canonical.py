"""Canonical JSON: the same value is always the same bytes.

`results.json` is one JSON document laid out with one episode a line, so that it can
be streamed, diffed and merged line by line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from pydantic import BaseModel

from ci_agent_eval.contract.base import SCHEMA_VERSION

HEADER_END = '"episodes":['
FOOTER = "]}\n"


def canonical_json(value: BaseModel) -> str:
    """Render a value on one line: sorted keys, defaults left out but for the schema version."""
    data = value.model_dump(mode="json", exclude_defaults=True)
    if "schema_version" in type(value).model_fields:
        data["schema_version"] = SCHEMA_VERSION
    return json.dumps(data, ensure_ascii=True, sort_keys=True, separators=(",", ":"))


def results_header(suite: str) -> str:
    """Return the first line of `results.json`, up to the opening of its list of episodes."""
    name = json.dumps(suite)
    return f'{{"schema_version":"{SCHEMA_VERSION}","suite":{name},{HEADER_END}\n'


def render_results(suite: str, episode_lines: Iterable[str]) -> Iterable[str]:
    """Yield `results.json` in pieces from the canonical lines of its episodes, in order."""
    yield results_header(suite)
    separator = ""
    for line in episode_lines:
        yield separator + line
        separator = ",\n"
    yield ("\n" if separator else "") + FOOTER
