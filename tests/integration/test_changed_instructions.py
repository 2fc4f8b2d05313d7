"""A changed prompt is one cause in the comment: against a baseline, and in replay."""

from __future__ import annotations

import shutil

import pytest

from tests.model_server import ModelServer
from tests.processes import run_agent_eval

SUITE = """
import openai, pytest

TOLD = {told!r}

async def teller(message):
    async with openai.AsyncOpenAI(base_url={url!r}, api_key="none", max_retries=0) as client:
        answer = await client.chat.completions.create(
            model="gpt-5-mini",
            messages=[{{"role": "system", "content": TOLD}}, {{"role": "user", "content": message}}],
        )
    return answer.choices[0].message.content

@pytest.mark.parametrize("account", [f"account {{n}}" for n in range(1, 13)])
async def test_balance(aitest_run, account):
    result = await aitest_run(teller, f"How much is in {{account}}?")
    assert "$12" in result.final_response, f"no amount of {{account}}"
"""
EXACT, FRIENDLY = "Be a teller. State the exact amount.", "Be a teller. Be friendly."


def run(folder, told, answer, *arguments):
    with ModelServer({"*": [answer]}) as server:
        (folder / "test_bank.py").write_text(SUITE.format(told=told, url=server.base_url))
        done = run_agent_eval("run", "test_bank.py", *arguments, cwd=folder)
    assert done.returncode in (0, 1), done.stderr
    return done, (folder / "agent-eval-report/comment.md").read_text(), len(server.requests)


def list_cards(comment):
    return [
        line
        for line in comment.splitlines()
        if "<summary>❌" in line or line.startswith(("❌ ", "⚠️ "))
    ]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A folder with cassettes, and with the report of the run that recorded them in `base`."""
    folder = tmp_path_factory.mktemp("bank")
    done, _, asked = run(folder, EXACT, "It is $12.", "--", "--cassette=record")
    assert (done.returncode, asked) == (0, 12), done.stdout + done.stderr
    shutil.move(folder / "agent-eval-report", folder / "base")
    return folder


def test_failures_after_a_changed_prompt_are_one_card_with_its_diff(recorded):
    _, comment, asked = run(recorded, FRIENDLY, "Plenty!", "--baseline", "base")
    assert asked == 12
    (card,) = list_cards(comment)
    assert "instructions of <code>teller</code> changed · <b>12 scenarios</b> · 12 failing" in card
    assert "- State the exact amount.\n+ Be friendly." in comment
    assert ", all for one reason" in comment


@pytest.mark.parametrize("arguments", [(), ("--baseline", "base")])
def test_recordings_of_another_prompt_are_one_card_without_a_path(recorded, arguments):
    _, comment, asked = run(recorded, FRIENDLY, "Plenty!", *arguments, "--", "--cassette=replay")
    assert asked == 0
    (card,) = list_cards(comment)
    assert "instructions of <code>teller</code> changed · <b>12 scenarios</b>" in card
    assert "- State the exact amount.\n+ Be friendly." in comment
    assert str(recorded) not in comment + (recorded / "agent-eval-report/results.json").read_text()


def test_an_unchanged_prompt_is_no_card(recorded):
    done, comment, _ = run(recorded, EXACT, "It is $12.", "--baseline", "base")
    assert done.returncode == 0, done.stdout
    assert not list_cards(comment)
    assert "instructions" not in comment


def test_a_changed_prompt_without_a_failure_informs(recorded):
    done, comment, _ = run(recorded, FRIENDLY, "It is $12.", "--baseline", "base")
    assert done.returncode == 0, done.stdout
    assert not list_cards(comment)
    assert "<details><summary>🔵 instructions of <code>teller</code> changed" in comment
    assert "instructions of `teller` changed in 12 scenarios" in comment
