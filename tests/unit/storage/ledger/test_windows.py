from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.storage.ledger.file import LedgerFile
from ci_agent_eval.storage.ledger.rate_windows import WindowEntry, compute_wait_s
from ci_agent_eval.storage.ledger.sqlite_stores import SharedRateWindows

HAMMER = Path(__file__).with_name("hammer.py")


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def processes(tmp_path):
    """Make the windows of several processes, which share a clock of the test's own."""
    clock, files = Clock(), []

    def make(requests=None, tokens=None, provider="p"):
        files.append(LedgerFile(tmp_path))
        windows = SharedRateWindows(files[-1], provider, clock)
        windows.lower_limits(requests, tokens)
        return windows

    make.clock = clock
    yield make
    for file in files:
        file.close()


def test_what_one_process_takes_the_other_waits_for(processes):
    one, other = processes(2), processes(2)
    assert isinstance(one.take(0), WindowEntry)
    processes.clock.now += 10
    assert isinstance(other.take(0), WindowEntry)
    assert one.take(0) == 50
    # It stands behind the one that waits already.
    assert other.take(0) == 60
    processes.clock.now += 50
    assert other.take(0) == 10
    assert isinstance(one.take(0), WindowEntry)


def test_who_gives_up_leaves_no_place_behind(processes):
    one, other = processes(1), processes(1)
    one.take(0)
    assert one.take(0) == 60
    one.cancel_wait()
    assert other.take(0) == 60


def test_the_place_of_a_process_that_died_is_passed_with_time(processes):
    one, other = processes(1), processes(1)
    one.take(0)
    assert one.take(0) == 60
    processes.clock.now += 119
    assert other.take(0) == 1
    processes.clock.now += 1
    assert isinstance(other.take(0), WindowEntry)


def test_who_wakes_late_finds_what_was_taken_meanwhile(processes):
    one, late, other = processes(1), processes(1), processes(1)
    one.take(0)
    assert late.take(0) == 60
    assert other.take(0) == 120
    processes.clock.now += 125
    assert isinstance(other.take(0), WindowEntry)
    processes.clock.now += 1
    assert late.take(0) == 59
    processes.clock.now += 59
    assert isinstance(late.take(0), WindowEntry)


def test_tokens_are_those_that_answers_really_used(processes):
    one, other = processes(tokens=100), processes(tokens=100)
    entry = one.take(90)
    assert other.take(50) == 60
    entry.amount = 10
    one.correct(entry)
    taken = other.take(50)
    assert isinstance(taken, WindowEntry)
    taken.amount = 95
    other.correct(taken)
    assert one.take(1) == 60


def test_a_pause_of_one_process_holds_all_of_them(processes):
    for requests in (None, 100):
        one, other = processes(requests), processes(requests)
        one.pause(30)
        one.pause(20)
        assert other.take(0) == 30
        processes.clock.now += 30
        assert isinstance(other.take(0), WindowEntry)


def test_the_tightest_limit_that_any_process_knows_holds_for_all(processes):
    loose, free, tight = processes(10, 500), processes(), processes(2)
    for windows in (loose, free):
        assert isinstance(windows.take(100), WindowEntry)
    assert [windows.take(0) for windows in (loose, free, tight)] == [60, 60, 120]
    assert free.counts_tokens


def test_providers_do_not_wait_for_each_other(processes):
    one, other = processes(1, provider="one"), processes(1, provider="other")
    assert isinstance(one.take(0), WindowEntry)
    assert isinstance(other.take(0), WindowEntry)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40), st.integers(1, 60)), max_size=60))
def test_no_minute_holds_more_than_the_limits(tmp_path_factory, steps):
    clock, file = Clock(), LedgerFile(tmp_path_factory.mktemp("ledger"))
    processes = [SharedRateWindows(file, "p", clock) for _ in range(3)]
    for windows in processes:
        windows.lower_limits(3, 100)
    taken = []
    wants = {}
    for number, pause, amount in steps:
        clock.now += pause
        # Who waits asks for the same again.
        asked = wants.setdefault(number, amount)
        entry = processes[number].take(asked)
        if isinstance(entry, WindowEntry):
            taken.append(entry)
            del wants[number]
    file.close()
    for entry in taken:
        minute = [other for other in taken if entry.at - 60 < other.at <= entry.at]
        assert len(minute) <= 3
        assert sum(other.amount for other in minute) <= 100


def test_what_is_beyond_the_limit_waits_for_an_empty_window():
    assert compute_wait_s([], 100, 60, 5, 500) == 0
    assert compute_wait_s([WindowEntry(0, 1), WindowEntry(4, 1)], 100, 60, 5, 500) == 59


ENTRIES = 16


def start(folder, *, requests=0, tokens=0, entries=ENTRIES, die=False):
    arguments = [str(folder), "0.25", str(entries), str(requests), str(tokens)]
    return subprocess.Popen(
        [sys.executable, HAMMER, *arguments, *(["die"] if die else [])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def hammered(processes):
    """Let them go all at once; return what each has taken, as (time, tokens)."""
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    lines = [process.communicate()[0].splitlines() for process in processes]
    return [[tuple(map(float, line.split())) for line in one if line != "holds"] for one in lines]


def most(taken, span=0.25):
    return max(sum(1 for at, _ in taken if end - span < at <= end) for end, _ in taken)


def test_processes_that_hammer_one_provider_keep_its_limit_together(tmp_path):
    processes = [start(tmp_path, requests=12) for _ in range(3)]
    parts = hammered(processes)
    assert [process.returncode for process in processes] == [0, 0, 0]
    taken = [entry for part in parts for entry in part]
    assert most(taken) <= 12
    assert len(taken) == 3 * ENTRIES


def test_a_process_that_is_killed_in_the_midst_of_writing_holds_nobody(tmp_path):
    processes = [start(tmp_path, requests=12, die=number == 0) for number in range(3)]
    parts = hammered(processes)
    assert [process.returncode for process in processes] == [-9, 0, 0]
    # What it had begun is undone, so that its five requests count.
    assert len(parts[0]) == 5
    taken = [entry for part in parts for entry in part]
    assert most(taken) <= 12
    file = LedgerFile(tmp_path)
    SharedRateWindows(file, "provider", time.monotonic).lower_limits(1, None)
    file.close()


def test_processes_keep_tokens_together_as_they_turn_out(tmp_path):
    processes = [start(tmp_path, tokens=60) for _ in range(3)]
    taken = sorted(entry for part in hammered(processes) for entry in part)
    # An answer that used more than was guessed may be over by that: five at a time.
    for end, _ in taken:
        assert sum(tokens for at, tokens in taken if end - 0.25 < at <= end) <= 60 + 3 * 5
    assert len(taken) == 3 * ENTRIES
