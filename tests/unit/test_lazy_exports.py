from __future__ import annotations

from importlib import import_module

import pytest

from ci_agent_eval.errors import InputError, create_lazy_getattr

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
        "run: pip install 'ci-agent-eval[evals]'"
    )
