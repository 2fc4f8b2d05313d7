"""Read result files of every layout as a stream of episodes, plain tests and problems.

`results.json` in its canonical layout (one episode a line) and `.jsonl` files are read line by
line; any other file (pretty-printed results, a list, a single episode, another tool's file) as a
whole. The importers of other tools are not worth their start-up time to a file of our own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, NamedTuple, Protocol, TypeVar

from pydantic import ValidationError

from ci_agent_eval.analysis.loaded_results import JUnitCase
from ci_agent_eval.contract.base import describe_validation_error
from ci_agent_eval.contract.canonical import HEADER_END
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.results import JournalLine, Results
from ci_agent_eval.errors import InputError
from ci_agent_eval.results.json_text import (
    MAX_LINE_BYTES,
    MalformedError,
    ReadProblem,
    limit_length,
    parse_csv,
    parse_json,
    parse_json_lines,
)

if TYPE_CHECKING:
    from ci_agent_eval.contract.result_mapping import ResultMapping, ScoreThreshold
    from ci_agent_eval.results.importers.values import Importer

LIST_END = b"]}"
"""The last line of `results.json`."""

_Model = TypeVar("_Model", Episode, JournalLine, Results)
_LINES_SUFFIXES = (".jsonl", ".ndjson")
_TABLE_SUFFIX = ".csv"
_BOM = b"\xef\xbb\xbf"
_ZIP_MAGIC = b"PK"


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


ReadItem = ParsedEpisode | JUnitCase | ReadProblem

INCOMPLETE = ReadProblem(
    "it says that it is not complete: its run did not finish, or its files were not whole", 1
)


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


def read_result_file(
    opened: BinaryIO, path: Path, where: str, rules: ReadingRules
) -> Iterator[ReadItem]:
    """Read a file that a mapping describes, an archive of inspect_ai, or one of any other layout.

    `where` is its name in reports.
    """
    mapping = rules.find_mapping(where)
    if mapping is not None:
        return _read_whole(b"", opened, path.name, rules, mapping)
    is_archive = opened.read(len(_ZIP_MAGIC)) == _ZIP_MAGIC
    opened.seek(0)
    return _read_archive(path, rules) if is_archive else read_episodes(opened, path.name, rules)


def _read_archive(path: Path, rules: ReadingRules) -> Iterator[ReadItem]:
    from ci_agent_eval.results.importers.inspect_ai import IMPORTER, read_eval_archive  # noqa: PLC0415 - rarely needed

    try:
        document = read_eval_archive(path)
    except (InputError, ValueError, OSError) as error:
        yield ReadProblem(f"{error}; write it as JSON (inspect log convert --to json)")
        return
    yield from _import_episodes(IMPORTER, rules.redact(document), rules)


def read_episodes(
    file: LineFile, name: str, rules: ReadingRules | None = None
) -> Iterator[ReadItem]:
    """Read every episode of a file; its first line and its name determine the layout."""
    rules = rules or ReadingRules()
    first = file.readline(MAX_LINE_BYTES).removeprefix(_BOM)
    if not first.strip():
        more = file.read(1)
        if not more:
            yield ReadProblem("it is empty")
            return
        first += more
    if first.rstrip().endswith(HEADER_END.encode()):
        yield from _read_canonical(first, file, rules)
    elif name.lower().endswith(_LINES_SUFFIXES) and not _is_foreign_line(first, name):
        for number, line in _iterate_lines(file, first):
            if line is None or line.strip():
                yield _parse_line(line, number, rules)
    else:
        yield from _read_whole(first, file, name, rules)


def _read_canonical(header: bytes, file: LineFile, rules: ReadingRules) -> Iterator[ReadItem]:
    try:
        results = _validate_model(Results, rules.redact(parse_json(header.rstrip() + LIST_END)))
    except MalformedError as error:
        yield ReadProblem(str(error), 1)
        return
    if not results.complete:
        yield INCOMPLETE
    number, closed = 1, False
    for number, line in _iterate_lines(file, header):
        if number == 1:
            continue
        if line is not None and line.strip() == LIST_END:
            closed = True
            break
        if line is None or line.endswith(b"\n"):  # else it is cut off, which is reported below
            yield _parse_line(line, number, rules, results.suite)
    if not closed:
        yield ReadProblem("it is cut off before its list of episodes ends", number)
    elif file.read(MAX_LINE_BYTES).strip():
        yield ReadProblem("it goes on after its end", number + 1)


def _iterate_lines(file: LineFile, line: bytes) -> Iterator[tuple[int, bytes | None]]:
    """Yield numbered lines from the first one; None for one over the limit, which is dropped."""
    number = 1
    while line:
        if len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
            while line and not line.endswith(b"\n"):
                line = file.readline(MAX_LINE_BYTES)
            yield number, None
        else:
            yield number, line
        number += 1
        line = file.readline(MAX_LINE_BYTES)


def _parse_line(
    line: bytes | None, number: int, rules: ReadingRules, suite: str | None = None
) -> ParsedEpisode | ReadProblem:
    """Parse a line, of a list with its comma; None is a line that was too long."""
    if line is None:
        return ReadProblem("its episode is longer than 64 MiB", number)
    try:
        value = rules.redact(parse_json(line.strip().removesuffix(b",")))
        return _build_parsed_episode(value, number)._replace(suite=suite)
    except MalformedError as error:
        if not line.endswith(b"\n"):
            return ReadProblem("its last line is cut off", number, cut=True)
        return ReadProblem(str(error), number)


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


def _find_importer(value: object, name: str) -> tuple[Importer, dict[str, Any]] | None:
    from ci_agent_eval.results.importers.registry import find_importer  # noqa: PLC0415 - see above

    return find_importer(value, name)


def _read_whole(
    first: bytes,
    file: LineFile,
    name: str,
    rules: ReadingRules,
    mapping: ResultMapping | None = None,
) -> Iterator[ReadItem]:
    data = first + file.read(MAX_LINE_BYTES + 1 - len(first))
    if len(data) > MAX_LINE_BYTES:
        yield ReadProblem(
            "it is larger than 64 MiB and not in the layout of one episode a line; split it, or "
            "write its episodes as .jsonl"
        )
        return
    problems: list[ReadProblem] = []
    try:
        value = rules.redact(_parse_document(data.removeprefix(_BOM), name, problems))
        found = _find_importer(value, name) if mapping is None else _apply_mapping(mapping, value)
        items = _find_items(value, name) if found is None else []
    except MalformedError as error:
        yield from (*problems, ReadProblem(str(error), error.line))
        return
    yield from problems
    if found is not None:
        yield from _import_episodes(*found, rules)
        return
    if isinstance(value, dict) and value.get("complete") is False:
        yield INCOMPLETE
    suite = value.get("suite") if isinstance(value, dict) else None
    for place, item in items:
        try:
            yield _build_parsed_episode(item)._replace(suite=suite)
        except MalformedError as error:
            yield ReadProblem(f"{place}{error}")


def _apply_mapping(mapping: ResultMapping, content: object) -> tuple[Importer, dict[str, Any]]:
    from ci_agent_eval.results.importers.mapped import build_mapped_importer  # noqa: PLC0415 - rarely needed

    return build_mapped_importer(mapping), {"content": content}


def _parse_document(data: bytes, name: str, problems: list[ReadProblem]) -> Any:
    """Parse JSON, JSON lines of another tool, or CSV; add the problems of single lines.

    Raises MalformedError.
    """
    suffix = name.lower()
    if not suffix.endswith((*_LINES_SUFFIXES, _TABLE_SUFFIX)):
        return parse_json(data)
    is_table = suffix.endswith(_TABLE_SUFFIX)
    items = list(parse_csv(data) if is_table else parse_json_lines(data))
    problems += [item for item in items if isinstance(item, ReadProblem)]
    return [item for item in items if not isinstance(item, ReadProblem)]


def _import_episodes(
    importer: Importer, document: dict[str, Any], rules: ReadingRules
) -> Iterator[ReadItem]:
    """Read the results of another tool; a file without any is a problem."""
    from ci_agent_eval.results.importers.score_verdicts import judge_scores  # noqa: PLC0415 - see above
    from ci_agent_eval.results.importers.values import ImportProblem  # noqa: PLC0415 - see above

    rules.files += 1
    items = importer.iterate_episodes(document)
    if importer.score_rule != "none":
        items = judge_scores(items, importer.score_rule, rules.thresholds, rules.score_names)
    number = -1
    for number, item in enumerate(items):
        if isinstance(item, ImportProblem):
            message = f"it is a file of {importer.tool} and {item.message}"
            yield ReadProblem(limit_length(message), kind=item.kind)
        elif isinstance(item, JUnitCase):
            yield item
        else:
            try:
                yield ParsedEpisode(_validate_model(Episode, item))
            except MalformedError as error:
                yield ReadProblem(f"it is a file of {importer.tool}; result {number}: {error}")
    if number < 0:
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
    from ci_agent_eval.results.importers.registry import TOOLS  # noqa: PLC0415 - see above

    raise MalformedError(
        "it holds no episodes: neither a list, nor a key 'episodes', nor a key 'scenario_id', "
        f"nor what {TOOLS} write; read other formats with --mapping"
    )


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
