"""The steps, the judge and the named checks of a scenario, built from its entry."""

from __future__ import annotations

import mimetypes
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

import ci_agent_eval.checks as own_checks
from ci_agent_eval.authoring.simulation.judge import ConversationJudge
from ci_agent_eval.authoring.simulation.message_files import AttachedBytes, MessageFile
from ci_agent_eval.authoring.simulation.script_steps import (
    AgentStep,
    CheckedPart,
    CheckStep,
    JudgeStep,
    MessageStep,
    ProceedStep,
    Step,
    ToolResultStep,
    UserStep,
    needs_user,
    parse_steps,
)
from ci_agent_eval.checks import Check, ScoringDimension, as_check
from ci_agent_eval.config.entry_points import (
    CHECKS,
    EXTENSION_ERRORS,
    list_extensions,
    load_extension,
)
from ci_agent_eval.contract.base import describe_unknown_key
from ci_agent_eval.contract.jsonable import describe_error
from ci_agent_eval.contract.scenario import ScenarioEntry
from ci_agent_eval.errors import InputError

ReadFile: TypeAlias = Callable[[str], bytes]
BuildFile: TypeAlias = Callable[[object], MessageFile]
Path: TypeAlias = tuple[str | int, ...]

# Python's own table: the operating system's differs between machines.
_MEDIA_TYPES = mimetypes.MimeTypes(filenames=())
_MEDIA_TYPES.add_type("image/webp", ".webp")


class PartProblem(Exception):  # noqa: N818 - internal, converted to InputError
    """A problem of a scenario at a path of keys and indices."""

    def __init__(self, path: Path, message: str) -> None:
        super().__init__(message)
        self.path = path


class ScenarioParts(NamedTuple):
    """The parts of a scenario that are built from data."""

    steps: tuple[Step, ...] | None = None
    judge: ConversationJudge | None = None
    expect: tuple[Check, ...] = ()

    @property
    def has_checks(self) -> bool:
        """Whether steps or judge have checks."""
        return self.judge is not None or any(isinstance(s, CheckStep) for s in self.steps or ())


def build_parts(entry: ScenarioEntry, read: ReadFile) -> ScenarioParts:
    """Build the parts of a scenario; `read` returns the bytes of a file. Raises PartProblem."""
    judge = None
    if entry.judge is not None:
        success = _build_checks(entry.judge.success, ("judge", "success"))
        must_hold = _build_checks(entry.judge.must_hold, ("judge", "must_hold"))
        judge = _build_at(("judge",), lambda: ConversationJudge(success, must_hold))
    expect = _build_checks(entry.expect, ("expect",))
    if entry.steps is None:
        return ScenarioParts(None, judge, expect)
    found: list[Step] = []
    attached = AttachedBytes()

    def read_file(file: object) -> MessageFile:
        message_file = _read_attached(file, read)
        attached.add("files", [message_file])  # before the next one is read
        return message_file

    for number, step in enumerate(entry.steps):
        ((kind, value),) = step.items()
        found += _build_step(kind, value, ("steps", number), read_file)
    has_judge = judge is not None
    steps = _build_at(("steps",), lambda: parse_steps(found, has_judge=has_judge))
    if needs_user(steps) and not entry.has_user:
        raise PartProblem(("steps",), "its user has nothing to say; give script or model, too")
    return ScenarioParts(steps, judge, expect)


def _build_step(kind: str, value: Any, path: Path, read: BuildFile) -> Iterable[Step]:
    if kind in {"check", "expect"}:
        part: CheckedPart = "turn" if kind == "expect" else "conversation"
        given = value if isinstance(value, list) else [value]
        if not given:
            raise PartProblem((*path, kind), "has no checks; name one, or leave the step out")
        return [CheckStep(check, of=part) for check in _build_checks(given, (*path, kind))]
    return [_build_at((*path, kind), lambda: _build_plain_step(kind, value, read))]


def _build_plain_step(kind: str, value: Any, read: BuildFile) -> Step:
    match kind:
        case "user" if isinstance(value, Mapping):
            given = _get_known(value, ("text", "files"))
            files = given.get("files") or ()
            if not isinstance(files, list | tuple):
                raise InputError(f"files: must be a list of paths, got {files!r}")
            return UserStep(given.get("text"), [read(file) for file in files])
        case "user":
            return UserStep(value)
        case "proceed":
            return ProceedStep(value)
        case "message":
            return MessageStep(**_get_known(value, ("role", "text"), required=2))
        case "tool_result":
            return ToolResultStep(**_get_known(value, ("tool", "result", "arguments"), required=2))
    if value is not None:
        raise InputError("takes no value; write it alone")
    return AgentStep() if kind == "agent" else JudgeStep()


def _get_known(value: Any, known: tuple[str, ...], required: int = 0) -> dict[str, Any]:
    """Return a table of known keys, of which the first ones are required. Raises InputError."""
    if not isinstance(value, Mapping):
        raise InputError(f"must be a table with {', '.join(known)}")
    if unknown := [key for key in value if key not in known]:
        raise InputError(f"unknown key {unknown[0]!r}; it takes {', '.join(known)}")
    if missing := [key for key in known[:required] if key not in value]:
        raise InputError(f"{missing[0]} is required")
    return dict(value)


def _read_attached(file: object, read: ReadFile) -> MessageFile:
    if not isinstance(file, str):
        raise InputError(f"files: must be paths, got {file!r}")
    media_type, _ = _MEDIA_TYPES.guess_type(file)
    if media_type is None:
        raise InputError(f"{file}: its type is not known by its name; end it in .png, .pdf, …")
    return MessageFile(read(file), media_type, file)


def _build_checks(given: Iterable[Any], path: Path) -> tuple[Check, ...]:
    return tuple(
        _build_at((*path, number), lambda: build_check(check))  # noqa: B023 - called at once
        for number, check in enumerate(given)
    )


def _build_at(path: Path, build: Callable[[], Any]) -> Any:
    """Return what `build` returns; its InputErrors become problems at a path."""
    try:
        return build()
    except InputError as error:
        raise PartProblem(path, str(error)) from None


_NO_CHECKS = {"Check", "ScoringDimension", "as_check", "from_evaluator"}
NAMES = tuple(name for name in own_checks.__all__ if name not in _NO_CHECKS)
"""The checks of `ci_agent_eval.checks`."""


def build_check(given: object) -> Check:
    """Build a check from its name, or its name with arguments. Raises InputError.

    Arguments are a table of keywords; a single other value is the first argument. A name
    `module:Name` is imported.
    """
    name, arguments = _split_check(given)
    factory = _import_factory(name) if ":" in name else _find_factory(name)
    try:
        built = _call_factory(factory, arguments)
    except InputError:
        raise
    except EXTENSION_ERRORS as error:
        raise InputError(f"{name}: cannot be built ({describe_error(error)})") from None
    check = as_check(built)
    if check is None:
        raise InputError(
            f"{name}: made a {type(built).__name__}, which is not a Check or evaluator"
        )
    return check


def _split_check(given: object) -> tuple[str, Any]:
    if isinstance(given, str):
        return given, {}
    if not isinstance(given, Mapping) or len(given) != 1:
        raise InputError("must be a check's name, or one name with its arguments")
    ((name, arguments),) = given.items()
    return str(name), {} if arguments is None else arguments


def _find_factory(name: str) -> Any:
    if name in NAMES:
        return getattr(own_checks, name)
    extension = load_extension(CHECKS, name)
    if extension is None:
        known = (*NAMES, *list_extensions(CHECKS))
        raise InputError(f"{describe_unknown_key(name, known)}; write your own as `module:Name`")
    return extension.value


def _import_factory(name: str) -> Any:
    module, _, attribute = name.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except EXTENSION_ERRORS as error:
        raise InputError(f"{name}: cannot be imported ({describe_error(error)})") from None


def _call_factory(factory: Any, arguments: Any) -> object:
    if not isinstance(arguments, Mapping):
        return factory(arguments)
    keywords = dict(arguments)
    if factory is own_checks.DimensionRubric and isinstance(keywords.get("dimensions"), list):
        keywords["dimensions"] = [ScoringDimension(**one) for one in keywords["dimensions"]]
    return factory(**keywords)
