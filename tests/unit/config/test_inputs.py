"""The action's inputs as data: split as a shell would, and never seen by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.config.inputs import ActionInputs, parse_inputs
from ci_agent_eval.errors import InputError
from tests.tables import each_row


def test_nothing_given_is_a_run_with_the_defaults():
    assert parse_inputs({"INPUT_MODE": "", "INPUT_PATHS": "  "}) == ActionInputs()


def test_lists_come_as_lines_or_words_with_comments():
    inputs = parse_inputs(
        {
            "INPUT_PATHS": "tests/a\n'tests/with blank'  # the rest later",
            "INPUT_PYTEST-ARGS": "-k 'refund and not slow'",
            "INPUT_INSTALL": "pip install -r requirements.txt\n\n# nothing\npip install .",
            "INPUT_CHECK-NAME": "evals",
        }
    )
    assert inputs.paths == ("tests/a", "tests/with blank")
    assert inputs.pytest_args == ("-k", "refund and not slow")
    assert inputs.install == (("pip", "install", "-r", "requirements.txt"), ("pip", "install", "."))
    assert inputs.options == {"check-name": "evals"}


def test_a_setting_that_is_no_input_is_refused_with_its_other_names():
    told = r"^input min-pass-rate: .* gate\.min_pass_rate .* AGENT_EVAL_MIN_PASS_RATE below `env`$"
    with pytest.raises(InputError, match=told):
        parse_inputs({"INPUT_MIN-PASS-RATE": "0.9"})


def test_what_became_of_other_jobs_is_about_a_report():
    given = {"INPUT_JOBS-RESULT": "cancelled"}
    assert parse_inputs({**given, "INPUT_MODE": "report"}).jobs_result == "cancelled"
    assert parse_inputs({"INPUT_MODE": "report"}).jobs_result == "success"


@each_row(
    ("more", "is_refused"),
    [
        ({}, True),
        ({"INPUT_MODE": "report"}, True),
        ({"INPUT_SUITE": "small"}, False),
        ({"INPUT_CHECK-NAME": "evals (small)"}, False),
        ({"INPUT_SHARD": "1/2"}, False),
        ({"INPUT_PUBLISH": "false"}, False),
        ({"INPUT_JOB-TOTAL": "1"}, False),
        ({"INPUT_JOB-TOTAL": ""}, False),
        ({"INPUT_MODE": "publish"}, False),
    ],
)
def test_jobs_of_a_matrix_need_names_of_their_own(more, is_refused):
    environ = {"INPUT_JOB-TOTAL": "2", **more}
    if not is_refused:
        parse_inputs(environ)
        return
    with pytest.raises(InputError, match=r"^input suite: .* 2 jobs .* `suite: \$\{\{ matrix"):
        parse_inputs(environ)


def test_the_token_is_not_in_the_repr():
    inputs = parse_inputs({"INPUT_GITHUB-TOKEN": "ghs_secret"})
    assert inputs.token == "ghs_secret"
    assert "ghs_secret" not in repr(inputs)


@given(st.text(), st.sampled_from(["PATHS", "INSTALL", "RESULTS", "MODE"]))
def test_any_text_is_read_or_refused_with_a_sentence(text, name):
    refused = []
    try:
        parse_inputs({f"INPUT_{name}": text})
    except InputError as error:
        refused.append(str(error))
    assert all(sentence.startswith(f"input {name.lower()}: ") for sentence in refused)


def test_an_open_quote_is_named():
    with pytest.raises(InputError, match="input install: No closing quotation"):
        parse_inputs({"INPUT_INSTALL": "pip install 'x"})
