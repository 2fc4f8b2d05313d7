"""Files read on several processors say what they say to one process, whatever stands in them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import BinaryIO

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ci_agent_eval.analysis.loaded_results import build_episode_record
from ci_agent_eval.contract.canonical import canonical_json, render_results
from ci_agent_eval.results import parallel_jsonl as module
from ci_agent_eval.results.episodes import ParsedEpisode, identify_episode, read_episodes
from ci_agent_eval.results.json_text import ReadProblem
from ci_agent_eval.results.parallel_jsonl import ParallelLineReader, ParsedLine
from ci_agent_eval.results.samples import SampleCollector
from ci_agent_eval.results.spool import EpisodeSpool
from tests.builders import episode, failing, journal_line

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="forks on Linux only"),
    pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning"),
]

SMALL = 400
"""Bytes of a piece: about two of the episodes here."""


def as_line(
    item: ParsedEpisode | ParsedLine | ReadProblem,
) -> ParsedLine | ReadProblem:
    """Return what is known of an episode, however it was read."""
    if isinstance(item, ParsedEpisode):
        return ParsedLine(identify_episode(item), build_episode_record(item.episode), None)
    return item._replace(position=None) if isinstance(item, ParsedLine) else item


def by_one(path: Path) -> list[ParsedLine | ReadProblem]:
    with path.open("rb") as file:
        return [as_line(item) for item in read_episodes(file, path.name)]


def by_several(path: Path, processes: int = 2) -> tuple[list[ParsedLine | ReadProblem], int]:
    """Read in small pieces; also return how many episodes were read ahead."""
    with path.open("rb") as file:
        ahead = ParallelLineReader(file, None, processes, piece=SMALL)
        found = list(read_episodes(file, path.name, ahead))
    return [as_line(item) for item in found], sum(isinstance(item, ParsedLine) for item in found)


def results(*lines: str) -> str:
    return "".join(render_results("suite", lines))


EPISODES = [
    canonical_json(failing(f"s{n}", iteration=n) if n % 3 else episode(f"s{n}", iteration=n))
    for n in range(1, 25)
]
JOURNAL = "".join(
    journal_line(episode(f"s{n}"), event) for n in range(12) for event in ("started", "ended")
)


@pytest.mark.parametrize("processes", [2, 3, 7])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("results.json", results(*EPISODES)),
        ("gw0.jsonl", "\n\n".join([*EPISODES, ""])),
        ("gw1.jsonl", JOURNAL),
    ],
)
def test_several_processes_read_what_one_does(tmp_path: Path, name, text, processes):
    path = tmp_path / name
    path.write_text(text)
    found, ahead = by_several(path, processes)
    assert found == by_one(path)
    assert ahead > len(found) / 2


ODD = ["", "]}", "{", "null", "\r", '{"scenario_id": 1}', '{"scenario_id": "again"}', "]}\r", "[]"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    odd=st.lists(st.tuples(st.integers(0, 24), st.sampled_from(ODD)), max_size=3),
    is_list=st.booleans(),
    cut=st.integers(0, 300),
    more=st.sampled_from(["", "\n", "more\n"]),
)
@example(odd=[(3, '{"scenario_id": "again"}')] * 2, is_list=False, cut=0, more="")
@example(odd=[(3, "]}")], is_list=True, cut=0, more="")
@example(odd=[(3, "{"), (20, "{")], is_list=True, cut=0, more="")
def test_lines_that_are_odd_are_told_as_by_one_process(tmp_path: Path, odd, is_list, cut, more):
    lines = list(EPISODES)
    for place, line in odd:
        lines.insert(place, line)
    text = results(*lines) if is_list else "\n".join([*lines, ""])
    path = tmp_path / ("results.json" if is_list else "a.jsonl")
    path.write_text(text[: len(text) - cut] + more)
    assert by_several(path)[0] == by_one(path)


def test_a_problem_is_told_with_its_line(tmp_path: Path):
    path = tmp_path / "results.json"
    path.write_text(results(*EPISODES[:10], "{", *EPISODES[10:]))
    found, ahead = by_several(path)
    assert [item.line for item in found if isinstance(item, ReadProblem)] == [12]
    assert ahead


def test_a_short_file_is_read_here(tmp_path: Path):
    path = tmp_path / "results.json"
    path.write_text(results(EPISODES[0]))
    assert by_several(path) == (by_one(path), 0)


def test_what_only_one_process_can_keep_is_read_here(tmp_path: Path):
    path = tmp_path / "results.json"
    path.write_text(results(*EPISODES))
    with path.open("rb") as file:
        ahead = ParallelLineReader(file, SampleCollector(), 2, piece=SMALL)
        assert not any(
            isinstance(item, ParsedLine) for item in read_episodes(file, "a.jsonl", ahead)
        )


def spooled(file: BinaryIO, spool: EpisodeSpool, name: str) -> None:
    for item in read_episodes(file, name, ParallelLineReader(file, spool, 2, piece=SMALL)):
        if isinstance(item, ParsedEpisode):
            spool.keep(item.episode.key, spool.put(item.episode))
        elif isinstance(item, ParsedLine) and item.position is not None:
            spool.keep(item.head.key, item.position)


def killing_its_process(read, parent: int):
    """Read a piece, and go after one: what another process has written is then written anew."""

    def work(*args, **options):
        done = read(*args, **options)
        if os.getpid() != parent:
            os._exit(9)
        return done

    return work


@pytest.mark.parametrize("killed", [False, True])
def test_a_spool_has_the_lines_of_all_processes(tmp_path: Path, monkeypatch, killed):
    if killed:
        monkeypatch.setattr(
            module, "_read_piece", killing_its_process(module._read_piece, os.getpid())
        )
    texts = {"a.json": EPISODES[:12], "b.json": EPISODES[12:]}
    with EpisodeSpool() as spool:
        for name, lines in texts.items():
            (tmp_path / name).write_text(results(*lines))
            with (tmp_path / name).open("rb") as file:
                spooled(file, spool, name)
        assert sorted(spool.iterate_lines()) == sorted(EPISODES)
        assert sorted(spool.iterate_lines()) == sorted(EPISODES)


def test_secrets_are_gone_whoever_wrote_a_line(tmp_path: Path):
    path = tmp_path / "results.json"
    path.write_text(results(*EPISODES))
    with EpisodeSpool(lambda text: text.replace("refund", "***")) as spool, path.open("rb") as file:
        spooled(file, spool, path.name)
        clean = list(spool.iterate_lines())
    assert len(clean) == len(EPISODES)
    assert not any("refund" in line for line in clean)
