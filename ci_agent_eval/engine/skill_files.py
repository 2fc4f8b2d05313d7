"""The tool by which an agent reads the files of its skill."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset

from ci_agent_eval.engine.skills import Skill

READ_TOOL = "read_skill_reference"

CAP_BYTES = 65_536
"""Size limit of a file for the model; the rest is cut with a note."""


def build_skill_toolset(skill: Skill) -> AbstractToolset[Any] | None:
    """Build the toolset with `read_skill_reference(name)`; None for a skill without files."""
    if not skill.files:
        return None

    async def read(name: str) -> str:
        return read_skill_file(skill, name)

    toolset: FunctionToolset[Any] = FunctionToolset()
    toolset.add_function(
        read,
        takes_ctx=False,
        name=READ_TOOL,
        description=(
            f"Reads a file of the skill {skill.name}, by its name as the skill lists it: "
            f"{', '.join(skill.files)}."
        ),
    )
    return toolset


def read_skill_file(skill: Skill, name: str) -> str:
    """Read one of the skill's files; `references/` may be omitted.

    Raises ModelRetry for any other name, and for a file outside of the folder.
    """
    wanted = str(PurePosixPath(name))
    listed = next((file for file in (wanted, f"references/{wanted}") if file in skill.files), None)
    if listed is None:
        raise ModelRetry(
            f"The skill {skill.name} has no file {name!r}. It has: {', '.join(skill.files)}."
        )
    path = skill.path / listed
    if not path.resolve().is_relative_to(skill.path.resolve()):
        raise ModelRetry(f"{listed} leads out of the skill's folder, and is not read.")
    try:
        with path.open("rb") as file:
            data = file.read(CAP_BYTES + 1)
            size = file.seek(0, 2)
    except OSError as error:
        raise ModelRetry(f"{listed} cannot be read now: {error.strerror}.") from error
    text = data[:CAP_BYTES].decode("utf-8", "replace")
    return text if size <= CAP_BYTES else f"{text}\n[cut: the first {CAP_BYTES} of {size} bytes]"
