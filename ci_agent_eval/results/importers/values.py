"""Foreign JSON of unknown structure, and what importers make of it.

A value of another type than asked for counts as missing.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from ci_agent_eval.analysis.loaded_results import JUnitCase
from ci_agent_eval.contract.findings import FindingKind
from ci_agent_eval.contract.wording import one_line

MAX_AMOUNT = 1e15
"""The largest amount in the contract."""

_MAX_NAME = 200

ToolDocument = Mapping[str, Any]
"""A parsed JSON object of unknown structure."""

EpisodeData = dict[str, Any]
"""The fields of an episode, as in an episode file; the contract validates them."""

ScoreRule = Literal["binary", "thresholds", "none"]
"""The scores that are verdicts: those with a threshold, and for `binary` those that are all 0 or 1.

`none`: the episodes are our own, and their scores inform.
"""


class ImportProblem(NamedTuple):
    """A problem of an imported file."""

    message: str
    """The sentence after "it": the problem, then the advice."""
    kind: FindingKind = "unreadable_file"


ImportedItem = EpisodeData | ImportProblem | JUnitCase
"""An item of a file: an episode, a test without an episode, or a problem."""


class Importer(NamedTuple):
    """Imports the results of one tool; figures that are not in the file stay unmeasured."""

    tool: str
    """The tool's name, with the option or file if needed."""
    score_rule: ScoreRule
    """The rule for scores; an episode without an outcome is judged by it."""
    can_import: Callable[[ToolDocument], bool]
    """Returns whether a document's keys are this tool's, in any version."""
    iterate_episodes: Callable[[ToolDocument], Iterable[ImportedItem]]
    """Yields the episodes, tests and problems of a document, in a reproducible order."""


def as_text(value: object) -> str | None:
    """Return a string that is not blank, or None."""
    return value if isinstance(value, str) and value.strip() else None


def as_number(value: object) -> float | None:
    """Return a finite number, or None; booleans are not numbers."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if -MAX_AMOUNT <= value <= MAX_AMOUNT and math.isfinite(value) else None


def as_amount(value: object) -> float | None:
    """Return a number that is not negative, or None."""
    number = as_number(value)
    return number if number is not None and number >= 0 else None


def as_count(value: object) -> int | None:
    """Return an integer that is not negative, or None."""
    amount = as_amount(value)
    return int(amount) if amount is not None and amount == int(amount) else None


def as_share(value: object) -> float | None:
    """Return a number from 0 to 1, or None."""
    amount = as_amount(value)
    return amount if amount is not None and amount <= 1 else None


def format_content(value: object) -> str:
    """Return a string unchanged, None as an empty string, and anything else as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, sort_keys=True, ensure_ascii=False)


def as_name(value: object) -> str:
    """Format a value on one line, cut to the length of a name."""
    line = one_line(format_content(value))
    return line if len(line) <= _MAX_NAME else f"{line[:_MAX_NAME]}…"


class Record:
    """A JSON value with the values inside it at paths, such as `eval.model` or `turns.0`."""

    def __init__(self, content: Any) -> None:
        self.content = content

    def get(self, path: str | None) -> Any:
        """Return the value at a path; None if there is no path or no value."""
        return None if path is None else find_value(self.content, path)

    def at(self, path: str) -> Record:
        """Return the value at a path as a record."""
        return Record(self.get(path))

    def entries(self, path: str) -> list[tuple[str, Record]]:
        """Return the values of an object with their keys, sorted by key."""
        value = self.get(path)
        pairs = sorted(value.items()) if isinstance(value, dict) else ()
        return [(key, Record(item)) for key, item in pairs]

    def records(self, path: str) -> list[Record]:
        """Return the items of a list; one that is not an object is an empty record."""
        value = self.get(path)
        items = value if isinstance(value, list) else ()
        return [Record(item if isinstance(item, dict) else {}) for item in items]

    def text(self, path: str | None) -> str | None:
        """Return a text that is not blank."""
        return as_text(self.get(path))

    def name(self, path: str) -> str:
        """Return any value as a short text on one line."""
        return as_name(self.get(path))

    def shown(self, path: str | None) -> str:
        """Return any value as a text of any length."""
        return format_content(self.get(path))

    def amount(self, path: str) -> float | None:
        """Return a number that is not negative."""
        return as_amount(self.get(path))

    def count(self, path: str) -> int | None:
        """Return an integer that is not negative."""
        return as_count(self.get(path))

    def share(self, path: str) -> float | None:
        """Return a number from 0 to 1."""
        return as_share(self.get(path))

    def milliseconds(self, path: str) -> float | None:
        """Return seconds as milliseconds."""
        seconds = self.amount(path)
        return None if seconds is None else as_amount(seconds * 1000)


def find_value(content: object, path: str) -> object:
    """Return the value at a path; a key that holds the dots itself comes first."""
    if isinstance(content, dict) and path in content:
        return content[path]
    for part in path.split("."):
        if isinstance(content, dict):
            content = content.get(part)
        elif isinstance(content, list) and part.isdecimal() and int(part) < len(content):
            content = content[int(part)]
        else:
            return None
    return content


def build_usage(prompt: object, completion: object, cached: object = None) -> dict[str, int] | None:
    """Build the usage of one turn; None unless both input and output tokens are known."""
    tokens_in, tokens_out = as_count(prompt), as_count(completion)
    if tokens_in is None or tokens_out is None:
        return None
    return {
        "input": tokens_in,
        "output": tokens_out,
        "cached": min(as_count(cached) or 0, tokens_in),
    }


def build_exchange(request: str, reply: str, **figures: object) -> EpisodeData:
    """Build a conversation of one message of the user and one reply, with its figures."""
    user = {"role": "user", "content": request}
    return {"turns": [user, {"role": "assistant", "content": reply, **figures}]}


def build_score(name: str, value: object, reason: str | None = None) -> EpisodeData:
    """Build a score; its value is None if it is not a finite number."""
    figure = float(value) if isinstance(value, bool) else as_number(value)
    return {"name": name, "value": figure, "reason": reason}


def number_repeats(episodes: Iterable[EpisodeData]) -> Iterator[EpisodeData]:
    """Yield the episodes; the iteration is the place among equal scenarios and agents."""
    seen: Counter[tuple[object, object]] = Counter()
    for episode in episodes:
        key = episode["scenario_id"], episode.get("agent")
        seen[key] += 1
        yield {**episode, "iteration": seen[key]}


def check_count(declared: int | None, held: int, noun: str, advice: str) -> Iterator[ImportProblem]:
    """Yield a problem if a file declares more results than it holds."""
    if declared is not None and declared > held:
        message = f"counts {declared} {noun} and holds {held}; {advice}"
        yield ImportProblem(message, "declared_counts_differ")
