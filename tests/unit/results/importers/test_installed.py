"""Importers of installed packages: nothing that they do turns an unreadable file into a pass."""

from __future__ import annotations

import io
import json

import pytest

from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.results.episodes import ParsedEpisode, ReadingRules, read_episodes

IMPORTER = """
    from ci_agent_eval.contract.episode import Episode

    class acme:
        tool = "Acme"
        def can_import(self, document):
            return "acme" in document or "acme" in document.get("records", [{}])[0]
        def iterate_episodes(self, document):
            for case in document["acme"] if "acme" in document else document["records"]:
                if case == "unvalidated":
                    yield Episode.model_construct(scenario_id=3, outcome="green")
                elif case == "episode":
                    yield Episode(scenario_id="s", outcome="failed", reason="no")
                elif case == "exit":
                    raise SystemExit(0)
                else:
                    yield case["fields"] if isinstance(case, dict) else case

    class other(acme):
        pass

    class raising(acme):
        def can_import(self, document):
            return document["missing"]

    class incomplete:
        tool = "Acme"

    class exiting(acme):
        def can_import(self, document):
            raise SystemExit(0)

    class unborn(acme):
        def __init__(self):
            raise SystemExit(0)

    class ruled(acme):
        score_rule = "none"
"""
GOOD = {"fields": {"scenario_id": "s", "outcome": "passed", "asserted": True}}
SCORED = {"fields": {"scenario_id": "s", "scores": [{"name": "f", "value": 0.5}]}}


def read(content, name="acme.json", rules=None):
    lines = content if isinstance(content, str) else json.dumps(content)
    found = list(read_episodes(io.BytesIO(lines.encode()), name, rules=rules))
    episodes = [one.episode for one in found if isinstance(one, ParsedEpisode)]
    return episodes, [one.message for one in found if not isinstance(one, ParsedEpisode)]


def test_its_episodes_are_read(packages):
    packages.add("acme-evals", IMPORTER, importers="acme")
    rules = ReadingRules()
    episodes, problems = read({"acme": [GOOD, "episode"]}, rules=rules)
    assert [(one.scenario_id, one.outcome) for one in episodes] == [
        ("s", "passed"),
        ("s", "failed"),
    ]
    assert (problems, rules.files) == ([], 1)


def test_json_lines_are_records(packages):
    packages.add("acme-evals", IMPORTER, importers="acme")
    line = json.dumps({"acme": 1, **GOOD})
    episodes, problems = read(f"{line}\n{line}\n", "acme.jsonl")
    assert (len(episodes), problems) == (2, [])


def test_scores_alone_do_not_pass(packages):
    packages.add("acme-evals", IMPORTER, importers="acme")
    (found,), problems = read({"acme": [SCORED]})
    assert (found.outcome, problems) == ("error", [])
    assert "no score of it (f) says pass or fail" in found.reason


@pytest.mark.parametrize(
    ("cases", "problem"),
    [
        ([], "it is a file of Acme and holds no results; run the tool again"),
        (["unvalidated"], "returned an invalid result 0: scenario_id: "),
        ([{"fields": {"scenario_id": "s", "outcome": "green"}}], "invalid result 0: outcome: "),
        ([{"fields": {"scenario_id": "s", "assertions": 3}}], "invalid result 0: assertions: "),
        ([{"fields": {"scenario_id": "s", "verdict": "good"}}], "invalid result 0: verdict: "),
        ([3], "returned an invalid result 0: "),
        ([{"no": "fields"}], "failed (KeyError: 'fields')"),
        (["exit"], "failed (SystemExit: 0)"),
        (3, "failed (TypeError: 'int' object is not iterable)"),
    ],
)
def test_what_it_cannot_read_is_a_problem_of_the_file(packages, cases, problem):
    packages.add("acme-evals", IMPORTER, importers="acme")
    good = [GOOD] if isinstance(cases, list) and cases else []
    content = [*cases, *good] if good else cases
    episodes, (message,) = read({"acme": content})
    assert problem in message
    assert message.startswith("it is a file of Acme and ")
    assert len(episodes) <= 1


@pytest.mark.parametrize(
    ("importers", "problem"),
    [
        ("raising", "'raising' of the package acme-evals failed (KeyError: 'missing')"),
        ("exiting", "'exiting' of the package acme-evals failed (SystemExit: 0)"),
        ("unborn", "'unborn' of the package acme-evals cannot be created (SystemExit: 0)"),
        ("incomplete", "is not an importer: it lacks can_import or iterate_episodes"),
        ("ruled", "has no known score_rule: use thresholds or binary"),
        ("absent", "cannot be imported (AttributeError: "),
        ("acme other", "it is recognized by ci_agent_eval.importers 'acme' of the package "),
    ],
)
@pytest.mark.parametrize("name", ["acme.json", "acme.jsonl"])
def test_an_importer_that_does_not_work_is_a_problem_of_the_file(
    packages, importers, problem, name
):
    packages.add("acme-evals", IMPORTER, importers=importers)
    content = (
        json.dumps({"acme": [GOOD]}) if name == "acme.json" else json.dumps({"acme": 1}) + "\n"
    )
    episodes, (message,) = read(content, name)
    assert episodes == []
    assert problem in message


def test_our_own_files_are_never_given_to_it(packages):
    packages.add("acme-evals", IMPORTER, importers="raising")
    own = Episode(scenario_id="s", outcome="failed").model_dump(mode="json", exclude_unset=True)
    for content in (own, [own], {"schema_version": "1", "suite": "s", "episodes": [own]}):
        (found,), problems = read(content)
        assert (found.outcome, problems) == ("failed", [])
