"""Extensions of installed packages: which one has a name, and what is wrong with it."""

from __future__ import annotations

import pytest

from ci_agent_eval.authoring.scenarios.parts import build_check
from ci_agent_eval.checks import RequiredText
from ci_agent_eval.config.entry_points import CHECKS, list_extensions, load_extension
from ci_agent_eval.config.settings import load_settings
from ci_agent_eval.errors import InputError

CHECK = """
    class Short:
        def __init__(self, words=1):
            self.words = words
        def assertions(self, episode):
            return ()
    RequiredText = Short
    def odd():
        return 3
    def exiting():
        raise SystemExit(0)
"""


def test_a_check_of_a_package_has_its_name_and_arguments(packages):
    packages.add("acme-evals", CHECK, checks="Short")
    assert list_extensions(CHECKS) == ("Short",)
    assert build_check("Short").words == 1
    assert build_check({"Short": {"words": 3}}).words == 3


def test_a_name_of_ours_is_ours(packages):
    packages.add("acme-evals", CHECK, checks="RequiredText")
    assert isinstance(build_check({"RequiredText": {"texts": ["a"]}}), RequiredText)


def test_a_package_without_the_name_is_not_imported(packages):
    packages.add("broken-evals", "raise SystemExit(0)", checks="Short")
    assert load_extension(CHECKS, "Long") is None
    with pytest.raises(InputError, match=r"unknown key 'Shor'; did you mean 'Short'\?"):
        build_check("Shor")


@pytest.mark.parametrize(
    ("code", "name", "problem"),
    [
        ("import no_such_module", "Short", "cannot be imported (ModuleNotFoundError: No module"),
        ("raise SystemExit(0)", "Short", "cannot be imported (SystemExit: 0)"),
        ("pass", "Short", "cannot be imported (AttributeError: module 'acme_evals' has no"),
    ],
)
def test_a_package_that_cannot_be_imported_is_named(packages, code, name, problem):
    packages.add("acme-evals", code, checks=name)
    with pytest.raises(InputError) as caught:
        build_check(name)
    sentence = str(caught.value)
    assert sentence.startswith(f"ci_agent_eval.checks '{name}' of the package acme-evals {problem}")
    assert sentence.endswith("; correct or uninstall the package")


def test_what_is_no_check_is_refused(packages):
    packages.add("acme-evals", CHECK, checks="odd")
    with pytest.raises(InputError, match=r"^odd: made a int, which is not a Check or evaluator$"):
        build_check("odd")


def test_a_check_that_exits_is_refused(packages):
    packages.add("acme-evals", CHECK, checks="exiting")
    with pytest.raises(InputError, match=r"^exiting: cannot be built \(SystemExit: 0\)$"):
        build_check("exiting")


def test_two_packages_with_one_name_are_an_error(packages):
    packages.add("acme-evals", CHECK, checks="Short")
    packages.add("other-evals", CHECK, checks="Short")
    problem = "the packages acme-evals and other-evals have this name; uninstall all but one"
    with pytest.raises(InputError, match=f"^ci_agent_eval.checks 'Short': {problem}$"):
        build_check("Short")


def test_a_format_is_known_by_its_name_alone(packages, tmp_path):
    packages.add("acme-evals", "raise SystemExit(0)", formats="chat")
    settings = load_settings(root=tmp_path, environ={}, flags={"formats": "ctrf chat"})
    assert settings.formats == ("ctrf", "chat")
    problem = "option --formats: unknown format 'chatt'; known formats: ctrf, chat"
    with pytest.raises(InputError, match=problem):
        load_settings(root=tmp_path, environ={}, flags={"formats": "chatt"})
