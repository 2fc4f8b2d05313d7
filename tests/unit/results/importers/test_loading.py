"""Files of other tools at the one entry to result files: beside ours, in any order, as archives."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import pytest

from ci_agent_eval.results.load import load_results
from tests.tables import each_row

FILES = Path(__file__).parents[3] / "fixtures/interchange"


@pytest.fixture
def folder(tmp_path):
    def put(*names):
        for name in names:
            target = tmp_path / name.replace("/", "-")
            shutil.copy(FILES / name, target)
        return tmp_path

    return put


def kinds(loaded):
    return {finding.kind for finding in loaded.findings}


def test_an_eval_archive_holds_the_same_as_its_json(folder):
    root = folder("inspect_ai/repeated.eval", "inspect_ai/once.json")
    archived = load_results(["inspect_ai-repeated.eval"], [], root=root)
    plain = load_results(["inspect_ai-once.json"], [], root=root)
    assert not archived.findings
    assert [(e.scenario_id, e.iteration, e.outcome, e.tokens) for e in archived.episodes] == [
        (e.scenario_id, iteration, e.outcome, e.tokens)
        for e in plain.episodes
        for iteration in (1, 2)
    ]


def test_an_archive_of_something_else_is_a_finding(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.eval", "w") as opened:
        opened.writestr("samples/a_epoch_1.json", "{}")
    loaded = load_results(["a.eval"], [], root=tmp_path)
    (first, *_) = [f for f in loaded.findings if f.kind == "unreadable_file"]
    assert "without header.json" in first.message
    assert "inspect log convert --to json" in first.message


@each_row("content", [b"PK", b"PK\x03\x04broken", b"PK\x05\x06" + bytes(18)])
def test_a_broken_archive_is_a_finding(tmp_path, content):
    (tmp_path / "a.eval").write_bytes(content)
    assert "unreadable_file" in kinds(load_results(["a.eval"], [], root=tmp_path))


@each_row("member", ["header.json", "samples/a_epoch_1.json"])
@each_row("text", ["[]", "{", "\xff", "null"])
def test_a_broken_member_is_a_finding(tmp_path, member, text):
    header = '{"version": 2, "status": "success", "eval": {"task": "a", "model": "b"}}'
    members = {"header.json": header, "samples/a_epoch_1.json": "{}"} | {member: text}
    with zipfile.ZipFile(tmp_path / "a.eval", "w") as opened:
        for name, content in members.items():
            opened.writestr(name, content.encode("latin-1"))
    assert "unreadable_file" in kinds(load_results(["a.eval"], [], root=tmp_path))


def test_providers_in_files_of_their_own_are_no_duplicates(folder):
    root = folder("promptfoo/repeated.json")
    text = (root / "promptfoo-repeated.json").read_text()
    (root / "other.json").write_text(
        text.replace('"desk"', '"night desk"').replace("parrot", "jay")
    )
    assert not load_results(["*.json"], [], root=root).findings


def test_a_file_of_a_folder_that_is_no_result_is_a_finding(folder):
    root = folder("promptfoo/once.json")
    (root / "package.json").write_text("{}")
    found = load_results(["."], [], root=root)
    assert [(one.kind, one.where) for one in found.findings] == [
        ("unreadable_file", "package.json")
    ]
    assert len(found.episodes) == 10
