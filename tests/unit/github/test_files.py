from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.github.runner_files import (
    OUTPUT_BYTES,
    SUMMARY_BYTES,
    append_outputs,
    append_step_summary,
)
from tests.tables import each_row


def words() -> Iterator[str]:
    return (f"w{number}" for number in count())


def runner_reads(text: str) -> dict[str, str]:
    """Read $GITHUB_OUTPUT as the runner does (FileCommandManager.cs): one pair at a time."""
    found: dict[str, str] = {}
    lines = iter(text.split("\n"))
    for line in lines:
        if not line:
            continue
        equals, heredoc = line.find("="), line.find("<<")
        if equals >= 0 and (heredoc < 0 or equals < heredoc):
            name, _, value = line.partition("=")
            found[name] = value
            continue
        name, _, delimiter = line.partition("<<")
        collected = []
        for inner in lines:
            if inner == delimiter:
                break
            collected.append(inner)
        else:
            raise AssertionError(f"no end {delimiter!r}")
        found[name] = "\n".join(collected)
    return found


@each_row("text", ["x" * (SUMMARY_BYTES - 2), "é" * (SUMMARY_BYTES // 2)])
def test_a_step_summary_over_the_limit_gives_way_to_its_headline(tmp_path: Path, text: str):
    file = tmp_path / "summary.md"

    part = append_step_summary(file, text, short="### failed")

    assert file.read_text(encoding="utf-8") == "\n### failed\n\n"
    assert part.status == "skipped"
    assert "shortened to its headline" in part.sentence


def test_a_full_step_summary_is_left_as_it_is(tmp_path: Path):
    file = tmp_path / "summary.md"
    file.write_bytes(b"x" * (SUMMARY_BYTES - 5))

    part = append_step_summary(file, "whole", short="short")

    assert file.stat().st_size == SUMMARY_BYTES - 5
    assert "left out" in part.sentence


def test_files_that_cannot_be_written_are_failures_that_name_them(tmp_path: Path):
    summary = append_step_summary(tmp_path, "whole", short="short")
    outputs = append_outputs(tmp_path, {"a": "b"}, "w".__str__)

    assert (summary.status, outputs.status) == ("failed", "failed")
    assert str(tmp_path) in summary.sentence
    assert str(tmp_path) in outputs.sentence


def test_outputs_over_the_limit_are_not_set(tmp_path: Path):
    part = append_outputs(tmp_path / "out", {"a": "x" * OUTPUT_BYTES}, "w".__str__)

    assert part.status == "failed"
    assert not (tmp_path / "out").exists()


def test_a_delimiter_that_stands_in_the_value_is_not_used(tmp_path: Path):
    file = tmp_path / "out"
    source = words()

    append_outputs(file, {"a": "x\nend_w0\nconclusion=success"}, lambda: next(source))

    assert runner_reads(file.read_text(encoding="utf-8")) == {"a": "x\nend_w0\nconclusion=success"}


@each_row("name", ["", "a b", "a=b", "a\nb", "1a", "é"])
def test_a_name_github_does_not_take_is_refused(tmp_path: Path, name: str):
    with pytest.raises(ValueError, match="not a name for an output"):
        append_outputs(tmp_path / "out", {name: "x"}, "w".__str__)


values = st.text(st.characters(codec="utf-8")).map(lambda text: text.replace("\r", "\n"))


@given(st.dictionaries(st.from_regex(r"\A[a-z_][a-z0-9_-]*\Z"), values))
def test_the_runner_reads_back_every_output(tmp_path_factory, outputs: dict[str, str]):
    file = tmp_path_factory.mktemp("out") / "out"
    source = words()

    append_outputs(file, outputs, lambda: next(source))

    text = file.read_bytes().decode("utf-8")
    assert runner_reads(text) == outputs
