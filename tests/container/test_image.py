"""What the image is, apart from what the action does."""

from __future__ import annotations

import json

import pytest

from tests.container.engine import run

pytestmark = [pytest.mark.container, pytest.mark.timeout(1200)]


def inside(image: str, *command: str) -> str:
    """Return what ``command`` prints in a fresh container."""
    program, *arguments = command
    start = ["docker", "run", "--rm", "--network", "none", "--entrypoint", program, image]
    done = run([*start, *arguments])
    assert done.returncode == 0, done.stdout
    return done.stdout


def inspected(image: str) -> dict:
    return json.loads(run(["docker", "image", "inspect", image]).stdout)[0]


def test_entrypoint_is_absolute_and_the_user_is_root(image):
    config = inspected(image)["Config"]

    assert config["Entrypoint"] == ["/opt/agent-eval/bin/agent-eval", "action"]
    assert config["User"] == ""
    assert config["Labels"]["org.opencontainers.image.title"] == "agent-eval"


def test_its_size_is_bounded(image):
    """Half is the base with Python; 55 MB are NumPy, 20 MB git, and 40 MB uv."""
    assert inspected(image)["Size"] < 290_000_000


def test_replacing_a_package_that_both_environments_share_leaves_the_reporter_alone(image):
    script = (
        "set -e; /opt/suite/bin/pip uninstall --quiet --yes pydantic pydantic_core\n"
        "! /opt/suite/bin/python -c 'import pydantic' 2>/dev/null\n"
        "/opt/agent-eval/bin/agent-eval schema | head -c 1\n"
    )

    assert inside(image, "bash", "-c", script) == "{"


def test_git_clones_and_has_what_it_needs_for_https(image):
    script = (
        "cd /tmp; set -e; git init -q one; cd one\n"
        "git -c user.name=a -c user.email=b commit -q --allow-empty -m first\n"
        "git clone -q file:///tmp/one /tmp/two; cd /tmp/two; git submodule update --init\n"
        "git log --format=%s\n"
        "git ls-remote https://127.0.0.1:1/one 2>&1 || true\n"
    )

    first, refused = inside(image, "bash", "-c", script).splitlines()
    assert first == "first"
    assert "Failed to connect to 127.0.0.1" in refused


def test_holds_what_comparing_needs(image):
    assert inside(image, "git", "--version").startswith("git version")
    script = "from ci_agent_eval.analysis import distributions; print(distributions.import_numpy().add(1, 1))"
    assert inside(image, "/opt/agent-eval/bin/python", "-c", script).strip() == "2"


def test_reporter_and_suite_have_their_own_environments(image):
    script = "import sys, importlib.util as u; print(sys.prefix, u.find_spec(sys.argv[1]) is None)"

    assert inside(image, "/opt/agent-eval/bin/python", "-c", script, "pytest").split() == [
        "/opt/agent-eval",
        "True",
    ]
    assert inside(image, "/opt/suite/bin/python", "-c", script, "github").split() == [
        "/opt/suite",
        "True",
    ]


def test_another_environment_of_the_suite_is_made_by_uv(image):
    script = (
        "set -e; cd /opt/agent-eval/bin\n"
        "./uv venv --quiet --no-config --no-project --python 3.13 /tmp/other\n"
        "/tmp/other/bin/python --version; grep -c ^pytest== /opt/suite.txt"
    )

    version, pins = inside(image, "bash", "-c", script).splitlines()
    assert version.startswith("Python 3.13.")
    assert pins == "1"


def test_suite_environment_is_consistent_for_pip(image):
    assert "No broken requirements" in inside(image, "/opt/suite/bin/pip", "check")
    assert "ci-agent-eval" not in inside(image, "/opt/suite/bin/pip", "list")
