"""Read episode files of every layout as a stream of episodes and problems.

`results.json` in its canonical layout (one episode a line) and `.jsonl` files are read line by
line; any other JSON (pretty-printed results, a list, a single episode, or another tool's file)
as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeVar

from pydantic import ValidationError

from ci_agent_eval.analysis.loaded_results import JUnitCase
from ci_agent_eval.contract.base import describe_validation_error
from ci_agent_eval.contract.canonical import HEADER_END
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.results import JournalLine, Results
from ci_agent_eval.results.json_text import MalformedError, ReadProblem, limit_length, parse_json

if TYPE_CHECKING:
    from ci_agent_eval.contract.result_mapping import ResultMapping, ScoreThreshold
    from ci_agent_eval.results.importers.protocol import Importer

MAX_LINE_BYTES = 64 * 1024 * 1024
"""Maximum bytes of a line, and of a file that is read as a whole."""

LIST_END = b"]}"
"""The last line of `results.json`."""

_Model = TypeVar("_Model", Episode, JournalLine, Results)
_LINES_SUFFIXES = (".jsonl", ".ndjson")
_TABLE_SUFFIX = ".csv"
BOM = b"\xef\xbb\xbf"


class LineFile(Protocol):
    """A binary file that can be read by lines."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes."""
        ...

    def readline(self, size: int, /) -> bytes:
        """Return one line with its newline, or up to `size` bytes of it."""
        ...


class ParsedEpisode(NamedTuple):
    """An episode with its position in the file."""

    episode: Episode
    line: int = 0
    """1-based line; 0 if the file was read as a whole."""
    event: Literal["started", "ended"] = "ended"
    is_unnumbered: bool = False
    """Whether it has neither node id nor iteration, so that its position is its iteration."""
    started_key: tuple[str, str, int, int] | None = None
    """Key of the line that started it, if it ended under another scenario."""
    suite: str | None = None
    """The suite in its file, if there is one."""


INCOMPLETE = ReadProblem(
    "it says that it is not complete: its run did not finish, or its files were not whole", 1
)
_TOO_LONG = ReadProblem("its episode is longer than 64 MiB")


@dataclass(slots=True)
class ReadingRules:
    """How values are redacted and results of other tools judged, and the scores that were read."""

    redact: Callable[[Any], Any] = lambda value: value
    """Removes secrets from the JSON value of a file, before anything else reads it."""
    thresholds: Mapping[str, ScoreThreshold] = field(default_factory=dict)
    mappings: Sequence[ResultMapping] = ()
    score_names: set[str] = field(default_factory=set)
    files: int = 0
    """Number of files of other tools that were read."""

    def find_mapping(self, name: str) -> ResultMapping | None:
        """Return the first mapping whose glob matches the end of a file's path."""
        path = PurePosixPath(name)
        return next((mapping for mapping in self.mappings if path.match(mapping.files)), None)


def read_episodes(
    file: LineFile,
    name: str,
    rules: ReadingRules | None = None,
) -> Iterator[ParsedEpisode | JUnitCase | ReadProblem]:
    """Read every episode of a file; its first line and its name determine the layout."""
    rules = rules or ReadingRules()
    first = file.readline(MAX_LINE_BYTES).removeprefix(BOM)
    if not first.strip():
        rest = file.read(1)
        if not rest:
            yield ReadProblem("it is empty")
            return
        first += rest
    if first.rstrip().endswith(HEADER_END.encode()):
        yield from _read_canonical(first, file, rules)
    elif name.lower().endswith(_LINES_SUFFIXES) and not _is_foreign_line(first, name):
        yield from _read_lines(first, file, rules)
    else:
        yield from _read_whole(first, file, name, rules)


def _read_canonical(
    header: bytes, file: LineFile, rules: ReadingRules
) -> Iterator[ParsedEpisode | ReadProblem]:
    try:
        results = _validate_model(Results, rules.redact(parse_json(header.rstrip() + b"]}")))
    except MalformedError as error:
        yield ReadProblem(str(error), 1)
        return
    if not results.complete:
        yield INCOMPLETE
    number, closed = 1, False
    for number, line in _iterate_lines(file, 2):
        if line is not None and line.strip() == LIST_END:
            closed = True
            break
        if line is None or line.endswith(b"\n"):  # else it is cut off, which is reported below
            yield _parse_list_line(line, number, rules, results.suite)
    if not closed:
        yield ReadProblem("it is cut off before its list of episodes ends", number)
    elif file.read(MAX_LINE_BYTES).strip():
        yield ReadProblem("it goes on after its end", number + 1)


def _parse_list_line(
    line: bytes | None, number: int, rules: ReadingRules, suite: str | None
) -> ParsedEpisode | ReadProblem:
    """Parse an entry of a list, optionally with a comma; None is a line that was too long."""
    if line is None:
        return _TOO_LONG._replace(line=number)
    return _parse_line_text(line.strip().removesuffix(b","), number, rules, suite)


def _read_lines(
    first: bytes, file: LineFile, rules: ReadingRules
) -> Iterator[ParsedEpisode | ReadProblem]:
    yield from _parse_line(first, 1, rules)
    for number, line in _iterate_lines(file, 2):
        yield from _parse_line(line, number, rules)


def _parse_line(
    line: bytes | None, number: int, rules: ReadingRules
) -> Iterator[ParsedEpisode | ReadProblem]:
    """Parse a line that is an episode or blank; None is a line that was too long."""
    if line is None:
        yield _TOO_LONG._replace(line=number)
        return
    if not line.strip():
        return
    found = _parse_line_text(line.strip(), number, rules)
    if isinstance(found, ReadProblem) and not line.endswith(b"\n"):
        found = ReadProblem("its last line is cut off", number, cut=True)
    yield found


def _iterate_lines(file: LineFile, start: int) -> Iterator[tuple[int, bytes | None]]:
    """Yield numbered lines; None for a line over the limit, which is dropped."""
    number = start
    while line := file.readline(MAX_LINE_BYTES):
        if len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
            while line and not line.endswith(b"\n"):
                line = file.readline(MAX_LINE_BYTES)
            yield number, None
        else:
            yield number, line
        number += 1


def _is_foreign_line(line: bytes, name: str) -> bool:
    """Return whether a file's first line is a record of another tool."""
    try:
        value = parse_json(line)
    except MalformedError:
        return False
    if not isinstance(value, dict) or "scenario_id" in value or "episode" in value:
        return False
    try:
        return _find_importer([value], name) is not None
    except MalformedError:  # of a broken importer; the whole file gets the problem
        return True


_OWN_KEYS = frozenset({"scenario_id", "episode", "episodes"})


def _has_own_keys(value: object) -> bool:
    """Return whether a document, or the first item of a list, has keys of our own layouts."""
    first = value[0] if isinstance(value, list) and value else value
    return isinstance(first, dict) and not _OWN_KEYS.isdisjoint(first)


def _find_importer(value: object, name: str) -> tuple[Importer, dict[str, Any]] | None:
    """Return the importer of a file of another tool, of this package or of an installed one.

    Raises MalformedError, as `find_installed_importer` does.
    """
    # The importers are not worth their start-up time to a file in our own layout.
    from ci_agent_eval.results.importers.registry import find_importer  # noqa: PLC0415 - see above

    found = find_importer(value, name)
    if found is not None or _has_own_keys(value):
        return found
    from ci_agent_eval.results.importers.registry import find_installed_importer  # noqa: PLC0415 - see above

    return find_installed_importer(value, name)


def _read_whole(
    first: bytes, file: LineFile, name: str, rules: ReadingRules
) -> Iterator[ParsedEpisode | JUnitCase | ReadProblem]:
    data = first + file.read(MAX_LINE_BYTES + 1 - len(first))
    if len(data) > MAX_LINE_BYTES:
        yield ReadProblem(
            "it is larger than 64 MiB and not in the layout of one episode a line; "
            "write its episodes as .jsonl"
        )
        return
    problems: list[ReadProblem] = []
    try:
        value = rules.redact(parse_document(data, name, problems))
        found = _find_importer(value, name)
        items = _find_items(value, name) if found is None else []
    except MalformedError as error:
        yield from (*problems, ReadProblem(str(error), error.line))
        return
    yield from problems
    if found is not None:
        yield from import_episodes(*found, rules)
        return
    if isinstance(value, dict) and value.get("complete") is False:
        yield INCOMPLETE
    suite = value.get("suite") if isinstance(value, dict) else None
    for place, item in items:
        try:
            yield _build_parsed_episode(item)._replace(suite=suite)
        except MalformedError as error:
            yield ReadProblem(f"{place}{error}")


def parse_document(data: bytes, name: str, problems: list[ReadProblem]) -> Any:
    """Parse JSON, JSON lines of another tool, or CSV; add the problems of single lines.

    Raises MalformedError.
    """
    suffix = name.lower()
    if not suffix.endswith((*_LINES_SUFFIXES, _TABLE_SUFFIX)):
        return parse_json(data)
    from ci_agent_eval.results.importers.values import parse_csv, parse_json_lines  # noqa: PLC0415 - as above

    is_table = suffix.endswith(_TABLE_SUFFIX)
    items = list(parse_csv(data) if is_table else parse_json_lines(data))
    problems += [item for item in items if isinstance(item, ReadProblem)]
    return [item for item in items if not isinstance(item, ReadProblem)]


def import_episodes(
    importer: Importer, document: dict[str, Any], rules: ReadingRules
) -> Iterator[ParsedEpisode | JUnitCase | ReadProblem]:
    """Read the results of another tool; a file without any is a problem."""
    from ci_agent_eval.results.importers.protocol import ImportProblem  # noqa: PLC0415 - as above
    from ci_agent_eval.results.importers.score_verdicts import judge_scores  # noqa: PLC0415 - as above

    found = False
    rules.files += 1
    items = importer.iterate_episodes(document)
    if importer.score_rule != "none":
        items = judge_scores(items, importer.score_rule, rules.thresholds, rules.score_names)
    for number, item in enumerate(items):
        found = True
        if isinstance(item, ImportProblem):
            message = f"it is a file of {importer.tool} and {item.message}"
            yield ReadProblem(limit_length(message), kind=item.kind)
            continue
        if isinstance(item, JUnitCase):
            yield item
            continue
        try:
            yield ParsedEpisode(_validate_model(Episode, item))
        except MalformedError as error:
            yield ReadProblem(f"it is a file of {importer.tool}; result {number}: {error}")
    if not found:
        message = f"it is a file of {importer.tool} and holds no results; run the tool again"
        yield ReadProblem(message, kind="no_results")


def _find_items(value: Any, name: str) -> list[tuple[str, Any]]:
    """Find the episodes in a document, each with its path for error messages."""
    if name.lower().endswith(_TABLE_SUFFIX):
        raise MalformedError("it is a table; read it with --mapping")
    if isinstance(value, dict) and "episodes" in value:
        _validate_model(Results, {**value, "episodes": ()})
        value, prefix = value["episodes"], "episodes"
    else:
        prefix = ""
    if isinstance(value, list):
        return [(f"{prefix}[{index}].", item) for index, item in enumerate(value)]
    if isinstance(value, dict) and not prefix and ("scenario_id" in value or "episode" in value):
        return [("", value)]
    from ci_agent_eval.results.importers.registry import TOOLS  # noqa: PLC0415 - as above

    raise MalformedError(
        "it holds no episodes: neither a list, nor a key 'episodes', nor a key 'scenario_id', "
        f"nor what {TOOLS} write; read other formats with --mapping"
    )


def _parse_line_text(
    text: bytes, number: int, rules: ReadingRules, suite: str | None = None
) -> ParsedEpisode | ReadProblem:
    try:
        value = rules.redact(parse_json(text))
        return _build_parsed_episode(value, number)._replace(suite=suite)
    except MalformedError as error:
        return ReadProblem(str(error), number)


def _build_parsed_episode(value: Any, line: int = 0) -> ParsedEpisode:
    if isinstance(value, dict) and "event" in value and "episode" in value:
        entry = _validate_model(JournalLine, value)
        return ParsedEpisode(entry.episode, line, entry.event, started_key=entry.started_key)
    episode = _validate_model(Episode, value)
    unnumbered = episode.nodeid is None and "iteration" not in episode.model_fields_set
    return ParsedEpisode(episode, line, is_unnumbered=unnumbered)


def _validate_model(kind: type[_Model], value: Any) -> _Model:
    Episode.model_rebuild()  # once, and not again in each model that holds episodes
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        sentence = describe_validation_error(error).removeprefix("episode.")
        more = error.error_count() - 1
        rest = f" (and {more} more in this episode)" if more else ""
        raise MalformedError(limit_length(sentence) + rest) from error
