"""Settings: what wins over what, and what a wrong one is told."""

from __future__ import annotations

import pytest

from ci_agent_eval.config.options import OPTIONS, Settings
from ci_agent_eval.config.settings import load_settings
from ci_agent_eval.errors import InputError
from tests.tables import each_row


@pytest.fixture
def load(tmp_path):
    def load(text="", name="agent-eval.toml", environ=None, **flags):
        (tmp_path / name).write_text(text)
        named = {key.replace("_", "-"): value for key, value in flags.items()}
        return load_settings(root=tmp_path, environ=environ or {}, flags=named)

    return load


def test_without_anything_the_defaults_hold(tmp_path):
    assert load_settings(root=tmp_path, environ={}, flags={}) == Settings()


def test_flags_win_over_the_environment_and_that_over_the_file(load):
    text = "[gate]\nmin_pass_rate = 0.5\nmax_error_rate = 0.5\nallow_skipped = true\n"
    environ = {"AGENT_EVAL_MIN_PASS_RATE": "0.6", "AGENT_EVAL_MAX_ERROR_RATE": "0.6"}
    settings = load(text, environ=environ, min_pass_rate=0.7)
    assert settings.gate.min_pass_rate == 0.7
    assert settings.gate.max_error_rate == 0.6
    assert settings.gate.allow_skipped is True


def test_pyproject_s_table_is_read(load):
    settings = load('[tool.ci_agent_eval]\nsuite = "billing"\n', name="pyproject.toml")
    assert settings.suite == "billing"
    assert settings.check_name == "agent-eval (billing)"


def test_the_file_of_its_own_wins_over_pyproject(load, tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.ci_agent_eval]\nsuite = "a"\n')
    assert load('suite = "b"\n').suite == "b"


def test_a_budget_of_the_suite_can_be_soft(load):
    budget = load("[budgets]\ntotal_cost_usd = {limit = 2, hard = false}\n").budgets.total_cost_usd
    assert (budget.limit, budget.hard) == (2, False)


def test_an_empty_environment_variable_is_no_setting(load):
    assert load(environ={"AGENT_EVAL_SUITE": ""}).suite == "default"


@each_row(
    ("text", "sentence"),
    [
        (
            "[gate]\nmin_pas_rate = 0.9\n",
            "agent-eval.toml:2: gate: unknown key 'min_pas_rate'; did you mean 'min_pass_rate'?",
        ),
        ("suite = 'a'\n[gates]\nx = 1\n", "agent-eval.toml:2: unknown key 'gates'; did you mean"),
        (
            "[gate]\n\nmin_pass_rate = 90\n",
            "agent-eval.toml:3: gate.min_pass_rate: Input should be",
        ),
        (
            "[gate]\nmin_pass_rate = nan\n",
            "agent-eval.toml:2: gate.min_pass_rate: must be a finite",
        ),
        ("[budgets]\ntotal_costs = 1\n", "agent-eval.toml:2: budgets: unknown key 'total_costs'"),
        ("[budgets]\ntotal_tokens = -1\n", "agent-eval.toml:2: budgets.total_tokens.limit: Input"),
        ("suite = 'a b'\n", "agent-eval.toml:1: suite: String should match"),
        ("suite = \n", "agent-eval.toml: is not valid TOML: Invalid value (at line 1"),
        ("publish = 3\n", "agent-eval.toml:1: publish: must be a table"),
        *(
            (f"title = '{title}'\n", "agent-eval.toml:1: title: must be letters, digits, blanks")
            for title in ("", " Shop", "&", "Shop\u00a0", "<b>", "*Shop*", "a" * 41)
        ),
    ],
)
def test_a_wrong_file_is_told_where_and_what(load, text, sentence):
    with pytest.raises(InputError) as caught:
        load(text)
    assert str(caught.value).startswith(sentence)
    assert caught.value.exit_code == 2


@each_row("title", ["Shop", "é", "3 (a/b), c. & d+e-f", "a" * 40])
def test_a_title_holds_letters_digits_and_a_few_marks(load, title):
    assert load(f"title = '{title}'\n").title == title


def test_a_wrong_variable_and_a_wrong_flag_are_named(load):
    with pytest.raises(InputError, match="environment variable AGENT_EVAL_ALLOW_SKIPPED: "):
        load(environ={"AGENT_EVAL_ALLOW_SKIPPED": "perhaps"})
    with pytest.raises(InputError, match=r"option --comment: .* 'on-change' or 'off'"):
        load(comment="maybe")


PAGE = "https://github.com/o/r/actions/runs/1/artifacts/2"


@each_row("address", [PAGE, "https://h:8443", "https://e.example/?a=1&b=@%20"])
def test_the_address_of_the_page_is_https(load, address):
    assert load(environ={"AGENT_EVAL_REPORT_URL": address}).publish.report_url == address


@each_row(
    "address",
    [
        *("http://e.example/", "javascript:alert(1)", "https://", "//e.example", "e.example"),
        *("https://me:secret@e.example/", "https://secret@e.example", f"{PAGE}#scenario=a"),
        *(
            "https://e.example/a b",
            "https://e.example/\n",
            "https://e.example/\u202e",
            "https:///a",
        ),
        "https://e.example/" + "a" * 2_000,
    ],
)
def test_another_address_is_refused_without_being_shown(load, address):
    with pytest.raises(InputError) as caught:
        load(report_url=address)
    assert str(caught.value) == (
        "option --report-url: must be an https address without user name, password, # and blanks, "
        "at most 2,000 characters"
    )


def test_a_misspelt_variable_or_table_is_an_error(load, tmp_path):
    with pytest.raises(InputError, match="did you mean 'AGENT_EVAL_MIN_PASS_RATE'"):
        load_settings(root=tmp_path, environ={"AGENT_EVAL_MIN_PAS_RATE": "0.1"}, flags={})
    with pytest.raises(InputError, match=r"\[tool\.agent-eval\] is not read; call it \[tool\.ci_"):
        load("[tool.agent-eval]\nsuite = 'a'\n", name="pyproject.toml")


def test_a_configuration_file_that_was_named_must_be_there(tmp_path):
    with pytest.raises(InputError, match=r"gone\.toml: cannot be read .*check --config"):
        load_settings(root=tmp_path, environ={}, flags={}, config=tmp_path / "gone.toml")


def test_a_file_that_is_no_text_is_refused(tmp_path):
    (tmp_path / "agent-eval.toml").write_bytes(b"suite = '\xff'")
    with pytest.raises(InputError, match="is not UTF-8"):
        load_settings(root=tmp_path, environ={}, flags={})


@each_row("option", OPTIONS, ids=lambda option: option.name)
def test_every_option_reaches_the_key_it_names(option, tmp_path):
    given = {"number": "0.25", "count": "3", "flag": "false", "text": "some-text"}
    value = option.choices[-1] if option.kind == "choice" else given[option.kind]
    special = {
        "compare-across": "model",
        "formats": "ctrf",
        "score-thresholds": "*>=0.25",
        "report-url": "https://e.example/1",
    }
    value = special.get(option.name, value)
    settings = load_settings(root=tmp_path, environ={option.variable: value}, flags={})
    read = settings
    for name in option.key:
        read = getattr(read, name)
    if option.name == "score-thresholds":
        read, value = read["*"].limit, "0.25"
    read = read[0] if isinstance(read, tuple) else getattr(read, "limit", read)
    assert str(read).lower().removesuffix(".0") == value


@each_row(
    ("text", "sentence"),
    [
        ("level = 0", "compare.level: "),
        ("runs = 0", "compare.runs: "),
        ('across = ["weather"]', "compare.across.0: "),
        ("max_cost_increase = -1", "compare.max_cost_increase: "),
    ],
)
def test_a_comparison_that_means_nothing_is_refused(load, text, sentence):
    with pytest.raises(InputError, match=f"agent-eval.toml:2: {sentence}"):
        load(f"[compare]\n{text}\n")


def test_thresholds_of_evaluations_are_unset_or_the_policy_s(load):
    assert load().policy.eval_min_pass_rate is None
    policy = load(
        "[gate]\neval_min_pass_rate = 0.8\n", environ={"AGENT_EVAL_EVAL_MIN_SCORE": "0.7"}
    ).policy
    assert (policy.eval_min_pass_rate, policy.eval_min_score) == (0.8, 0.7)
    with pytest.raises(InputError, match=r"eval.min.score"):
        load(eval_min_score=80)


@each_row(("allowed", "of_part"), [(0.0, 0.0), (0.2, 1.0)])
def test_a_share_of_the_suite_s_errors_is_not_one_of_a_part_s(load, allowed, of_part):
    settings = load(f"[gate]\nmax_error_rate = {allowed}\neval_min_score = 0.5\n").for_shard()
    assert (settings.gate.max_error_rate, settings.gate.eval_min_score) == (of_part, None)
