"""Report formats of installed packages: what they write, and what is refused."""

from __future__ import annotations

import json

import pytest

from ci_agent_eval.app.cli import main
from ci_agent_eval.app.pipeline import Job, report_files
from ci_agent_eval.app.report_folder import claim_report_folder, clear_report_folder
from ci_agent_eval.config.options import Settings
from ci_agent_eval.errors import InputError
from tests.builders import episode, write_run

CHAT = """
    import json
    class chat:
        file_name = "chat.json"
        prefix = '{"generator":'
        def render(self, verdict):
            return json.dumps({"generator": "acme", "text": verdict["headline"]})
    class again(chat):
        pass
    class ours(chat):
        file_name = "verdict.json"
    class elsewhere(chat):
        file_name = "../chat.json"
    class anonymous(chat):
        prefix = '{\\n  "text":'
    class empty:
        file_name, prefix = "empty.txt", "empty file"
    class raising(chat):
        file_name = "raising.json"
        def render(self, verdict):
            return verdict["no such key"]
    class other(raising):
        def render(self, verdict):
            return "text"
    class exiting(chat):
        file_name = "exiting.json"
        def render(self, verdict):
            raise SystemExit(0)
    class unborn(chat):
        def __init__(self):
            raise SystemExit(0)
    class sly(chat):
        @property
        def file_name(self):
            raise SystemExit(0)
    class Unreadable(Exception):
        def __str__(self):
            raise ValueError
    class unreadable(chat):
        file_name = "unreadable.json"
        def render(self, verdict):
            raise Unreadable
    def function():
        pass
    class arguments(chat):
        def __init__(self, needed):
            pass
"""


@pytest.fixture
def folder(packages, tmp_path):
    names = "chat again ours elsewhere anonymous empty raising other function arguments"
    names += " exiting unborn sly unreadable"
    packages.add("acme-evals", CHAT, formats=names)
    write_run(tmp_path / "agent-eval-report", episode(), junit=None)
    return tmp_path / "agent-eval-report"


def report(folder, *formats):
    settings = Settings.model_validate({"formats": formats})
    job = Job(settings, folder.parent, {})
    return report_files(job, results=["agent-eval-report"], junit=())


def test_it_gets_the_content_of_the_verdict_and_writes_its_file(folder):
    report(folder, "chat", "ctrf")
    first = (folder / "chat.json").read_bytes()
    assert json.loads(first) == {"generator": "acme", "text": "Agent evals passed: 1 of 1 scenario"}
    report(folder, "chat")
    assert (folder / "chat.json").read_bytes() == first
    assert not (folder / "ctrf.json").exists()
    clear_report_folder(folder, ["chat"])
    assert not (folder / "chat.json").exists()


@pytest.mark.parametrize(
    ("formats", "problem"),
    [
        (["chat", "again"], "has the file_name 'chat.json', which another file has"),
        (["ours"], "has the file_name 'verdict.json', which another file has"),
        (["elsewhere"], "needs a file_name of lower-case letters, digits and `._-`"),
        (["anonymous"], "needs a prefix of 8 letters or more"),
        (["empty"], "has no method render"),
        (["function"], "needs a file_name of lower-case letters"),
        (["raising"], "failed (KeyError: 'no such key')"),
        (["exiting"], "failed (SystemExit: 0)"),
        (["unborn"], "cannot be created (SystemExit: 0)"),
        (["unreadable"], "failed (Unreadable)"),
        (["other"], "returned no text that begins '{\"generator\":'"),
        (["arguments"], "cannot be created (TypeError: "),
    ],
)
def test_a_format_that_does_not_work_is_one_sentence(folder, formats, problem):
    with pytest.raises(InputError) as caught:
        report(folder, *formats)
    start = f"ci_agent_eval.formats '{formats[-1]}' of the package acme-evals {problem}"
    assert str(caught.value).startswith(start)
    assert str(caught.value).endswith("; correct or uninstall the package")


def test_a_format_that_raises_leaves_no_half_report(folder):
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(InputError, match="failed"):
        report(folder, "chat", "raising")
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_code_that_exits_anywhere_else_does_not_choose_the_exit_code(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder.parent)
    assert main(["report", "--results", "agent-eval-report", "--formats", "sly"]) == 3
    assert "unexpected RuntimeError: SystemExit: 0" in capsys.readouterr().err


def test_a_file_of_somebody_else_is_not_overwritten(folder):
    (folder / "chat.json").write_text("mine")
    claim_report_folder(folder)
    with pytest.raises(InputError, match=r"chat\.json: was not written by this program"):
        clear_report_folder(folder, ["chat"])
    with pytest.raises(InputError, match=r"chat\.json: was not written by this program"):
        report(folder, "chat")
    assert (folder / "chat.json").read_text() == "mine"
