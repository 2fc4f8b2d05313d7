"""Stored results for `agent-eval judge`, and the head of a file of checks with a scripted judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ci_agent_eval.contract.canonical import canonical_json, render_results
from ci_agent_eval.contract.episode import Episode
from tests.builders import episode, talk, turn

HEAD = """
from ci_agent_eval.checks import RequiredText, Rubric
from tests.scripted_judges import build_judge, grade, judge_in_turn

def by_word(sections):
    return grade("Monday" in sections["Output"], 0.8 if "Monday" in sections["Output"] else 0.4)

JUDGE = build_judge(by_word)
"""


def said(scenario: str, reply: str, **overrides: Any) -> Episode:
    """An episode of one turn with this reply."""
    trajectory = talk("When?", turn(reply)).trajectory
    return episode(scenario, trajectory=trajectory, nodeid=f"t.py::{scenario}", **overrides)


def store(folder: Path, *episodes: Episode) -> Path:
    """Write the results of episodes into a folder."""
    folder.mkdir(exist_ok=True)
    lines = map(canonical_json, sorted(episodes, key=lambda one: one.key))
    (folder / "results.json").write_text("".join(render_results("default", lines)))
    return folder
