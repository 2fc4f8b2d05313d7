from __future__ import annotations

import os
from pathlib import Path

import pytest

from ci_agent_eval.errors import InputError
from ci_agent_eval.results import file_search as module
from ci_agent_eval.results.file_search import FoundFiles, find_result_files
from tests.builders import episode, write_run
from tests.tables import each_row


def touch(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x", encoding="utf-8")


def junit_names(found: FoundFiles) -> list[str]:
    return [file.where for file in found.junit]


def test_order_is_by_bytes_and_each_file_comes_once(tmp_path: Path) -> None:
    touch(tmp_path, "b.xml", "a.xml", "é.xml", "Z.xml", "sub/a.xml")
    patterns = ["*.xml", "a.xml", "./b.xml", "sub/../a.xml", "**/*.xml", str(tmp_path / "b.xml")]
    expected = ["Z.xml", "a.xml", "b.xml", "sub/a.xml", "é.xml"]
    assert junit_names(find_result_files([], patterns, tmp_path)) == expected
    assert junit_names(find_result_files([], patterns[::-1], tmp_path)) == expected


def test_too_many_files_are_named_by_a_pattern(tmp_path: Path) -> None:
    touch(tmp_path, *(f"out/{number}.json" for number in range(1001)))
    found = find_result_files(["out"], [], tmp_path)
    (finding,) = found.findings
    assert "1001 files" in finding.message
    assert found.episodes == ()


@each_row("pattern", ["", "  ", "a\0b"])
def test_a_pattern_without_meaning_is_a_usage_error(pattern: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="give a file, a folder, or a pattern"):
        find_result_files([pattern], [], tmp_path)


def test_a_link_that_leads_outside_is_a_finding(tmp_path: Path) -> None:
    touch(tmp_path, "secret.xml", "root/reports/a.xml")
    (tmp_path / "root/reports/b.xml").symlink_to(tmp_path / "secret.xml")
    (tmp_path / "root/reports/c.xml").symlink_to("a.xml")
    found = find_result_files([], ["reports/*.xml"], tmp_path / "root")
    assert junit_names(found) == ["reports/a.xml", "reports/c.xml"]
    assert [(f.where, "leads outside" in f.message) for f in found.findings] == [
        ("reports/b.xml", True)
    ]


def test_a_linked_folder_is_not_searched_silently(tmp_path: Path) -> None:
    write_run(tmp_path / "out/a", episode())
    (tmp_path / "out/b").symlink_to("a")
    found = find_result_files(["out"], [], tmp_path)
    assert [f.where for f in found.findings] == ["out/b"]


def test_linked_folders_of_others_are_told_once_and_do_not_block(tmp_path: Path) -> None:
    write_run(tmp_path / "out", episode())
    touch(tmp_path, "store/x/package.json", "out/unit.xml")
    for name in ("node_modules", "lib", "vendor"):
        (tmp_path / name).symlink_to("store/x")
    for arguments in ((["."], []), ([], ["."])):
        (finding,) = find_result_files(*arguments, tmp_path).findings
        assert (finding.where, finding.blocking) == ("lib", False)
        assert "2 more are linked folders" in finding.message


@each_row("name", ["agent-eval-report", "episodes-2", "Agent_Eval"])
def test_a_linked_folder_with_a_name_of_ours_blocks(name: str, tmp_path: Path) -> None:
    write_run(tmp_path / "out", episode())
    (tmp_path / "gone").mkdir()
    (tmp_path / name).symlink_to("gone")
    assert [(f.where, f.blocking) for f in find_result_files(["."], [], tmp_path).findings] == [
        (name, True)
    ]


def test_what_is_no_regular_file_is_a_finding(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.xml")
    (tmp_path / "broken.xml").symlink_to("gone")
    found = find_result_files([], ["*.xml", "broken.xml"], tmp_path)
    assert found.junit == ()
    assert sorted(f.where for f in found.findings) == ["broken.xml", "pipe.xml"]


def test_a_file_over_the_limit_is_a_finding(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(module, "MAX_FILE_BYTES", 10)
    (tmp_path / "big.xml").write_text("x" * 11, encoding="utf-8")
    found = find_result_files([], ["big.xml"], tmp_path)
    assert (found.junit, [f.where for f in found.findings]) == ((), ["big.xml"])
