"""`make bench`, fourth part: measure how fast steering decides, and write STEERING.md.

The commands are those of tests/unit/steering/policy/cases, each of a different shape; no answer
is kept between rounds, and imports and a warm-up are not counted. All on one core. The section
"Accuracy" stays as it is: steering_accuracy.py prints its counts from a file of labelled commands.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Iterator
from time import perf_counter, process_time

from measure import ROOT, machine

sys.path.insert(0, str(ROOT))

from ci_agent_eval.steering.policy.detection import MAX_TEXT_CHARACTERS, detect_in_text
from ci_agent_eval.steering.policy.model import Shell
from tests.unit.steering.policy.test_cases import cases

ROUNDS = 9
TARGET = 5_000
"""Decisions a second."""
MOST_SECONDS = 0.2
"""For a command of 1 MB, whatever is in it."""
MEGABYTE = 1_000_000
PAGE = ROOT / "benchmarks/STEERING.md"

Command = tuple[str, Shell]


def commands() -> list[Command]:
    """Return the commands of the cases, with their shells."""
    return [(case.command, case.shell) for case in cases()]


def rate(texts: list[Command]) -> float:
    """Return decisions a second: the median of some rounds, by the processor's time."""
    rounds = []
    for _ in range(ROUNDS + 1):
        started = process_time()
        for text, shell in texts:
            detect_in_text(text, shell=shell)
        rounds.append(len(texts) / (process_time() - started))
    return statistics.median(rounds[1:])


def rate_rows() -> Iterator[str]:
    """Render a row for all cases, for each shell, and for a few kinds of command."""
    every = commands()
    groups: dict[str, list[Command]] = {"all cases": every}
    for shell in ("bash", "powershell", "cmd"):
        groups[f"cases of {shell}"] = [each for each in every if each[1] == shell]
    groups["`ls -la src && git status`"] = [("ls -la src && git status", "bash")] * 500
    groups["`pytest -q`"] = [("pytest -q", "bash")] * 500
    chain = "cd app && A=1 timeout 60 uv run pytest -xq tests/test_a.py 2>&1 | tail -5 || true"
    groups[f"`{chain.replace('|', chr(92) + '|')}`"] = [(chain, "bash")] * 500
    for name, texts in groups.items():
        figure = rate(texts)
        assert name != "all cases" or figure >= TARGET, f"{figure:.0f} decisions a second"
        remark = f"target at least {TARGET:,}" if name == "all cases" else ""
        yield f"| {name} | {len(set(texts)):,} | {figure:,.0f} | {1e6 / figure:.0f} µs | {remark} |"


def texts_of(size: int) -> dict[str, str]:
    """Return long commands: what agents send, and what is made to be slow."""
    line = "x = compute(1, 'two', [3])  # a line of a file\n"
    units = {"`)`": ")", "`A=(`": "A=(", "`a\\|`": "a|", '`"$(`': '"$(', "`X=$X$X;`": "X=$X$X;"}
    written = line * (size // len(line) - 2)
    return {
        "a here-document, then `pytest`": f"cat > a.py <<'EOF'\n{written}EOF\npytest",
        "`pytest tests/a.py;` again and again": "pytest tests/a.py;" * (size // 18),
        **{
            f"hostile: {name} again and again": "pytest;" + unit * (size // len(unit))
            for name, unit in units.items()
        },
    }


def seconds(text: str) -> float:
    """Return the longest of a few decisions."""
    longest = 0.0
    for _ in range(3):
        started = perf_counter()
        detect_in_text(text)
        longest = max(longest, perf_counter() - started)
    return longest


def size_rows() -> Iterator[str]:
    """Render a row for each long command."""
    for size in (MAX_TEXT_CHARACTERS - 100, MEGABYTE):
        for name, text in texts_of(size).items():
            figure = seconds(text)
            assert size < MEGABYTE or figure < MOST_SECONDS, f"{name}: {figure:.2f} s"
            answer = detect_in_text(text)
            said = "full run" if answer.full_suite else "let through"
            yield f"| {name} | {len(text) / 1000:,.0f} kB | {figure * 1000:.1f} ms | {said} |"


def import_seconds() -> float:
    """Return what importing the detection and reading a first command adds to Python's start."""
    code = (
        "from ci_agent_eval.steering.policy.detection import detect_in_text\n"
        "detect_in_text('cd x && pytest')"
    )
    return _process(code) - _process("")


def _process(code: str) -> float:
    times = []
    for _ in range(ROUNDS):
        started = perf_counter()
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
        times.append(perf_counter() - started)
    return statistics.median(times)


def accuracy_section() -> str:
    """Return the section "Accuracy" of the present page, the last one."""
    return PAGE.read_text().partition("\n## Accuracy\n")[2]


def page() -> str:
    """Render the page that records the figures."""
    return "\n".join(
        [
            "# Benchmark results: steering",
            "",
            f"Measured by `make bench` on: {machine()}.",
            f"One core; medians of {ROUNDS} rounds by the processor's time, imports and a warm-up",
            "not counted; nothing is kept between decisions.",
            f"Importing it and reading a first command adds {import_seconds() * 1000:.0f} ms to",
            "Python's start.",
            "",
            "## Decisions",
            "",
            "| commands | different ones | decisions a second | each | remark |",
            "|---|---:|---:|---:|---|",
            *rate_rows(),
            "",
            "## Long commands",
            "",
            f"A text with more than {MAX_TEXT_CHARACTERS:,} characters beside its here-documents",
            "is let through unread, and so is a text that the grammar takes long for. Target: 1 MB",
            f"under {MOST_SECONDS:g} s. The longest of three.",
            "",
            "| command | size | time | answer |",
            "|---|---:|---:|---|",
            *size_rows(),
            "",
            "## Accuracy",
            accuracy_section(),
        ]
    )


def main() -> None:
    """Measure, print and record."""
    text = page()
    print(text)
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
