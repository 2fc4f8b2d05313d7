"""What folders and files load to, case by case: episodes, tests, sources and findings."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ci_agent_eval.contract.results import CollectionError, Session, Shard
from ci_agent_eval.render.sentences import describe_finding
from ci_agent_eval.results.load import load_results
from tests.builders import (
    COST_STOP,
    episode,
    evaluated,
    failing,
    journal_line,
    junit_case,
    junit_case_of,
    junit_xml,
    write_run,
)

FAILED = '<failure message="no"/>'


class Run:
    """The folder of a run: its episodes, its JUnit cases, and what its session says."""

    def __init__(self, *episodes: Any, junit: Any = None, **session: Any) -> None:
        self.episodes, self.junit = episodes, junit
        self.options = {
            name: session.pop(name) for name in ("results", "journal") if name in session
        }
        self.session = {"state": "finished", "selected": len(episodes), **session}

    def write(self, folder: Path) -> None:
        junit = junit_xml(*self.junit) if isinstance(self.junit, list) else self.junit
        session = Session(**self.session)
        write_run(folder, *self.episodes, session=session, junit=junit, **self.options)


@dataclass
class Case:
    """Files, and the patterns by which they are loaded."""

    files: dict[str, Any]
    results: tuple[str, ...] = ("out",)
    junit: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()

    def load(self, root: Path) -> Any:
        for name, content in self.files.items():
            if isinstance(content, Run):
                content.write(root / name)
                continue
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, bytes):
                (root / name).write_bytes(content)
            else:
                (root / name).write_text(content, encoding="utf-8")
        return load_results(self.results, self.junit, root=root, runs=[*map(Path, self.runs)])


def case(run, *more, **others):
    return Case({"out": run, **others}, *more)


def of_junit(*cases, **attributes):
    return Case({"a.xml": junit_xml(*cases, **attributes)}, (), ("a.xml",))


def a_session(text):
    return Case({"out": Run(episode()), "out/session.json": text})


def shard(index, count, *episodes, run=None, attempt=1, **session):
    junit = [junit_case_of(e, FAILED if e.outcome == "failed" else "") for e in episodes]
    part = Shard(index=index, count=count, plan="p", empty=not episodes, run=run, attempt=attempt)
    fields = {"commit": "4f2a91c", "exit_status": 0 if episodes else 5, "deselected": 3, **session}
    return Run(*episodes, junit=junit, shard=part, **fields)


def shards(**runs):
    return Case({f"shards/{name[1:]}": run for name, run in runs.items()}, ("shards/*",))


def ended(*episodes, **fields):
    """A run of which pytest says that something failed."""
    return Run(*episodes, **{"exit_status": 1, **fields})


def stop(selected):
    early = episode("b", outcome="error", reason=f"stopped: {COST_STOP.sentence}")
    fields = {"stopped": COST_STOP.sentence, "suite_stop": COST_STOP, "selected": selected}
    return case(ended(A, early, **fields))


def unafforded(number):
    session = {"stopped": COST_STOP.sentence, "suite_stop": COST_STOP, "selected": 9}
    names = {"unafforded": ("refund", f"cancel {number}")}
    return shard(number, 2, episode(f"a{number}"), exit_status=1, **session, **names)


A, B, C = episode("a"), episode("b"), episode("c")
BAD, LOST = failing("bad"), episode("lost")
JUNIT_OF_THREE = junit_xml(*map(junit_case_of, (A, B, C)))
INTERRUPTED = episode("c", outcome="error", reason="interrupted")
KILLED = {
    "gw0.jsonl": [
        journal_line(INTERRUPTED.model_copy(update={"scenario_id": "a"}), "started"),
        journal_line(episode("a", nodeid=INTERRUPTED.nodeid)),
        journal_line(INTERRUPTED, "started"),
    ],
    "gw1.jsonl": [journal_line(failing("b")), journal_line(episode("d"), "started")[:-30]],
}
ERRORS = tuple(CollectionError(nodeid=f"t{n}.py", message="ImportError") for n in (1, 2))
OURS = failing("one", nodeid="tests/test_a.py::test_one", gate="advisory")
THEIRS = junit_case(FAILED, classname="tests.test_a", name="test_one")
DEAD_WORKER = junit_case(FAILED, classname="tests.test_refunds", name="test_b")
OVER = episode(budgets={"tool_calls": {"used": 5, "limit": 4}}, trajectory=None)
ERRED = evaluated("a", outcome="error", reason="refused")
MEASURED = evaluated("a", False)
NAMELESS = '<testcase time="0.001" />'
TWO_TESTS = ["a.py::test_b[x]", "a.py::test_b[y]", "a.py::test_a", "c.py::T::test_b[z]"]
ONE_TEST = [
    episode("dup", nodeid=f"a[1].py::test_b[{part}]", iteration=i)
    for part in ("x", "y::z")
    for i in (1, 2)
]
MANY_SHARED = [
    episode(f"dup{n:02}", nodeid=f"a.py::test_{n}_{part}") for n in range(25) for part in range(5)
]
COUNTED = junit_xml(junit_case_of(A), name="pytest", tests="4")
REPEATS = json.dumps([{"scenario_id": "a", "thread_id": str(n)} for n in range(3)])
CRASHED = [
    junit_case(
        '<error message="collection failure">No module</error>', classname="", name="a.test_c"
    ),
    junit_case(
        '<skipped message="collection skipped">not here</skipped>', classname="", name="a.test_d"
    ),
]
UNCOLLECTED = {
    "exit_status": 2,
    "collection_errors": (CollectionError(nodeid="a/test_c.py", message="No module"),),
}

CASES = {
    "a run and its cases": case(Run(episode("good"), BAD, junit=[junit_case_of(episode("good")), junit_case_of(BAD, "<failure/>"), junit_case(), junit_case(FAILED, name="test_plain")])),
    "a JUnit file that is cut off": case(Run(A, B, C, junit=JUNIT_OF_THREE[: JUNIT_OF_THREE.index("test_b")])),
    "lost cases": of_junit(junit_case(), tests="2"),
    "an unreadable file beside a good one": Case({"bad.xml": "<testsuite><testcase/>\n<testcase", "good.xml": junit_xml(junit_case())}, (), ("*.xml",)),
    "a repaired file": of_junit(junit_case("<system-out>\x1b[0m</system-out>")),
    "nothing at all": case(Run()),
    "no file": Case({"out": Run()}, ("*.json",)),
    "a folder below a run": Case({"out": Run(exit_status=5, junit=[]), "out/old": Run(A, junit=[junit_case_of(A)])}, (), (), ("out",)),
    "a run without a JUnit file": Case({"out": Run(A)}, (), (), ("out",)),
    "a case of another outcome": Case({"out": Run(episode(), junit=[junit_case_of(failing())])}, (), (), ("out",)),
    "a case of no episode": Case({"out": Run(episode(), junit=[junit_case_of(episode()), junit_case_of(LOST)])}, (), (), ("out",)),
    # Each run must prove something.
    "a run of nothing": Case({"out/good": Run(A), "out/none": Run()}),
    "a run that found nothing": Case({"out/good": Run(A), "out/none": Run(exit_status=5)}),
    "a run that skipped": Case({"out/good": Run(A), "out/none": Run(episode("s", outcome="skipped"), exit_status=0)}),
    "a run that erred": Case({"out/good": Run(A), "out/none": Run(episode("s", outcome="error"), exit_status=0)}),
    "a run that found nothing, it says": Case({"out/good": Run(A), "out/none": Run(episode("s"), exit_status=5)}),
    "a run of plain tests": Case({"out/good": Run(A), "out/plain": Run(junit=[junit_case()])}),
    "a run of failing plain tests": Case({"out/good": Run(A), "out/plain": Run(junit=[junit_case(FAILED)])}),
    "a run of plain tests with its file elsewhere": Case({"out/good": Run(A), "out/plain": Run(), "else.xml": junit_xml(junit_case())}, ("out",), ("else.xml",)),
    "a run of skipped tests": Case({"out/good": Run(A, junit=[junit_case_of(A)]), "out/plain": Run(junit=[junit_case("<skipped/>")])}),
    # Whose case it is
    "a case of another project": Case({"A": Run(OURS, junit=[junit_case_of(OURS, FAILED)]), "B/unit.xml": junit_xml(THEIRS)}, ("A",), ("B/unit.xml",)),
    "a case of another project, by file": Case({"A": Run(OURS, junit=[junit_case_of(OURS, FAILED)]), "B/unit.xml": junit_xml(THEIRS)}, ("A/results.json",), ("B/unit.xml",)),
    "a case that claims to be ours": Case({"A": Run(OURS, junit=[junit_case_of(OURS, FAILED)]), "B/unit.xml": junit_xml(junit_case_of(OURS, FAILED))}, ("A",), ("B/unit.xml",)),
    "files of one run": Case({"R": Run(A, failing("b"), junit=[junit_case_of(A), DEAD_WORKER])}, ("R/results.json",), ("R/junit.xml",)),
    "files that were moved": Case({"R": Run(A, failing("b")), "moved.xml": junit_xml(junit_case_of(A), DEAD_WORKER)}, ("R/results.json",), ("moved.xml",)),
    # Interrupted runs
    "a killed run": case(Run(state="running", selected=7, results=False, journal=KILLED)),
    "the journal of an interrupted run": case(Run(episode("old"), state="interrupted", selected=2, journal={"gw0.jsonl": [journal_line(episode("new"))]})),
    "fewer than were selected": case(Run(A, selected=3)),
    "a crashed pytest": case(Run(A, exit_status=3)),
    "a run that goes on": case(Run(A, state="running")),
    "retries are not more episodes": case(Run(episode(attempt=1, outcome="failed"), episode(attempt=2), selected=2)),
    "unfinished episodes of a named journal": Case({"a.jsonl": journal_line(A) + journal_line(episode("b", outcome="error"), "started")}, ("a.jsonl",)),
    "collection errors": case(Run(A, exit_status=2, collection_errors=ERRORS)),
    "only the interruption is said": case(Run(A, episode("b", outcome="error", reason="interrupted: KeyboardInterrupt"), C, state="interrupted", exit_status=2, selected=3, junit=junit_xml(junit_case_of(A), NAMELESS, name="pytest", tests="1"))),
    # Sessions that cannot be read
    **{f"the session {text[:40]!r}": a_session(text) for text in ("", "{}", '{"state": "finished", "x": 1}', '{"state": "running", "state": "finished"}', "\xff")},
    # Duplicates
    "the same episode in two shards": Case({"out/1": Run(episode(), B), "out/2": Run(failing())}),
    "the same episode twice in a file": Case({"a.jsonl": journal_line(A) * 2}, ("a.jsonl",)),
    "repeats that name no iteration": Case({"a.json": REPEATS}, ("a.json",)),
    "many bad episodes": Case({"a.jsonl": '{"scenario_id": "a"}\n' + "{}\n" * 50}, ("a.jsonl",)),
    # A run that failed must show what did.
    "a failure that no file shows": case(ended(A, junit=None)),
    "a failing scenario": case(ended(failing())),
    "an error": case(ended(episode(outcome="error"))),
    "over budget": case(ended(OVER)),
    "an earlier attempt": case(ended(failing(attempt=1), episode(attempt=2))),
    "a plain test": case(ended(A, junit=[junit_case_of(A), junit_case(FAILED)])),
    "a file that could not be collected": case(ended(A, collection_errors=ERRORS[:1])),
    "an errored evaluation": case(ended(ERRED, junit=[junit_case_of(ERRED, FAILED)])),
    "a failed evaluation": case(ended(MEASURED, A, junit=[junit_case_of(MEASURED), junit_case_of(A)])),
    "a failed evaluation that raised": case(ended(MEASURED, junit=[junit_case_of(MEASURED, FAILED)])),
    "a failure of another run": Case({"out/a": ended(A), "out/b": ended(B, junit=[junit_case(FAILED)])}),
    "a failure elsewhere": Case({"out": ended(A), "plain.xml": junit_xml(junit_case(FAILED))}, ("out",), ("plain.xml",)),
    "pytest's totals count reports": case(Run(A, junit=COUNTED)),
    "anybody's totals": Case({"plain.xml": COUNTED}, (), ("plain.xml",)),
    # Scenarios of several tests
    "a scenario of two tests": case(Run(*(episode("dup", nodeid=nodeid) for nodeid in TWO_TESTS))),
    "parametrizations of one test": case(Run(*ONE_TEST)),
    "many scenarios of several tests": case(Run(*MANY_SHARED)),
    # Stopped runs
    **{f"stopped at a limit of pytest's, {n} selected": case(ended(failing(), B, selected=n, stopped="stopping after 1 failures")) for n in (3, 2)},
    **{f"stopped by a suite budget, {n} selected": stop(n) for n in (9, 2, None)},
    "scenarios that a stopped run could not afford": shards(_1=unafforded(1), _2=unafforded(2)),
    # Shards
    "all shards": shards(_1=shard(1, 2, A), _2=shard(2, 2, B)),
    "a missing shard": shards(_1=shard(1, 3, A), _3=shard(3, 3, B)),
    "a shard twice": shards(_1=shard(1, 1, A), _again=shard(1, 1, B)),
    "a shard of another commit": shards(_1=shard(1, 2, A), _2=shard(2, 2, B, commit="0000000")),
    "a shard of another workflow run": shards(_1=shard(1, 2, A), _2=shard(2, 2, B, run="2")),
    "a shard of another suite": shards(_1=shard(1, 2, A), _2=shard(2, 2, B, suite="shop")),
    "a shard that was run again": shards(_1=shard(1, 2, A, run="7"), _2first=shard(2, 2, failing("b"), run="7"), _2again=shard(2, 2, B, run="7", attempt=2)),
    "an interrupted shard": shards(_1=shard(1, 2, A), _2=shard(2, 2, B, state="interrupted")),
    "many missing shards": shards(_1=shard(1, 9999, A)),
    "a file that no shard could collect": Case({f"shards/{n}": Run(shard=Shard(index=n, count=3, plan="p", empty=n == 3), **{**UNCOLLECTED, "selected": selected}, junit=CRASHED) for n, selected in ((1, 2), (2, 3), (3, 0))}, ("shards/*",)),
    "a file that one shard could not collect": Case({"shards/1": shard(1, 2, A), "shards/2": Run(shard=Shard(index=2, count=2, plan="p", empty=True), **UNCOLLECTED, junit=CRASHED)}, ("shards/*",)),
    # Which files are found
    "a folder with all its files": case(Run(A, junit=[junit_case_of(A)], journal={"gw0.jsonl": []})),
    **{f"a run by {pattern}": Case({"out": Run(A, state="running", junit=[], journal={"gw0.jsonl": [journal_line(B)]})}, (pattern,)) for pattern in ("out/results.json", "*/results.json", "out/episodes/*.jsonl")},
    "files by what they are": Case(dict.fromkeys(("a.json", "b.jsonl", "c.xml", "d.XML", "verdict.json", "eval-results.json"), "x"), ("*",)),
    "patterns that match nothing": Case({}, ("no/*.json", "gone.json"), ("no/*.xml",)),
    "folders without results": Case({"empty/readme.txt": "x"}, ("empty",), ("empty",)),
    "a folder of other tools": Case({f"out/{name}": "x" for name in ("b.json", "sub/a.jsonl", "c.csv", "log.EVAL", "junit/t.xml", "notes.md", ".hidden.json")}),
    "a folder with a run and others": Case({"out/run": Run(A), "out/other.json": "x", "out/run/ctrf.json": "x"}),
    **{f"a file of another tool named {name}": Case({f"out/{name}": "x", "out/scores.csv": "x"}) for name in ("results.json", "junit.xml")},
    "a folder of a run with nothing in it": Case({"out/old": Run(A)}, (), (), ("out",)),
}  # fmt: skip


def describe(name, loaded):
    lines = [f"# {name}"]
    lines += [
        f"  {one.scenario_id} #{one.iteration}, attempt {one.attempt}: {one.outcome}"
        + (", raised" if one.raised else "")
        for one in loaded.episodes[:9]
    ]
    lines += [f"  {len(loaded.episodes)} episodes"] if len(loaded.episodes) > 9 else []
    tally = loaded.tests.tally
    if tally.total:
        lines.append(f"  {tally}")
    lines += [f"  {one.outcome} {one.title}: {one.message}" for one in loaded.tests.failing]
    for one in loaded.sources:
        counts = f"{one.cases} cases, {one.passed} passed, {one.failures} failures"
        lines.append(f"  {one.path} ({one.kind}): {counts}{'' if one.readable else ', unreadable'}")
    lines += [f"  session {one.state}" for one in loaded.sessions]
    for found in loaded.findings:
        blocks = "BLOCKS" if found.blocking else "told"
        lines.append(f"  {blocks} {found.kind} {found.where}: {describe_finding(found)}")
    return "\n".join(lines)


def test_what_is_loaded_is_the_golden_text(golden, tmp_path):
    texts = []
    for number, (name, one) in enumerate(CASES.items()):
        root = tmp_path / str(number)
        root.mkdir()
        texts.append(describe(name, one.load(root)))
    text = "\n".join(texts)
    assert str(tmp_path) not in text
    golden("results/loaded.txt", f"{text}\n")
