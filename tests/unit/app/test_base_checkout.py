"""Which commit is the base of a confirmation, and the copy of an environment for it."""

from __future__ import annotations

import subprocess
import venv

import pytest

from ci_agent_eval.app.confirmation import copy_environment, find_base_ref
from ci_agent_eval.errors import InputError
from tests.tables import each_row


@each_row(
    ("given", "found"),
    [
        (("develop", {"GITHUB_BASE_REF": "main"}, "origin/x", "a1b2"), "develop"),
        ((None, {"GITHUB_BASE_REF": "main"}, "origin/x", "a1b2"), "origin/main"),
        ((None, {"GITHUB_BASE_REF": ""}, "origin/x", "a1b2"), "origin/x"),
        ((None, {}, None, "a1b2"), "a1b2"),
    ],
)
def test_the_base_is_what_is_known_best(given, found):
    assert find_base_ref(*given) == found


def test_an_unknown_base_has_to_be_named():
    with pytest.raises(InputError, match=r"set confirm-base, such as origin/main"):
        find_base_ref(None, {}, None, None)


def test_programs_of_a_copied_environment_run_in_the_copy(tmp_path):
    source, target = tmp_path / "environment", tmp_path / "copy"
    venv.create(source, symlinks=True, with_pip=False)
    program = source / "bin/where"
    program.write_text(f"#!{source}/bin/python\nimport sys\nprint(sys.prefix)\n")
    program.chmod(0o755)
    assert copy_environment(str(source / "bin/python"), target) == str(target / "bin/python")
    done = subprocess.run([target / "bin/where"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(target)


def test_an_interpreter_in_no_environment_cannot_be_copied(tmp_path):
    with pytest.raises(InputError, match="is not in a virtual environment"):
        copy_environment(str(tmp_path / "bin/python"), tmp_path / "copy")
