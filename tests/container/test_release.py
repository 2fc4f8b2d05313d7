"""A release on this machine: to a registry and a repository of its own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.container.conftest import install_go_program
from tests.container.engine import ROOT, run

pytestmark = [pytest.mark.container, pytest.mark.timeout(1200)]

REGISTRY = "github.com/google/go-containerregistry/cmd/registry@v0.20.6"
PLATFORMS = {"Linux arm64": "aarch64-manylinux_2_28", "macOS arm64": "macos", "Windows": "windows"}


@pytest.fixture
def registry(engine: None) -> Iterator[str]:
    """A registry on a port that was free; its images are removed from the engine."""
    command = [install_go_program(REGISTRY), "-port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            (port,) = re.findall(r"serving on port (\d+)", process.stderr.readline())
            yield f"127.0.0.1:{port}"
            listed = run(["docker", "images", "-q", f"127.0.0.1:{port}/*/*"]).stdout.split()
            run(["docker", "rmi", "--force", *listed])
        finally:
            process.terminate()


def test_dry_run_pins_an_image_that_runs(registry, tmp_path):
    folder = tmp_path / "release"

    done = run([ROOT / "scripts/release/dry_run", folder, registry, "--network", "host"])

    assert done.returncode == 0, done.stdout
    assert "agent-eval, version" in done.stdout
    released = YAML(typ="safe").load(folder / "released/action.yml")["runs"]["image"]
    name, _, digest = released.removeprefix(f"docker://{registry}/").partition("@")
    assert done.stdout.endswith(f"released {registry}/{name}@{digest}\n")
    address = f"http://{registry}/v2/{name}/manifests/{digest}"
    accepted = {"Accept": "application/vnd.docker.distribution.manifest.list.v2+json"}
    with urllib.request.urlopen(urllib.request.Request(address, headers=accepted)) as reply:
        listed = json.load(reply)["manifests"]
    assert [one["platform"]["architecture"] for one in listed] == ["amd64", "arm64"]
    assert "### Added" in (folder / "notes.md").read_text("utf-8")
    tags = run(["git", "-C", folder / "remote.git", "tag", "--list", "v*"]).stdout.split()
    assert tags[-2:] == [tags[-1].partition(".")[0], tags[-1]]


@pytest.mark.parametrize("platform", PLATFORMS)
def test_locked_packages_have_wheels(platform, tmp_path):
    packages = ["--extra=inspect", "--group=lock"]
    image = ["--group=build", "--group=suite"] if platform.startswith("Linux") else []
    options = ["--dry-run", "--require-hashes", "--only-binary=:all:", "--python-version=3.13"]
    where = [f"--python-platform={PLATFORMS[platform]}", "--target", tmp_path]
    source = ["--requirement", "pyproject.toml", "--constraint", "requirements/lock.txt"]
    uv = [Path(sys.executable).with_name("uv"), "pip", "install", *options, *where]

    done = run([*uv, *source, *packages, *image])

    assert done.returncode == 0, done.stdout
