"""Create a workflow and a first episode test in a user's repository."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from ci_agent_eval.errors import InputError

# Template -> where it goes, relative to the repository's root.
FILES: dict[str, str] = {
    "agent-eval.yml": ".github/workflows/agent-eval.yml",
    "test_first_episode.py": "tests/episodes/test_first_episode.py",
}


INSTALL_MARK = "            pip install -r requirements.txt\n"
"""The line of the workflow that depends on the repository's way of installing."""


def write_first_files(root: Path) -> tuple[str, ...]:
    """Write the files and return their paths; if any file exists, write nothing.

    Raises InputError for an existing file, or outside of a repository's root.
    """
    if not (root / ".git").exists():
        raise InputError(f"{root}: is no root of a git repository; go there and call it again")
    for target in FILES.values():
        if (root / target).exists():
            raise InputError(f"{target}: exists already and was left as it is; move it away first")
    for template, target in FILES.items():
        text = (
            resources.files("ci_agent_eval.app").joinpath("templates", template).read_text("utf-8")
        )
        (root / target).parent.mkdir(parents=True, exist_ok=True)
        (root / target).write_text(_adapt_workflow(text, root), encoding="utf-8")
    return tuple(FILES.values())


def _adapt_workflow(text: str, root: Path) -> str:
    """Adapt the workflow's install command: requirements, the project itself, or nothing."""
    if (root / "requirements.txt").exists():
        return text
    if (root / "pyproject.toml").exists():
        return text.replace(INSTALL_MARK, "            pip install .\n")
    return text.replace(f"          install: |\n{INSTALL_MARK}", "")
