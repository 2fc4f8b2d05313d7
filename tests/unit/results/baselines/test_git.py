"""Baselines in the history, read by a real git from a real repository."""

from __future__ import annotations

import os
import subprocess

import pytest

from ci_agent_eval.analysis.comparison.model import NoBaseline
from ci_agent_eval.errors import InputError
from ci_agent_eval.results.baselines.git import parse_git_location
from ci_agent_eval.results.baselines.load import load_baseline
from ci_agent_eval.results.baselines.request import BaselineRequest
from tests.builders import episode, failing, write_run
from tests.tables import each_row

PATH = os.environ["PATH"]


def git(folder, *arguments):
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@t.invalid", *arguments]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path):
    """A baseline on `main`, and another in the working tree."""
    root = tmp_path / "repository"
    write_run(root / "evals", episode("before"))
    git(root, "init", "--quiet", "--initial-branch=main")
    git(root, "add", "--force", ".")
    git(root, "commit", "--quiet", "--message=base")
    write_run(root / "evals", episode("now"))
    return root


def found(root, place):
    return load_baseline(BaselineRequest(f"git:{place}", root, search_path=PATH), {})


@pytest.mark.parametrize("ref", ["main", "HEAD", "main^{commit}"])
@pytest.mark.parametrize("path", ["evals/results.json", "evals", "evals/"])
def test_a_file_at_a_ref(repository, ref, path):
    baseline = found(repository, f"{ref}:{path}").baseline
    sha = git(repository, "rev-parse", "HEAD")
    assert [f.scenario_id for f in baseline.runs[0].episodes] == ["before"]
    assert baseline.label == f"{ref}@{sha[:7]}"


def test_a_file_that_is_not_there_at_the_ref_is_no_baseline(repository):
    result = found(repository, "main:other.json")
    assert result.findings == ()
    assert result.baseline.reason.startswith("other.json is not there at main@")


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("other:evals/results.json", "git knows no commit other here; fetch it before"),
        ("main:broken.json", "JSON"),
        ("main:link.json", ""),
    ],
)
def test_what_cannot_be_read_blocks(repository, place, message):
    (repository / "broken.json").write_text("{")
    (repository / "link.json").symlink_to("evals/results.json")
    git(repository, "add", "broken.json", "link.json")
    git(repository, "commit", "--quiet", "--message=broken")
    result = found(repository, place)
    assert [(f.kind, f.where, f.blocking) for f in result.findings] == [
        ("baseline", f"git:{place}", True)
    ]
    assert message in result.findings[0].message
    assert isinstance(result.baseline, NoBaseline)


def test_outside_a_repository(tmp_path):
    (finding,) = found(tmp_path, "main:results.json").findings
    assert "in no git repository" in finding.message


def test_without_git(repository):
    wanted = BaselineRequest("git:main:evals", repository, search_path="/nonexistent")
    (finding,) = load_baseline(wanted, {}).findings
    assert "git is not installed" in finding.message


@each_row(
    "place",
    ["--upload-pack=x:y", "-:y", ":y", "main", "main:", "main:/etc/passwd", "a b:c", "main:\0"],
)
def test_what_is_no_place_at_all(place):
    with pytest.raises(InputError, match="must be git:REF:PATH"):
        parse_git_location(f"git:{place}")


def test_the_repository_s_own_settings_start_nothing(repository, tmp_path):
    mark = tmp_path / "started"
    for name in ("core.fsmonitor", "core.pager", "diff.external", "core.sshCommand"):
        git(repository, "config", name, f"touch {mark}")
    write_run(repository / "evals", failing())
    assert found(repository, "main:evals").findings == ()
    assert not mark.exists()
