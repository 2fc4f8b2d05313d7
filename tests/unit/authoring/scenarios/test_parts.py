"""Steps, judge, facts, files and checks by name in scenario files of each format."""

from __future__ import annotations

import itertools
import json

import pytest
import yaml

from ci_agent_eval import checks as own_checks
from ci_agent_eval.authoring.scenarios import load
from ci_agent_eval.authoring.scenarios.load import load_scenarios, parse_scenarios
from ci_agent_eval.authoring.scenarios.parts import NAMES, build_check
from ci_agent_eval.checks import (
    DimensionRubric,
    ForbiddenTools,
    ReplyShape,
    RequiredText,
    RequiredTools,
    Rubric,
    ScoringDimension,
    TrajectoryMatch,
)
from ci_agent_eval.errors import InputError
from ci_agent_eval.recording import EpisodeRecorder, build_initial_episode
from ci_agent_eval.recording.active_episode import (
    RunningEpisode,
    activate_episode,
    deactivate_episode,
)

YAML = """
- id: refund
  persona: a customer
  private_facts: {order: W1002}
  script: ["It is {order}."]
  steps:
    - agent
    - message: {role: system, text: Be brief.}
    - user: I want my money back.
    - agent
    - expect: {RequiredText: {texts: Which order}}
    - tool_result: {tool: find_order, result: {usd: 39}, arguments: {id: W1002}}
    - proceed: 1
    - check:
        - RequiredTools: [refund]
        - ForbiddenTools: cancel
    - judge
  judge:
    success: {RequiredTools: refund}
    must_hold: [{ForbiddenTools: [cancel]}]
  expect:
    - TrajectoryMatch: {reference: [refund], mode: strict}
"""

(ENTRY,) = yaml.safe_load(YAML)


def quote(value):
    return '"' + json.dumps(value).replace('"', '""') + '"'


CSV = (
    "id,persona,private_facts.order,script,steps,judge.success,judge.must_hold,expect\n"
    "refund,a customer,W1002,"
    + ",".join(
        quote(value)
        for value in (
            ENTRY["script"],
            ENTRY["steps"],
            [ENTRY["judge"]["success"]],
            ENTRY["judge"]["must_hold"],
            ENTRY["expect"],
        )
    )
    + "\n"
)
FILES = {
    "s.yaml": YAML,
    "s.json": json.dumps([ENTRY], indent=1),
    "s.jsonl": f"\n{json.dumps(ENTRY)}\n\n",
    "s.csv": CSV,
}


def problem(text, name="s.yaml"):
    with pytest.raises(InputError) as refused:
        parse_scenarios(text.encode(), name)
    return str(refused.value)


def step(text):
    return f"- id: a\n  steps:\n    - user: Hi\n    - agent\n    - {text}\n"


@pytest.fixture
def recorder():
    ticks = itertools.count()
    recorder = EpisodeRecorder(build_initial_episode("refund"), clock=lambda: next(ticks) / 10)
    activate_episode(RunningEpisode("strict", recorder))
    yield recorder
    deactivate_episode()


def desk(message, *, messages):
    if "W1002" in message:
        return {"text": "Done.", "tool_calls": [{"name": "refund", "result": "ok"}]}
    return "Which order?" if message else "Welcome!"


@pytest.mark.parametrize("name", FILES)
def test_every_format_has_steps_judge_facts_and_checks(name, recorder):
    (scenario,) = parse_scenarios(FILES[name].encode(), name)
    result = scenario.run(desk)
    assert [exchange.message for exchange in result.exchanges] == [
        None,
        "I want my money back.",
        "It is W1002.",
    ]
    assert (result.stop_reason, result.verdict.passed) == ("judge_verdict", True)
    episode = recorder.finish()
    assert [(each.name.partition(":")[0], each.passed) for each in episode.assertions] == [
        ("turn 2", True),
        ("calls refund", True),
        ("never calls cancel", True),
        ("judge", True),
        ("judge", True),
        ("makes exactly the reference's tool calls", True),
    ]
    assert {(each.file, each.line) for each in episode.assertions} == {(name, scenario.line)}
    assert sum(turn.injected for turn in episode.trajectory.turns) == 2


def test_an_injected_reply_reaches_no_goal(recorder):
    text = step("{message: {role: assistant, text: It is done.}}\n    - user: Ok\n    - agent")
    text += "  goal: {reply_matches: done}\n"
    (scenario,) = parse_scenarios(text.encode(), "s.yaml")
    assert scenario.run(desk).stop_reason == "script_ended"
    (failed,) = recorder.finish().failed_assertions
    assert failed.name == "reaches the user's goal"


class TestNames:
    def test_they_are_all_checks_of_the_package(self):
        classes = {n for n in own_checks.__all__ if isinstance(getattr(own_checks, n), type)}
        assert set(NAMES) == classes - {"Check", "ScoringDimension"}

    @pytest.mark.parametrize(
        ("given", "check"),
        [
            ("StateUnchanged", own_checks.StateUnchanged()),
            ({"RequiredTools": ["refund"]}, RequiredTools(["refund"])),
            ({"ForbiddenTools": {"tools": "x"}}, ForbiddenTools("x")),
            ({"RequiredText": {"patterns": "^a"}}, RequiredText(patterns="^a")),
            (
                {"Rubric": {"rubric": "Polite.", "model": "openai:gpt-5-mini", "threshold": 0.7}},
                Rubric("Polite.", "openai:gpt-5-mini", threshold=0.7),
            ),
            ({"ReplyShape": {"shape": {"type": "object"}}}, ReplyShape({"type": "object"})),
            (
                {"TrajectoryMatch": {"reference": [{"name": "a", "arguments": {"b": 1}}, "c"]}},
                TrajectoryMatch([("a", {"b": 1}), "c"]),
            ),
            (
                {
                    "DimensionRubric": {
                        "dimensions": [{"name": "tone", "description": "Kind.", "max_score": 3}],
                        "model": "openai:gpt-5-mini",
                        "threshold": 0.5,
                    }
                },
                DimensionRubric(
                    [ScoringDimension("tone", "Kind.", 3)], "openai:gpt-5-mini", threshold=0.5
                ),
            ),
            ({"ci_agent_eval.checks:ForbiddenTools": ["x"]}, ForbiddenTools(["x"])),
        ],
    )
    def test_a_check_is_the_one_that_python_has(self, given, check):
        built = build_check(given)
        if isinstance(check, TrajectoryMatch):
            built, check = built._reference_calls, check._reference_calls
        assert built == check

    def test_an_evaluator_of_pydantic_evals_has_its_module(self):
        check = build_check({"pydantic_evals.evaluators:Contains": {"value": "refunded"}})
        assert callable(check.assertions)

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ("RequiredTool", "did you mean 'RequiredTools'?; write your own as `module:Name`"),
            ({"RequiredTools": {"tool": "x"}}, "RequiredTools: cannot be built (TypeError: "),
            ({"RequiredTools": 3}, "RequiredTools.tools: "),
            ({"none_of_it:Check": None}, "none_of_it:Check: cannot be imported (ModuleNotFound"),
            ({"json:dumps": [1]}, "json:dumps: made a str, which is not a Check"),
            ({"RequiredTools": [], "Rubric": {}}, "one name with its arguments"),
            (3, "must be a check's name"),
        ],
    )
    def test_a_wrong_one_is_refused(self, given, said):
        with pytest.raises(InputError) as refused:
            build_check(given)
        assert said in str(refused.value)


def test_a_mistake_in_a_cell_or_a_line_has_its_place():
    assert problem("id,fixed_responses,expect\na,hi,Lops\n", "s.csv").startswith(
        "s.csv:2: column 'expect': unknown key 'Lops'"
    )
    lines = '{"id": "a", "fixed_responses": ["hi"]}\n\n{"id": 3}\n'
    assert problem(lines, "s.jsonl").startswith("s.jsonl:3: id: must be a text")
    assert problem('{"id": "a"}, {}\n', "s.jsonl").startswith("s.jsonl:1: is not JSON: Extra data")
    assert problem("", "s.jsonl").startswith("s.jsonl:1: is empty")


class TestFiles:
    def load(self, folder, file):
        text = f"- id: a\n  steps: [user: {{text: Look, files: ['{file}']}}, agent]\n"
        (folder / "s.yaml").write_text(text)
        return load_scenarios(folder / "s.yaml", "s.yaml")

    def test_a_file_that_cannot_be_read_has_its_place_and_a_remedy(self, tmp_path):
        with pytest.raises(InputError) as refused:
            self.load(tmp_path, "cup.png")
        assert str(refused.value) == (
            "s.yaml:2: steps.0.user: cup.png: cannot be read (No such file or directory); "
            "write its path relative to the scenario file"
        )
        with pytest.raises(InputError, match=r"s\.yaml:2: .*: is not a path \("):
            parse_scenarios(
                b'- id: a\n  steps: [user: {text: a, files: ["a\\0.png"]}, agent]',
                "s.yaml",
                lambda file: load._find_attached(tmp_path / "s.yaml", file).read_bytes(),
            )

    @pytest.mark.parametrize("file", ["../cup.png", "/etc/cup.png", "out/cup.png"])
    def test_files_outside_of_its_folder_are_refused(self, tmp_path, file):
        (tmp_path / "cup.png").write_bytes(b"secret")
        suite = tmp_path / "suite"
        suite.mkdir()
        (suite / "out").symlink_to(tmp_path)
        with pytest.raises(InputError, match="must be in the folder of the scenario file"):
            self.load(suite, file)

    def test_the_files_of_a_scenario_have_a_limit_together(self):
        steps = [
            "- user: {text: Two, files: [a.png, a.png]}",
            "- agent",
            "- user: {text: One more, files: [b.png, c.png]}",
            "- agent",
        ]
        scenarios = [f"- id: {name}\n  steps:\n    " + "\n    ".join(steps) for name in "xy"]
        read = []

        def read_file(file):
            read.append(file)
            return bytes(1 if file == "b.png" else load.MAX_ATTACHED_BYTES)

        with pytest.raises(InputError) as refused:
            parse_scenarios("\n".join(scenarios).encode(), "s.yaml", read_file)
        assert str(refused.value).splitlines() == [
            f"s.yaml:{line}: steps.2.user: files: the files of the conversation have 20,971,521 "
            "bytes, of at most 20,971,520; send fewer or smaller ones"
            for line in (5, 11)
        ]
        assert read == ["a.png", "a.png", "b.png"] * 2
