from __future__ import annotations

import json
from importlib import import_module

import pytest

from ci_agent_eval.errors import InputError, build_install_command, create_lazy_getattr
from tests.tables import each_row

PACKAGES = ("", ".checks", ".engine", ".opik.decorators")


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_exports_its_public_names_and_no_others(name):
    package = import_module(f"ci_agent_eval{name}")
    for public in package.__all__:
        assert callable(getattr(package, public))
    with pytest.raises(
        AttributeError, match=rf"^module 'ci_agent_eval{name}' has no attribute 'x'$"
    ):
        package.x  # noqa: B018 - it is the asking that is tested


def test_a_missing_library_is_an_input_error_only_with_an_extra():
    missing = {"Thing": "no_such_module"}
    with pytest.raises(ModuleNotFoundError):
        create_lazy_getattr("package", missing)("Thing")
    with pytest.raises(InputError) as error:
        create_lazy_getattr("package", missing, extra="evals")("Thing")
    assert str(error.value) == (
        "Thing needs ci_agent_eval.no_such_module, which is not installed; "
        f"run: {build_install_command('evals')}"
    )


@each_row(
    ("origin", "source"),
    [
        ({}, ""),
        ({"url": "file:///home/me/desk", "dir_info": {}}, " @ file:///home/me/desk"),
        (
            {
                "url": "https://me:secret@git.example.com/org/eval",
                "vcs_info": {"vcs": "git", "requested_revision": "v1", "commit_id": "abc"},
            },
            " @ git+https://git.example.com/org/eval@v1",
        ),
        (
            {"url": "https://git.example.com/e", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            " @ git+https://git.example.com/e@abc",
        ),
    ],
)
def test_an_extra_is_installed_from_where_the_package_came(tmp_path, monkeypatch, origin, source):
    installed = tmp_path / "ci_agent_eval-9.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: ci-agent-eval\nVersion: 9\n")
    (installed / "direct_url.json").write_text(json.dumps(origin))
    monkeypatch.syspath_prepend(tmp_path)
    assert build_install_command("evals") == f"pip install 'ci-agent-eval[evals]{source}'"
