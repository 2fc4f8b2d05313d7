"""A release points the action at the bytes that were built, and shows its part of the changelog.

tests/container/test_release.py runs the scripts of a release.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
DIGEST = "sha256:" + "0123456789abcdef" * 4


def load_script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / f"scripts/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pin_action():
    return load_script("pin_action")


@pytest.fixture(scope="module")
def release_notes():
    return load_script("release_notes")


def test_the_action_runs_the_image_by_its_digest(pin_action, tmp_path):
    path = tmp_path / "action.yml"
    path.write_text((ROOT / "action.yml").read_text())
    image = f"registry.example:5000/org/agent-eval@{DIGEST}"
    assert pin_action.main([image, str(path)]) == 0
    before, after = (YAML(typ="safe").load(p.read_text()) for p in (ROOT / "action.yml", path))
    assert after["runs"] == {"using": "docker", "image": f"docker://{image}"}
    assert {k: v for k, v in after.items() if k != "runs"} == {
        k: v for k, v in before.items() if k != "runs"
    }


@pytest.mark.parametrize(
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
def test_what_is_no_digest_is_refused_and_changes_nothing(pin_action, tmp_path, image, capsys):
    path = tmp_path / "action.yml"
    path.write_text((ROOT / "action.yml").read_text())
    assert pin_action.main([image, str(path)]) == 2
    assert path.read_text() == (ROOT / "action.yml").read_text()
    assert "no image by its digest" in capsys.readouterr().err


def test_the_changelog_becomes_notes_once_its_section_is_headed(release_notes):
    text = (ROOT / "CHANGELOG.md").read_text()
    headed = text.replace("## [Unreleased]", "## [1.0.0] - 2026-11-23", 1)
    assert release_notes.find_notes(headed, "1.0.0").startswith("### Added")
