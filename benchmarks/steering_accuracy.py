"""Count the errors of steering in labelled commands, for the section in README.md.

    python -m benchmarks.steering_accuracy LABELS [--wrong] [--tool TOOL] [--config FILE]

LABELS has a JSON object in each line: `command`; `shell` (bash, powershell or cmd); `source`, the
kind of text that the command is from; `repository`; `runner`, such as pytest; and `label`: `full`,
`targeted`, `nothing` (the runner runs no test) or `none` (no test runner is started). The commands
belong to other projects, so no such file is in this repository.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ci_agent_eval.steering.policy.command_extraction import detect_full_suite
from ci_agent_eval.steering.policy.detection import detect_in_text
from ci_agent_eval.steering.policy.model import Rules, Shell, ToolCallRequest
from ci_agent_eval.steering.settings_loader import parse_steering_settings

LABELS = ("full", "targeted", "nothing", "none")


@dataclass(frozen=True)
class LabelledCommand:
    """A command and its label."""

    command: str
    shell: Shell
    source: str
    repository: str
    runner: str
    label: str


@dataclass(frozen=True)
class Judgement:
    """A labelled command with the answer of the detection."""

    labelled: LabelledCommand
    is_held: bool

    @property
    def is_full(self) -> bool:
        return self.labelled.label == "full"

    @property
    def error(self) -> str | None:
        """Return "false positive", "false negative" or, for a right answer, None."""
        if self.is_held == self.is_full:
            return None
        return "false positive" if self.is_held else "false negative"


def read_labels(path: Path) -> list[LabelledCommand]:
    """Return the commands of a file; raise ValueError for an unknown label."""
    commands = []
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        command = LabelledCommand(**json.loads(line))
        if command.label not in LABELS:
            raise ValueError(f"{path}, line {number}: the label is none of {', '.join(LABELS)}")
        commands.append(command)
    return commands


def judge(labelled: LabelledCommand, tool: str | None, rules: Rules) -> Judgement:
    """Return the answer for a command in its shell or, with a tool, in a call of that tool."""
    if tool is None:
        answer = detect_in_text(labelled.command, shell=labelled.shell, rules=rules)
    else:
        call = ToolCallRequest(tool, {"command": labelled.command})
        answer = detect_full_suite(call, rules)
    return Judgement(labelled, answer.full_suite)


def render_counts(
    name: str, judgements: Sequence[Judgement], group_of: Callable[[LabelledCommand], str]
) -> Iterator[str]:
    """Render the counts of each group, and of all, as a table."""
    groups: dict[str, list[Judgement]] = {}
    for judgement in judgements:
        groups.setdefault(group_of(judgement.labelled), []).append(judgement)
    yield f"| {name} | commands | false positives | false negatives |"
    yield "|---|---:|---:|---:|"
    for group, members in [*sorted(groups.items()), ("all", judgements)]:
        full = sum(each.is_full for each in members)
        errors = [each.error for each in members]
        positives = f"{errors.count('false positive')} of {len(members) - full}"
        negatives = f"{errors.count('false negative')} of {full}"
        yield f"| {group} | {len(members)} | {positives} | {negatives} |"


def render_sources(commands: Sequence[LabelledCommand]) -> Iterator[str]:
    """Render how many commands of each label are from which kind of text."""
    yield f"| source | repositories | commands | {' | '.join(LABELS)} |"
    yield f"|---|{'---:|' * (2 + len(LABELS))}"
    for source in sorted({each.source for each in commands}):
        members = [each for each in commands if each.source == source]
        repositories = {each.repository for each in members}
        labels = [sum(each.label == label for each in members) for label in LABELS]
        counts = (len(repositories), len(members), *labels)
        yield f"| {source} | {' | '.join(map(str, counts))} |"


def parse_options() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("labels", type=Path, help="file of labelled commands, JSON lines")
    parser.add_argument("--wrong", action="store_true", help="print the wrong answers too")
    parser.add_argument("--tool", help="give each command to this tool, without its shell")
    parser.add_argument("--config", type=Path, help="steering settings; default: none")
    return parser.parse_args()


def main() -> None:
    """Print the counts and, with --wrong, the commands with a wrong answer."""
    options = parse_options()
    settings = options.config.read_text() if options.config else "session: {}"
    rules = parse_steering_settings(settings, str(options.config)).rules
    commands = read_labels(options.labels)
    judgements = [judge(each, options.tool, rules) for each in commands]
    print(*render_sources(commands), sep="\n")
    for name, group_of in (
        ("source", lambda each: each.source),
        ("shell", lambda each: each.shell),
        ("runner", lambda each: each.runner),
    ):
        print("", *render_counts(name, judgements, group_of), sep="\n")
    for each in judgements if options.wrong else ():
        if each.error:
            print(f"\n{each.error} ({each.labelled.label}):\n{each.labelled.command}")


if __name__ == "__main__":
    main()
