"""Baselines in files: one run, several, shards of one; what is not there and what is broken."""

from __future__ import annotations

import pytest

from ci_agent_eval.analysis.comparison.model import Baseline, NoBaseline
from ci_agent_eval.contract.findings import MissingShards
from ci_agent_eval.contract.results import Session, Shard
from ci_agent_eval.errors import InputError
from ci_agent_eval.results.baselines.load import load_baseline, load_from_files
from ci_agent_eval.results.baselines.request import BaselineRequest
from tests.builders import episode, failing, write_run
from tests.tables import each_row

SHA = "4f2a91c" + "0" * 33


def found(root, name, **fields):
    return load_from_files(BaselineRequest(name, root, **fields))


def names(baseline):
    return [[facts.scenario_id for facts in run.episodes] for run in baseline.runs]


@each_row("name", ["base", "base/results.json", "./base", "b*e"])
def test_one_run(tmp_path, name):
    session = Session(state="finished", selected=1, commit=SHA)
    write_run(tmp_path / "base", episode(), session=session)
    baseline = found(tmp_path, name).baseline
    assert (names(baseline), baseline.label) == ([["refund"]], f"{name}@4f2a91c")


@each_row("name", ["base", "base/results.json"])
def test_a_run_of_another_suite_is_refused(tmp_path, name):
    session = Session(state="finished", selected=1, suite="desk")
    write_run(tmp_path / "base", episode(), session=session)
    if name.endswith(".json"):
        (tmp_path / "base/session.json").unlink()
    (finding,) = found(tmp_path, name, suite="shop").findings
    assert (finding.kind, finding.blocking) == ("baseline", True)
    assert finding.message.startswith("its results are of suite 'desk', this is suite 'shop'; ")
    for wanted in ("desk", None):
        assert names(found(tmp_path, name, suite=wanted).baseline) == [["refund"]]


def test_several_runs_the_last_in_natural_order_first(tmp_path):
    for number in (9, 10, 1):
        write_run(tmp_path / f"base/run-{number}", episode(f"s{number}"))
    for name in ("base", "base/*"):
        baseline = found(tmp_path, name).baseline
        assert names(baseline) == [["s10"], ["s9"], ["s1"]]
        assert names(found(tmp_path, name, runs=2).baseline) == [["s10"], ["s9"]]


@each_row("at", ["base", "base/run-1"])
def test_shards_are_one_run(tmp_path, at):
    for index in (1, 2):
        shard = Shard(index=index, count=2, plan="p", run="7")
        session = Session(state="finished", selected=1, shard=shard)
        write_run(tmp_path / at / f"shard-{index}", episode(f"s{index}"), session=session)
    assert names(found(tmp_path, "base").baseline) == [["s1", "s2"]]


def test_a_missing_shard_is_no_whole_run(tmp_path):
    shard = Shard(index=1, count=2, plan="p", run="7")
    session = Session(state="finished", selected=1, shard=shard)
    write_run(tmp_path / "base/shard-1", episode(), session=session)
    (finding,) = found(tmp_path, "base").findings
    assert (finding.kind, finding.blocking) == ("baseline", True)
    assert finding.message == MissingShards((2,), 2)


@each_row(
    ("name", "reason"),
    [
        ("base", "no file or folder is at base"),
        ("b*/results.json", r"no file or folder is at b\*/results.json"),
        ("empty", "empty holds no results.json of a run"),
        ("none", "none holds no episode"),
    ],
)
def test_what_is_not_there_is_no_baseline(tmp_path, name, reason):
    (tmp_path / "empty").mkdir()
    write_run(tmp_path / "none")
    result = found(tmp_path, name)
    assert result.baseline == NoBaseline(reason.replace("\\", ""))
    assert result.findings == ()


@each_row("text", ["{", '{"schema_version":"9","episodes":[]}', "\0", ""])
def test_what_cannot_be_read_is_a_finding_that_blocks(tmp_path, text):
    (tmp_path / "base.json").write_text(text)
    result = found(tmp_path, "base.json")
    assert [(f.kind, f.blocking) for f in result.findings] == [("baseline", True)]
    assert isinstance(result.baseline, NoBaseline)


def test_a_run_of_the_base_that_did_not_finish_is_said_and_counts(tmp_path):
    session = Session(state="interrupted", selected=2)
    write_run(tmp_path / "base", episode(), session=session)
    result = found(tmp_path, "base")
    assert isinstance(result.baseline, Baseline)
    assert [(f.kind, f.blocking) for f in result.findings] == [("baseline", False)]


def test_a_run_is_not_its_own_baseline(tmp_path):
    write_run(tmp_path / "reports/a", episode("a"))
    write_run(tmp_path / "reports/b", episode("b"))
    own = tmp_path / "reports/b"
    for name in ("reports", "reports/*", "reports/*/results.json"):
        assert names(found(tmp_path, name, own=own).baseline) == [["a"]]
    assert isinstance(found(tmp_path, "reports/b", own=own).baseline, NoBaseline)


def test_the_latest_run_lends_conversations(tmp_path):
    for name in ("run-1", "run-2"):
        write_run(tmp_path / "base" / name, episode(), failing(iteration=2))
    latest, older = found(tmp_path, "base").baseline.runs
    assert [(one.outcome, one.iteration) for one in latest.samples] == [
        ("failed", 2),
        ("passed", 1),
    ]
    assert '"hello"' in latest.samples[0].turns
    assert older.samples == ()


def test_secrets_are_redacted(tmp_path):
    write_run(tmp_path / "base", failing(assertions=[{"name": "s3cret", "passed": False}]))
    result = found(tmp_path, "base", redact=lambda text: text.replace("s3cret", "***"))
    assert result.baseline.runs[0].episodes[0].failed_assertions[0].name == "***"


def test_artifacts_are_for_the_action(tmp_path):
    with pytest.raises(InputError, match="known to the action alone"):
        load_baseline(BaselineRequest("artifact", tmp_path), {})
    told = load_baseline(BaselineRequest("artifact", tmp_path), {"artifact": lambda w: w.name})
    assert told == "artifact"
