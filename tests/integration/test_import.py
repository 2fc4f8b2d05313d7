"""`agent-eval import`: production traces are judged, or become tests that pass without a model."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from ci_agent_eval.app.cli import main
from tests.processes import run_agent_eval, run_python
from tests.recorded_spans import read_recorded_spans
from tests.trace_files import ANTHROPIC, TRACE, chat_log, lines, otlp

CONFIG = """
[traces.checks]
confirmed_tools = ["refund"]

[traces.budgets]
max_turns = 3
token_usage = { limit = 1000, hard = false }
"""
SECRET = "sk-proj-0123456789abcdefghijklmnop"


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Write files and run `agent-eval` in their folder; suites run in another process."""
    (tmp_path / "agent-eval.toml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)

    def run(*arguments, **files):
        for name, text in files.items():
            (tmp_path / name.replace("_", ".", 1)).write_text(text)
        if arguments[0] == "run":
            return run_agent_eval(*arguments, cwd=tmp_path)
        capsys.readouterr()
        return SimpleNamespace(returncode=main(arguments), **capsys.readouterr()._asdict())

    return run


@pytest.fixture
def read_episodes(tmp_path):
    def read(folder="out"):
        results = json.loads((tmp_path / folder / "results.json").read_text())
        return {episode["scenario_id"]: episode for episode in results["episodes"]}

    return read


def test_traces_of_several_formats_are_judged_and_reported(run, read_episodes):
    done = run(
        *("import", "calls.jsonl", "spans.json", "--output", "out"),
        calls_jsonl=lines(*chat_log(), ANTHROPIC),
        spans_json=json.dumps(otlp(read_recorded_spans("openinference-openai_agents"))),
    )
    assert (done.returncode, done.err) == (0, "")
    assert "3 traces" in done.out
    episodes = read_episodes()
    assert list(episodes) == [TRACE, "t1", "t2"]

    looked_up = episodes["t1"]
    assert looked_up["outcome"] == "passed"
    assert looked_up["model"] == "gpt-5"
    assert looked_up["budgets"]["token_usage"] == {"used": 198, "limit": 1000, "hard": False}
    assert looked_up["metadata"] == {"trace": "calls.jsonl:1"}

    refunded = episodes["t2"]
    assert refunded["outcome"] == "failed"
    assert "used" not in refunded["budgets"]["token_usage"], "unknown is not zero"

    assert episodes[TRACE]["agent"] == "desk"
    assert len(episodes[TRACE]["trajectory"]["turns"]) == 4

    report = run("report", "--results", "out")
    assert report.returncode == 1
    assert "1 of 3 scenarios fails" in report.out
    assert "asks before it calls refund" in report.out
    assert "t2 tokens not measured (soft limit 1,000)" in report.out
    assert "agent-eval run" not in report.out, "a trace has no test"


def test_a_trace_becomes_a_test_that_passes_without_a_model(run, tmp_path):
    made = run(
        *("import", "calls.jsonl", "--trace", "t1", "--as-test", "suite/test_order.py"),
        calls_jsonl=lines(*chat_log(), ANTHROPIC),
    )
    assert (made.returncode, made.err) == (0, "")
    text = (tmp_path / "suite/test_order.py").read_text()
    assert '    reply = agent.send("Where is order 7? I am [email-1]")\n' in text
    assert '[("lookup", {"order": 7, "mail": "[email-1]"})]' in text

    done = run("run", "suite/test_order.py", "--", "--cassette=replay")
    assert done.returncode == 0, done.stdout
    assert "0 live, 2 replayed" in done.stdout


@pytest.mark.parametrize("trace", ["t2", TRACE])
def test_conversations_and_spans_become_tests_too(run, trace):
    made = run(
        *("import", "chat.jsonl", "spans.json", "--trace", trace, "--as-test", "test_it.py"),
        chat_jsonl=lines(ANTHROPIC),
        spans_json=json.dumps(otlp(read_recorded_spans("openllmetry-langchain"))),
    )
    assert (made.returncode, made.err) == (0, "")
    done = run("run", "test_it.py", "--", "--cassette=replay")
    assert done.returncode == 0, done.stdout
    assert " 0 live" in done.stdout


AGENT = '''
import json
import httpx

def lookup(order, mail):
    return RESULT

class Desk:
    """Makes the requests of the trace, if its prompt and its tool are as they were."""

    def respond(self, message):
        messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": message}]
        while True:
            body = {"model": "gpt-5", "messages": messages}
            url = "https://api.openai.com/v1/chat/completions"
            said = httpx.post(url, json=body).json()["choices"][0]["message"]
            if not said.get("tool_calls"):
                return said["content"]
            messages.append(said)
            for call in said["tool_calls"]:
                result = lookup(**json.loads(call["function"]["arguments"]))
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})

def create_agent():
    return Desk()
'''


@pytest.mark.parametrize(("result", "status"), [("shipped", 0), ("lost", 1)])
def test_your_agent_in_place_of_the_recorded_one_is_tested(run, tmp_path, result, status):
    run("import", "a.jsonl", "--as-test", "test_it.py", a_jsonl=lines(*chat_log()))
    path = tmp_path / "test_it.py"
    text = re.sub(r"def create_agent.*?\n\n\n", "", path.read_text(), flags=re.DOTALL)
    path.write_text(AGENT.replace("RESULT", repr(result)) + text)

    done = run("run", "test_it.py", "--", "--cassette=replay")

    assert done.returncode == status, done.stdout
    assert ("1 cassette miss" in done.stdout) is bool(status)


def test_the_recorded_agent_only_works_in_replay(run, tmp_path):
    run("import", "a.jsonl", "--as-test", "test_it.py", a_jsonl=lines(*chat_log()))
    done = run_python("-m", "pytest", "test_it.py", cwd=tmp_path)
    assert done.returncode == 1
    assert "RecordedAgent only repeats the requests of a cassette" in done.stdout


def test_files_that_may_have_been_edited_are_not_replaced(run, tmp_path):
    command = ("import", "a.jsonl", "--as-test", "test_it.py")
    run(*command, a_jsonl=lines(*chat_log()))
    before = (tmp_path / "test_it.py").read_bytes()
    done = run(*command)
    assert done.returncode == 2
    assert "test_it.py exists; delete it, or choose another name" in done.err
    assert (tmp_path / "test_it.py").read_bytes() == before


def test_secrets_and_personal_data_leave_no_trace(run, tmp_path):
    customer = f"jane@shop.test, key {SECRET}, card 4111 1111 1111 1111, +49 30 1234567"
    log = lines(*chat_log("jane@shop.test", customer=customer), *chat_log("other@shop.test"))
    (tmp_path / "log.jsonl").write_text(log)
    done = run("import", "log.jsonl", "--output", "out")
    assert "replaced personal data: 1 card, 2 email, 1 phone" in done.out
    run("import", "log.jsonl", "--trace", "jane@shop.test", "--as-test", "suite/test_it.py")

    written = [path for name in ("out", "suite") for path in (tmp_path / name).rglob("*.*")]
    texts = [path.read_text() for path in written if path.is_file()]
    assert len(texts) == 3
    for known in ("shop.test", SECRET, "1111", "1234567"):
        assert not any(known in text for text in texts)
    ids = [json.loads(line.rstrip(","))["scenario_id"] for line in texts[0].splitlines()[1:-1]]
    assert len(set(ids)) == 2, "distinct traces stay distinct"


@pytest.mark.parametrize(
    ("wanted", "hint"),
    [
        ("zz", "their ids: 'chat-1', 'chat-2', 'chat-3', "),
        ("zz", "'chat-9', 'chat-10', 4 more"),
        ("caht-3", "; did you mean 'chat-3'?"),
        ("jane@shop.text", "their ids: 'chat-1', "),  # personal data is only counted
    ],
)
def test_the_error_about_an_unknown_trace_names_those_that_exist(run, wanted, hint):
    ids = [*(f"chat-{n}" for n in reversed(range(1, 13))), "jane@shop.test", SECRET]
    calls = [call for one in ids for call in chat_log(one)]
    done = run("import", "a.jsonl", "--trace", wanted, "--output", "out", a_jsonl=lines(*calls))
    assert done.returncode == 2
    assert f"no trace {wanted!r}, so nothing was written; " in done.err
    assert hint in done.err
    assert not any(known in done.err for known in ("shop.test", SECRET))


def test_unreadable_records_are_named_and_make_the_results_incomplete(run, read_episodes):
    done = run(
        *("import", "a.jsonl", "deep.json", "--output", "out"),
        a_jsonl=lines(chat_log()[0]) + "{nonsense\n" + lines({"foo": 1}, [1]),
        deep_json="[" * 5000,
    )
    assert done.returncode == 2
    places = [line.partition(": ")[0] for line in done.err.splitlines()]
    assert places == ["a.jsonl:2", "a.jsonl:3", "a.jsonl:4", "deep.json:1"]
    assert list(read_episodes()) == ["t1"]
    report = run("report", "--results", "out")
    assert report.returncode == 1
    assert "it is not complete" in report.out


def test_hostile_texts_stay_texts(run, tmp_path):
    prompt = '"""\nimport os; os.abort()\n\u202e\u2028# \x00 {answer} {{'
    asked = [{"role": "user", "content": prompt}, {"role": "assistant", "content": prompt}]
    trace = 'x"""\nimport os\n'
    made = run(
        *("import", "a.jsonl", "--as-test", "test_it.py"),
        a_jsonl=lines({"id": trace, "messages": asked}),
    )
    assert (made.returncode, made.err) == (0, "")
    assert "\u202e" not in (tmp_path / "test_it.py").read_text()
    done = run("run", "test_it.py", "--", "--cassette=replay")
    assert done.returncode == 0, done.stdout


MAPPING = """
[[mapping]]
files = "*.csv"
id = "session"
agent = "bot"
input = "question"
output = "answer"
input_tokens = "tokens_in"
output_tokens = "tokens_out"
latency_ms = "ms"

[[mapping]]
files = "logs/*.json"
records = "data.rows"
id = "run.id"
request = "call.body"
response = "call.answer"
cost_usd = "usd"

[[mapping]]
files = "*.jsonl"
id = "key"
messages = "thread.items"
"""


def test_any_records_are_read_by_a_mapping(run, read_episodes, tmp_path):
    (tmp_path / "logs").mkdir()
    rows = [
        {"run": {"id": "r"}, "usd": 0.25, "call": {"body": c["request"], "answer": c["response"]}}
        for c in chat_log()
    ]
    (tmp_path / "logs/a.json").write_text(json.dumps({"data": {"rows": rows}}))
    table = "session,bot,question,answer,tokens_in,tokens_out,ms\ns,desk,Hi,Hello,4,2,120.5\n"
    done = run(
        *("import", "a.csv", "logs/a.json", "b.jsonl"),
        *("--mapping", "m.toml", "--output", "out"),
        a_csv=table,
        b_jsonl=lines({"key": 7, "thread": {"items": ANTHROPIC["messages"]}}),
        m_toml=MAPPING,
    )
    assert (done.returncode, done.err) == (0, "")
    episodes = read_episodes()
    assert list(episodes) == ["7", "r", "s"]
    answer = episodes["s"]["trajectory"]["turns"][1]
    assert (answer["content"], answer["latency_ms"]) == ("Hello", 120.5)
    assert episodes["s"]["budgets"]["token_usage"]["used"] == 6
    assert episodes["s"]["agent"] == "desk"
    assert [turn.get("cost_usd") for turn in episodes["r"]["trajectory"]["turns"]] == [
        None,
        0.25,
        0.25,
    ]
    assert len(episodes["7"]["trajectory"]["turns"]) == 5


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ('id = "x"', "needs one of messages, request with response, or output"),
        ('id = "x"\nrequest = "a"', "needs request and response, or neither"),
        ('id = "x"\nmessages = "a"\ncost_usd = "b"', "figures belong to one answer"),
        ('id = "x"\noutput = "a"\noutcome = "b"', "unknown key 'outcome'"),
        ('id = "x"\noutput = "a"\nrecords = "b"', "has no list at 'b'; correct `records`"),
        ('id = "x"\noutput = "a"', "it has no id at 'x'"),
    ],
)
def test_a_mapping_that_does_not_fit_is_an_input_error(run, mapping, message):
    done = run(
        *("import", "a.json", "--mapping", "m.toml", "--output", "out"),
        a_json='[{"a": 1}]',
        m_toml=f'[[mapping]]\nfiles = "*.json"\n{mapping}\n',
    )
    assert done.returncode == 2
    assert message in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("missing.json", "--output", "out"), "missing.json: cannot be read"),
        ((".", "--output", "out"), ".: cannot be read"),
        (("a.jsonl",), "give --output DIR to judge the traces, or --as-test FILE"),
        (("a.jsonl", "--output", "out", "--trace", "x"), "hold no trace 'x', so"),
        (("a.jsonl", "--as-test", "test_x.py"), "hold 2 traces; choose one with --trace"),
        (("a.jsonl", "--output", "out", "--config", "empty.toml"), "no rule judges the traces"),
        (("a.jsonl", "--output", "run"), "run is the report folder of a run"),
        (("agent.jsonl", "--as-test", "test_x.py"), "begins without a message of the user"),
    ],
)
def test_wrong_usage_is_an_input_error(run, tmp_path, arguments, message):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/session.json").touch()
    hello = {"role": "assistant", "content": "Hello"}
    done = run(
        *("import", *arguments),
        a_jsonl=lines(*chat_log(), ANTHROPIC),
        agent_jsonl=lines({"id": "a", "messages": [hello]}),
        empty_toml="",
    )
    assert done.returncode == 2
    assert message in done.err
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "test_x.py").exists()


def test_the_same_traces_give_the_same_bytes_in_any_order_of_the_files(run, tmp_path):
    files = {"a_jsonl": lines(*chat_log()), "b_jsonl": lines(ANTHROPIC)}
    run("import", "a.jsonl", "b.jsonl", "--output", "one", **files)
    run("import", "b.jsonl", "a.jsonl", "a.jsonl", "--output", "two")
    written = [(tmp_path / name / "results.json").read_bytes() for name in ("one", "two")]
    assert written[0] == written[1]


def test_a_trace_without_an_answer_is_an_error(run, read_episodes):
    asked = {"id": "x", "messages": [{"role": "user", "content": "Hi"}]}
    run("import", "a.jsonl", "--output", "out", a_jsonl=lines(asked))
    assert read_episodes()["x"]["outcome"] == "error"


def test_the_page_about_imports_is_linked_and_its_example_works(run, tmp_path):
    page = Path(__file__).parents[2].joinpath("docs/import.md").read_text()
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (rules, mapping), (log,) = (
        [text for language, text in blocks if language == kind] for kind in ("toml", "json")
    )
    (tmp_path / "agent-eval.toml").write_text(rules)
    (tmp_path / "traces.jsonl").write_text(log)
    done = run("import", "traces.jsonl", "--output", "out")
    assert (done.returncode, done.err) == (0, "")
    table = "session,bot,question,answer\ns,desk,Hi,Hello\n"
    done = run(
        *("import", "chats.csv", "--mapping", "m.toml", "--output", "out"),
        chats_csv=table,
        m_toml=mapping,
    )
    assert (done.returncode, done.err) == (0, "")


EXTRAS = ("anyio", "genai_prices", "httpx2", "mcp", "opentelemetry", "pydantic_ai", "yaml")
WITHOUT_EXTRAS = f"""
import sys
sys.modules.update(dict.fromkeys({EXTRAS!r}))
from ci_agent_eval.app.cli import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("arguments", "status"), [(("--output", "out"), 0), (("--as-test", "test_it.py"), 2)]
)
def test_judging_needs_no_extra_and_a_missing_one_is_named(tmp_path, arguments, status):
    (tmp_path / "agent-eval.toml").write_text(CONFIG)
    (tmp_path / "a.jsonl").write_text(lines(*chat_log()))
    done = run_python("-c", WITHOUT_EXTRAS, "import", "a.jsonl", *arguments, cwd=tmp_path)
    assert done.returncode == status, done.stderr
    assert ("pip install 'ci-agent-eval[traffic]'" in done.stderr) is bool(status)
    assert not (tmp_path / "test_it.py").exists()
