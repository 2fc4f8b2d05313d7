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
PLATFORMS = {
    "Linux arm64": ("manylinux_2_28_aarch64", "manylinux2014_aarch64"),
    "macOS arm64": ("macosx_14_0_arm64",),
    "Windows": ("win_amd64",),
}


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
    wanted = [word for name in PLATFORMS[platform] for word in ("--platform", name)]
    image = ("build", "suite") if platform.startswith("Linux") else ("lock",)
    options = ["--dry-run", "--ignore-installed", "--no-deps", "--require-hashes"]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", *options]

    for lock in ("action", *image):
        where = ["--target", tmp_path, "--requirement", Path("requirements") / f"{lock}.txt"]
        done = run([*pip, *wanted, "--python-version=3.13", "--only-binary=:all:", *where])
        assert done.returncode == 0, done.stdout
