"""What the repository generates or records about itself is current: action.yml, pages, versions.

tests/container/test_release.py runs the scripts of a release.
"""

from __future__ import annotations

import importlib
import json
import re
import tomllib
from pathlib import Path

from ruamel.yaml import YAML

from ci_agent_eval.app.report_publication import build_outputs
from ci_agent_eval.config.inputs import ACTION_INPUTS, RUN_INPUTS
from ci_agent_eval.config.options import INPUT_OPTIONS
from ci_agent_eval.engine.adapters.frameworks.registry import FRAMEWORKS as ADAPTERS
from scripts import architecture, line_budgets, pin_action, reference, release_notes
from scripts.matrix_sample import PARTS, SECONDS, choose_parts
from tests.builders import episode, evaluated, report
from tests.frameworks import page as frameworks_page
from tests.frameworks.frameworks import FRAMEWORKS
from tests.frameworks.rows import COLUMNS
from tests.tables import each_row

ROOT = Path(__file__).parents[2]
ADDRESSES = {"comment-url", "check-run-url"}


def section(name, path=reference.ACTION):
    """Return the entries of a top-level mapping of an action with their descriptions."""
    text = path.read_text("utf-8")
    body = re.search(rf"^{name}:\n(.*?)(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL)[1]
    entries = re.findall(r"^  ([\w-]+):\n((?:    .*\n|\n)+)", body, re.MULTILINE)
    return {entry: describe(block) for entry, block in entries}


def describe(block):
    found = re.search(r"description: (?:>-\n)?((?:.|\n(?=      ))*)", block)[1]
    return " ".join(found.split()).strip("'")


def test_the_inputs_are_those_the_code_reads():
    known = {given.name for given in ACTION_INPUTS} | {option.name for option in INPUT_OPTIONS}
    assert set(section("inputs")) == known


def test_the_outputs_are_those_the_code_sets(tmp_path):
    assert set(section("outputs")) == set(build_outputs(report(episode()), tmp_path)) | ADDRESSES


def test_action_yml_and_the_reference_page_are_generated_from_the_tables():
    action = reference.ACTION.read_text("utf-8")
    assert reference.render_action(action) == action, "run `make docs`"
    page = reference.PAGE.read_text("utf-8")
    assert reference.render_page(page, action) == page, "run `make docs`"


def test_the_action_without_docker_is_generated_from_the_same_tables():
    action, text = reference.ACTION.read_text("utf-8"), reference.REPORT_ACTION.read_text("utf-8")
    assert reference.render_report_action(text, action) == text, "run `make docs`"
    assert set(section("inputs", reference.REPORT_ACTION)) == set(section("inputs")) - RUN_INPUTS
    assert set(section("outputs", reference.REPORT_ACTION)) == set(section("outputs"))


@each_row(
    ("passed", "score"),
    [((), ""), ((True, True, False), "0.666667"), ((True,), "1"), ((False,), "0")],
)
def test_what_evaluations_came_to_is_an_output(tmp_path, passed, score):
    runs = [evaluated("a", *passed)] if passed else []
    found = build_outputs(report(episode(), *runs), tmp_path)
    whole = str(int(all(passed) and bool(passed)))
    assert (found["conversations"], found["conversations-passed"]) == (str(len(runs)), whole)
    assert found["average-score"] == score


def test_the_architecture_is_generated_from_the_contracts():
    page = architecture.PAGE.read_text("utf-8")
    assert architecture.render_page(page) == page, "run `make docs`"


def test_every_package_is_on_exactly_one_level():
    named = sorted(name for level in architecture.read_levels() for name in level)
    found = [path.parent.name for path in architecture.PACKAGE.glob("*/__init__.py")]
    assert named == sorted([*found, "errors"])


def test_the_table_is_that_of_the_recorded_rows():
    text = frameworks_page.PAGE.read_text("utf-8")
    assert frameworks_page.render_page(text) == text, "run `make frameworks`"


def test_every_adapter_has_a_row_and_every_row_the_locked_version():
    rows = frameworks_page.order_rows()
    assert list(rows) == list(FRAMEWORKS)
    without_adapter = {"node", "sdks"}  # other languages, and functions
    tested = [one for one in FRAMEWORKS.values() if one.environment not in without_adapter]
    assert len(tested) == len(ADAPTERS)
    for name, row in rows.items():
        package, _, version = row["version"].partition(" ")
        assert version in find_locked_versions(FRAMEWORKS[name].environment, package), name
        assert list(row["cells"]) == list(COLUMNS)


def find_locked_versions(environment, package):
    """Return the versions of a package in an environment's lock; some differ by Python."""
    if environment == "node":
        lock = json.loads((ROOT / "tests/package-lock.json").read_text())
        return [lock["packages"][f"node_modules/{package}"]["version"]]
    sections = (ROOT / "requirements/matrix.txt").read_text()
    lock = sections.partition(f"# [{environment}]\n")[2].partition("\n\n")[0]
    return re.findall(rf"^{package}==(\S+)", lock, re.MULTILINE)


PUBLIC_PACKAGES = ("ci_agent_eval", "ci_agent_eval.checks", "ci_agent_eval.engine")


@each_row("package", PUBLIC_PACKAGES)
def test_the_page_of_the_public_api_lists_the_names_of_a_package(package):
    page = (ROOT / "docs/public-api.md").read_text("utf-8")
    section = page.partition(f"\n`{package}`:")[2].partition("\n\n")[0]

    assert re.findall(r"`(\w+)`", section) == importlib.import_module(package).__all__


OLDEST = dict(
    re.findall(
        r"^([\w.-]+)==(\S+)",
        (ROOT / "requirements/matrix.txt")
        .read_text()
        .partition("# [compat-oldest]\n")[2]
        .partition("\n\n")[0],
        re.MULTILINE,
    )
)


def test_the_oldest_that_is_run_is_the_oldest_that_is_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (pytest_bound,) = project["optional-dependencies"]["pytest"]
    (pydantic_bound,) = (d for d in project["dependencies"] if d.startswith("pydantic>"))
    assert OLDEST["pytest"].startswith(pytest_bound.removeprefix("pytest>=") + ".")
    assert OLDEST["pydantic"].startswith(
        pydantic_bound.removeprefix("pydantic>=").partition(",")[0] + "."
    )


def test_packages_over_or_without_a_budget_are_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(line_budgets, "ROOT", tmp_path)
    (tmp_path / "line_budgets.toml").write_text("[lines]\nrender = 3\nnew = 0\n")
    render, new = (tmp_path / "ci_agent_eval" / name for name in ("render/html", "new"))
    for folder in (render, new):
        folder.mkdir(parents=True)
    (render / "page.py").write_text("x = 1\n" * 3)

    assert line_budgets.main() == 0

    (render / "page.py").write_text("x = 1\n" * 4)
    (new / "module.py").write_text("x = 1\n")
    assert line_budgets.main() == 1
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("new has 1 lines, and line_budgets.toml allows 0;")
    assert second.startswith("render has 4 lines, and line_budgets.toml allows 3;")


COMMITS = [f"{number:08x}" for number in range(len(PARTS))]


def test_the_choice_depends_on_commit_and_change_alone_and_fits_the_time():
    for commit in COMMITS:
        chosen = choose_parts(commit, ["README.md"])
        assert chosen == choose_parts(commit, ["README.md"])
        assert 0 < sum(part.seconds for part in chosen) <= SECONDS


def test_every_part_has_its_turn():
    assert {part for commit in COMMITS for part in choose_parts(commit, [])} == set(PARTS)


def test_what_the_change_can_touch_goes_first():
    chosen = choose_parts("0", ["ci_agent_eval/render/html/page.py", "README.md"])
    assert chosen[0].words == ("full", "ARGS=-q tests/integration/html")
    (framework,) = (part for part in PARTS if "NAME=strands" in part.words)
    assert framework in [part for part in PARTS if "requirements/matrix.txt" in part.touched_by]


DIGEST = "sha256:" + "0123456789abcdef" * 4


def test_the_action_runs_the_image_by_its_digest(tmp_path):
    path = tmp_path / "action.yml"
    path.write_text((ROOT / "action.yml").read_text())
    image = f"registry.example:5000/org/agent-eval@{DIGEST}"
    assert pin_action.main([image, str(path)]) == 0
    before, after = (YAML(typ="safe").load(p.read_text()) for p in (ROOT / "action.yml", path))
    assert after["runs"] == {"using": "docker", "image": f"docker://{image}"}
    assert {k: v for k, v in after.items() if k != "runs"} == {
        k: v for k, v in before.items() if k != "runs"
    }


@each_row(
    "image",
    [
        "registry.example/org/agent-eval:v1",
        "registry.example/org/agent-eval@sha256:123",
        f"org agent@{DIGEST}",
        f"agent-eval@{DIGEST}",
        f"registry.example/org/agent-eval@{DIGEST}\n  pre-entrypoint: evil",
        "",
    ],
)
def test_other_images_are_refused_and_change_nothing(tmp_path, image, capsys):
    path = tmp_path / "action.yml"
    path.write_text((ROOT / "action.yml").read_text())
    assert pin_action.main([image, str(path)]) == 2
    assert path.read_text() == (ROOT / "action.yml").read_text()
    assert "no image by its digest" in capsys.readouterr().err


def test_the_changelog_becomes_notes_once_its_section_is_headed():
    text = (ROOT / "CHANGELOG.md").read_text()
    headed = text.replace("## [Unreleased]", "## [1.0.0] - 2026-11-23", 1)
    assert release_notes.find_notes(headed, "1.0.0").startswith("### Added")


def test_the_tests_of_every_pytest_exist():
    makefile = (ROOT / "Makefile").read_text("utf-8").replace("\\\n", " ")
    (names,) = re.findall(r"^ON_EVERY_PYTEST := (.*)$", makefile, re.MULTILINE)
    for name in map(Path, names.split()):
        assert (ROOT / "tests/plugin" / name.parent / f"test_{name.name}.py").is_file(), name
