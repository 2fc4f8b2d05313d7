"""The differences of two trees, read from a real repository."""

from __future__ import annotations

import os
from hashlib import sha256

import pytest

from ci_agent_eval.dependencies.git import find_repository
from ci_agent_eval.dependencies.selection.changes import compare_trees
from tests.repositories import TestRepository


@pytest.fixture
def repository(tmp_path):
    found = TestRepository(tmp_path / "desk")
    found.write("agent.py", "x = 1\n")
    found.write("prompts/a.md", "hello\n")
    found.write("with\nnewline.md", "odd\n")
    found.base = found.commit()
    return found


def compare(repository, head=None, hashes=None):
    git = find_repository(repository.folder, os.environ)
    assert git is not None
    found = compare_trees(git, repository.base, head, hashes or {})
    assert found.folders == {"prompts"}
    return found.files


def digest(text):
    return sha256(text.encode()).hexdigest()


def test_an_unchanged_tree(repository):
    read = {"agent.py": digest("x = 1\n"), "prompts/a.md": digest("hello\n")}
    assert compare(repository, hashes=read) == {}


def test_the_working_tree_has_edits_new_and_deleted_files(repository):
    repository.write("agent.py", "x = 2\n")
    repository.write("new.md", "n")
    (repository.folder / "prompts/a.md").unlink()
    found = compare(repository)
    assert [(path, one.old, one.new) for path, one in found.items()] == [
        ("agent.py", b"x = 1\n", b"x = 2\n"),
        ("new.md", None, b"n"),
        ("prompts/a.md", b"hello\n", None),
    ]


def test_a_new_file_that_git_ignores_is_found_where_it_was_looked_for(repository):
    repository.write(".gitignore", "*.flag\n")
    repository.base = repository.commit()
    repository.write("beta.flag", "on")
    git = find_repository(repository.folder, os.environ)
    paths = ("beta.flag", "gamma.flag")
    assert list(compare_trees(git, repository.base, None, {}, paths).files) == ["beta.flag"]
    assert list(compare_trees(git, repository.base, None, {}).files) == []


def test_two_commits_need_no_working_tree(repository):
    repository.write("agent.py", "x = 2\n")
    head = repository.commit()
    repository.write("agent.py", "x = 3\n")
    assert compare(repository, head)["agent.py"].new == b"x = 2\n"


def test_a_rename_is_a_deletion_and_a_new_file(repository):
    repository.git("mv", "agent.py", "desk.py")
    found = compare(repository)
    assert found["agent.py"].new is None
    assert found["desk.py"].old is None


def test_other_bytes_on_disk_than_in_git_count_as_changed(repository):
    # As with `eol=crlf`: git shows no difference between what it has and what was read.
    assert list(compare(repository, hashes={"agent.py": digest("x = 1\r\n")})) == ["agent.py"]
    assert list(compare(repository, hashes={"lost.py": digest("")})) == ["lost.py"]


def test_a_changed_link_and_a_changed_mode(repository):
    (repository.folder / "link").symlink_to("agent.py")
    repository.base = repository.commit()
    (repository.folder / "link").unlink()
    (repository.folder / "link").symlink_to("prompts/a.md")
    (repository.folder / "agent.py").chmod(0o755)
    found = compare(repository)
    assert (found["link"].old, found["link"].new) == (b"agent.py", b"prompts/a.md")
    assert "agent.py" in found


def test_a_pointer_of_lfs_and_a_submodule_are_special(repository):
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 1\n"
    repository.write("data.bin", pointer)
    other = TestRepository(repository.folder / "vendor")
    other.write("a", "b")
    other.commit()
    repository.git("add", "-A")
    repository.commit()
    found = compare(repository)
    assert found["data.bin"].is_special
    assert found["vendor"].is_special


def test_paths_with_line_ends_are_compared(repository):
    assert list(compare(repository, hashes={"with\nnewline.md": digest("odd\n")})) == [
        "with\nnewline.md"
    ]


@pytest.mark.parametrize(
    ("words", "write"),
    [
        ("config core.autocrlf true", b"hello\r\n"),
        ("update-index --assume-unchanged prompts/a.md", b"good day\n"),
        ("update-index --skip-worktree prompts/a.md", b"good day\n"),
        ("sparse-checkout set --no-cone /* !/prompts/a.md", None),
    ],
)
def test_a_change_that_git_hides_is_found_by_the_bytes(repository, words, write):
    repository.git(*words.split())
    file = repository.folder / "prompts/a.md"
    if write is not None:
        file.write_bytes(write)
    assert compare(repository) == {}
    found = compare(repository, hashes={"prompts/a.md": digest("hello\n")})
    assert [(path, one.old, one.new) for path, one in found.items()] == [
        ("prompts/a.md", b"hello\n", write)
    ]


def test_a_link_that_became_a_file_is_found(repository):
    link = repository.folder / "current.md"
    link.symlink_to("prompts/a.md")
    repository.base = repository.commit()
    read = {"current.md": digest("prompts/a.md")}
    assert compare(repository, hashes=read) == {}
    repository.git("config", "core.symlinks", "false")
    link.unlink()
    link.write_text("prompts/a.md")
    assert list(compare(repository, hashes=read)) == ["current.md"]
