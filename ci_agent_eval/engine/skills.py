"""Skills in the open Agent Skills format: a folder with SKILL.md, references and scripts.

The format, its fields and their limits: https://agentskills.io/specification
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import MappingProxyType

import yaml

from ci_agent_eval.errors import InputError

SKILL_FILE = "SKILL.md"
FOLDERS = ("references", "scripts", "assets")
"""Folders of files that the agent may read on demand."""

MAX_NAME, MAX_DESCRIPTION, MAX_COMPATIBILITY = 64, 1_024, 500
"""Maximum characters, by the specification."""

MAX_FILE_BYTES = 1_048_576
"""Size limit of a SKILL.md, which is part of every request."""

FIELDS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")

_FENCE = "---"
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


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
        text = _read_skill_file(file)
        front, body = split_front_matter(text, str(file))
        fields = parse_front_matter(front, str(file), known=(*FIELDS, *extra_fields))
        return _build_skill(fields, body, folder, str(file))

    @property
    def content(self) -> str:
        """The instructions before the system prompt: the body and a list of the files."""
        if not self.files:
            return self.body
        listed = "\n".join(f"- {name}" for name in self.files)
        return f"{self.body}\n\nFiles of this skill, for read_skill_reference:\n{listed}"


@dataclass(frozen=True, slots=True)
class SkillField:
    """A field of the front matter and its line."""

    value: str | Mapping[str, str]
    line: int


def split_front_matter(text: str, file: str) -> tuple[str, str]:
    """Return the YAML between the two `---` lines, and the text after them.

    Raises InputError, which names `file` and the line.
    """
    lines = text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}").splitlines()
    if not lines or lines[0].rstrip() != _FENCE:
        raise _build_error(file, 1, "must begin with front matter: a line of three dashes")
    for number, line in enumerate(lines[1:], start=1):
        if line.rstrip() == _FENCE:
            return "\n".join(lines[1:number]), "\n".join(lines[number + 1 :]).strip()
    raise _build_error(file, 1, "opens front matter that no second line of three dashes closes")


def parse_front_matter(yaml_text: str, file: str, known: Collection[str]) -> dict[str, SkillField]:
    """Parse the fields of a front matter. Raises InputError with file and line."""
    try:
        root = yaml.compose(yaml_text, Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 2 if mark is not None else 1
        problem = getattr(error, "problem", None) or "cannot be read"
        raise _build_error(file, line, f"is not YAML: {problem}") from error
    except RecursionError as error:
        raise _build_error(file, 1, "has front matter that is nested too deeply") from error
    if not isinstance(root, yaml.MappingNode):
        raise _build_error(file, 1, "must have front matter of the form `name: value`")
    fields: dict[str, SkillField] = {}
    for name, node, line in _iterate_entries(root, file):
        if name in fields:
            raise _build_error(file, line, f"says {name!r} a second time")
        if name not in known:
            raise _build_error(
                file, line, f"has the unknown field {name!r}; the format has {', '.join(FIELDS)}"
            )
        fields[name] = SkillField(_parse_value(name, node, line, file), line)
    return fields


def _iterate_entries(mapping: yaml.MappingNode, file: str) -> Iterator[tuple[str, yaml.Node, int]]:
    for key, value in mapping.value:
        line = key.start_mark.line + 2  # marks count from 0, and the first fence is line 1
        if not isinstance(key, yaml.ScalarNode):
            raise _build_error(file, line, "has a field whose name is not a text")
        yield key.value, value, line


def _parse_value(name: str, node: yaml.Node, line: int, file: str) -> str | Mapping[str, str]:
    if isinstance(node, yaml.ScalarNode) and name != "metadata":
        return str(node.value)
    if isinstance(node, yaml.MappingNode) and name == "metadata":
        return {
            key: _parse_text(value, at, file) for key, value, at in _iterate_entries(node, file)
        }
    if name in FIELDS:
        kind = "a mapping of names to texts" if name == "metadata" else "a text"
        raise _build_error(file, line, f"has {name!r}, which must be {kind}")
    return ""


def _parse_text(node: yaml.Node, line: int, file: str) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise _build_error(file, line, "has metadata whose value is not a text")
    return str(node.value)


def _build_skill(fields: Mapping[str, SkillField], body: str, folder: Path, file: str) -> Skill:
    name = _parse_name(fields, folder, file)
    description = _get_required(fields, "description", file)
    _check_length(fields, "description", MAX_DESCRIPTION, file)
    _check_length(fields, "compatibility", MAX_COMPATIBILITY, file)
    metadata = fields["metadata"].value if "metadata" in fields else {}
    return Skill(
        name=name,
        description=description,
        body=body,
        path=folder,
        license=_get_optional(fields, "license"),
        compatibility=_get_optional(fields, "compatibility"),
        allowed_tools=tuple((_get_optional(fields, "allowed-tools") or "").split()),
        metadata=MappingProxyType(dict(metadata) if isinstance(metadata, Mapping) else {}),
        files=tuple(_list_files(folder)),
    )


def _parse_name(fields: Mapping[str, SkillField], folder: Path, file: str) -> str:
    name = _get_required(fields, "name", file)
    line = fields["name"].line
    if len(name) > MAX_NAME or _NAME.fullmatch(name) is None:
        raise _build_error(
            file,
            line,
            f"has the name {name!r}; it must be at most {MAX_NAME} lower-case letters, digits and "
            "single hyphens between them",
        )
    if name != folder.resolve().name:
        raise _build_error(
            file, line, f"has the name {name!r}, but its folder is {folder.resolve().name!r}"
        )
    return name


def _get_required(fields: Mapping[str, SkillField], name: str, file: str) -> str:
    if name not in fields:
        raise _build_error(file, 1, f"has no {name!r} in its front matter")
    value = _get_optional(fields, name)
    if not value or not value.strip():
        raise _build_error(file, fields[name].line, f"has an empty {name!r}")
    return value


def _get_optional(fields: Mapping[str, SkillField], name: str) -> str | None:
    value = fields[name].value if name in fields else None
    return value if isinstance(value, str) else None


def _check_length(fields: Mapping[str, SkillField], name: str, limit: int, file: str) -> None:
    size = len(_get_optional(fields, name) or "")
    if size > limit:
        raise _build_error(
            file,
            fields[name].line,
            f"has a {name!r} of {size} characters; the format allows {limit}",
        )


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
