"""Skills in the open Agent Skills format: a folder with SKILL.md, references and scripts.

The format, its fields and their limits: https://agentskills.io/specification
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from ci_agent_eval.contract.base import get_plain_message
from ci_agent_eval.contract.located_value import LocatedProblem
from ci_agent_eval.contract.located_yaml import parse_located_yaml
from ci_agent_eval.errors import InputError

SKILL_FILE = "SKILL.md"
FOLDERS = ("references", "scripts", "assets")
"""Folders of files that the agent may read on demand."""

MAX_FILE_BYTES = 1_048_576
"""Size limit of a SKILL.md, which is part of every request."""

_FENCE = "---"
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def _check_name(name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise ValueError("must be lower-case letters and digits, with single hyphens between them")
    return name


class _FrontMatter(BaseModel):
    """The fields of a SKILL.md, with the limits of the specification."""

    model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True, str_strip_whitespace=True)

    name: Annotated[str, Field(max_length=64), AfterValidator(_check_name)]
    description: Annotated[str, Field(min_length=1, max_length=1_024)]
    license: str | None = None
    compatibility: Annotated[str | None, Field(max_length=500)] = None
    metadata: dict[str, str] = Field(default_factory=dict)
    allowed_tools: str = Field("", alias="allowed-tools")


@dataclass(frozen=True, slots=True)
class Skill:
    """Instructions for an agent, with files that it may read on demand."""

    name: str
    description: str
    body: str
    """SKILL.md without its front matter."""
    path: Path
    """The skill's folder."""
    license: str | None = None
    compatibility: str | None = None
    allowed_tools: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    files: tuple[str, ...] = ()
    """Paths of its files from the folder: `references/rates.md`."""

    @classmethod
    def from_path(cls, path: str | Path, *, extra_fields: Collection[str] = ()) -> Skill:
        """Read a skill's folder (or its SKILL.md).

        `extra_fields` are allowed front matter fields of other programs. Raises InputError,
        which names the file and the line.
        """
        folder = Path(path)
        folder = folder.parent if folder.name == SKILL_FILE else folder
        file = folder / SKILL_FILE
        front, body = _split_front_matter(_read_skill_file(file), file)
        fields = _parse_front_matter(front, file, extra_fields)
        if fields.name != folder.resolve().name:
            name = folder.resolve().name
            raise _build_error(file, 1, f"has the name {fields.name!r}, but its folder is {name!r}")
        return cls(
            name=fields.name,
            description=fields.description,
            body=body,
            path=folder,
            license=fields.license,
            compatibility=fields.compatibility,
            allowed_tools=tuple(fields.allowed_tools.split()),
            metadata=MappingProxyType(fields.metadata),
            files=tuple(_list_files(folder)),
        )

    @property
    def content(self) -> str:
        """The instructions before the system prompt: the body and a list of the files."""
        if not self.files:
            return self.body
        listed = "\n".join(f"- {name}" for name in self.files)
        return f"{self.body}\n\nFiles of this skill, for read_skill_reference:\n{listed}"


def _split_front_matter(text: str, file: Path) -> tuple[str, str]:
    """Return the YAML between the two `---` lines, and the text after them. Raises InputError."""
    lines = text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}").splitlines()
    if not lines or lines[0].rstrip() != _FENCE:
        raise _build_error(file, 1, "must begin with front matter: a line of three dashes")
    for number, line in enumerate(lines[1:], start=1):
        if line.rstrip() == _FENCE:
            return "\n".join(lines[1:number]), "\n".join(lines[number + 1 :]).strip()
    raise _build_error(file, 1, "opens front matter that no second line of three dashes closes")


def _parse_front_matter(text: str, file: Path, extra_fields: Collection[str]) -> _FrontMatter:
    """Parse the fields of a front matter. Raises InputError with file and line."""
    try:
        located = parse_located_yaml(f"\n{text}")  # after the first fence
    except LocatedProblem as problem:
        raise _build_error(file, problem.line, problem.message) from None
    if located is None or not isinstance(located.value, Mapping):
        raise _build_error(file, 1, "must have front matter of the form `name: value`")
    values = {k: v for k, v in located.to_plain().items() if k not in extra_fields}
    try:
        return _FrontMatter.model_validate(values)
    except ValidationError as error:
        first: Any = error.errors(include_url=False)[0]
        line, where = located.find(first["loc"]).line, ".".join(map(str, first["loc"]))
        raise _build_error(file, line, f"{where}: {get_plain_message(first)}") from None


def _read_skill_file(file: Path) -> str:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise InputError(
            f"{file}: cannot be read ({error.strerror}). A skill is a folder with a {SKILL_FILE}."
        ) from error
    if len(data) > MAX_FILE_BYTES:
        raise InputError(f"{file}: has {len(data)} bytes; move some of it to references/.")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise _build_error(file, data[: error.start].count(b"\n") + 1, "is not UTF-8") from error


def _list_files(folder: Path) -> Iterator[str]:
    """Yield the skill's files in a fixed order, without hidden files."""
    inside = folder.resolve()
    for path in sorted(path for name in FOLDERS for path in (folder / name).rglob("*")):
        relative = PurePosixPath(path.relative_to(folder).as_posix())
        if not path.is_file() or any(part.startswith((".", "__")) for part in relative.parts):
            continue
        if not path.resolve().is_relative_to(inside):
            raise InputError(f"{path}: leads out of the skill's folder; copy the file into it.")
        yield str(relative)


def _build_error(file: str | Path, line: int, problem: str) -> InputError:
    return InputError(f"{file}:{line}: {problem}.")
