"""What must not matter to the answer does not, and no input raises."""

from __future__ import annotations

import shlex
import string

from hypothesis import given, settings
from hypothesis import strategies as st

from ci_agent_eval.steering.policy.detection import MAX_TEXT_CHARACTERS, detect_in_text
from ci_agent_eval.steering.policy.model import Rules
from tests.call_count import count_calls
from tests.tables import each_row
from tests.unit.steering.policy.test_cases import answer, cases, detect_in_argv

_PLAIN = frozenset(string.ascii_letters + string.digits + "-_=./:,@%+[] ")


def simple_commands() -> list[tuple[str, list[str]]]:
    """The cases of bash that are one plain command: the answer and the words."""
    found = []
    for case in cases():
        try:
            words = shlex.split(case.command)
        except ValueError:
            continue
        plain = set(case.command.replace('"', "").replace("'", "")) <= _PLAIN
        if words and case.shell == "bash" and plain and "=" not in words[0]:
            found.append((case.expected, words))
    return found


COMMANDS = simple_commands()
QUOTES = (
    shlex.quote,
    lambda word: "'" + word + "'",
    lambda word: '"' + word + '"',
    lambda word: "".join(f"\\{each}" for each in word) or "''",
    lambda word: "''" + shlex.quote(word) + '""',
    lambda word: "$'" + word.replace("\\", "\\\\") + "'",
)
WRAPPERS = (
    "env {}",
    "env A=1 {}",
    "timeout 60 {}",
    "nice -n 5 {}",
    "nohup {}",
    "time {}",
    "command {}",
    "sudo -u me {}",
    "docker exec -it app {}",
    "( {} )",
    "{{ {}; }}",
    "! {}",
    "if {}; then :; fi",
    "for i in 1; do {}; done",
    "cd . && {}",
    "true; {}",
    "echo $({})",
    "{} | tail -5",
    "{} || true",
    "{} && echo ok",
    "{} 2>&1",
    "{} > out.txt",
    "{} &",
    "{}\n",
    "  {}  ",
    "# first\n{}",
    "{} # last",
    "f() {{ {}; }}; f",
    "sh <<'EOF'\n{}\nEOF",
)


def of(text: str, **rules: object) -> str:
    return answer(detect_in_text(text, rules=Rules(**rules)))


@st.composite
def quoted(draw, words):
    return " ".join(draw(st.sampled_from(QUOTES))(word) for word in words)


@given(st.data(), st.sampled_from(COMMANDS))
def test_quoting_changes_no_answer(data, case):
    expected, words = case

    assert of(data.draw(quoted(words))) == expected


@given(st.sampled_from(COMMANDS), st.integers(1, 3))
def test_bash_c_around_it_changes_no_answer(case, depth):
    expected, words = case
    text = shlex.join(words)
    for _ in range(depth):
        text = f"bash -c {shlex.quote(text)}"

    assert of(text) == expected


@given(st.sampled_from(COMMANDS), st.lists(st.sampled_from(WRAPPERS), min_size=1, max_size=4))
def test_what_runs_it_and_what_stands_around_it_change_no_answer(case, wrappers):
    expected, words = case
    text = wrappers[0].format(shlex.join(words))
    for wrapper in wrappers[1:]:
        text = wrapper.format(f"sh -c {shlex.quote(text)}")

    assert of(text) == expected


@given(st.sampled_from(COMMANDS))
def test_words_get_the_answer_of_their_text(case):
    expected, words = case

    assert answer(detect_in_argv(words)) == expected


PIECES = st.sampled_from(
    [
        *("pytest", "-q", "-k", "--cov", "tests", ".", "a", "$X", "$@", "${A[@]}", "${X:-a}", "1"),
        *("'", '"', "`", "\\", "$(", ")", "(", "{", "}", "[", "]", "<<EOF\n", "\nEOF\n", "<<<"),
        *(" ", "\n", ";", "|", "&", "&&", "||", ">", "<", "#", "=", "X=", "f() ", "A=(", "$'"),
        *("if ", "then ", "fi", "for x in ", "do ", "done", "case ", "esac", "while ", "[[ "),
        *("bash -c ", "eval ", "alias t=", "xargs ", "find -exec ", "python -c ", "env -S "),
        *("%X%", "^", "@", "`\n", "@'\n", "\n'@", "<#", "#>", "--%", "iex ", "cmd /c ", "set X="),
        *("start ", "call ", "if exist x ", "function f ", "& ", "-enc ", "é", "\x00", "\ud800"),
    ]
)
FRAGMENTS = st.lists(PIECES, max_size=30).map("".join)
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=80)
SHELLS = st.sampled_from(["bash", "powershell", "cmd"])


@settings(max_examples=4 * settings.default.max_examples)
@given(st.one_of(FRAGMENTS, ANY_TEXT), SHELLS)
def test_no_text_raises(text, shell):
    for each in (text, f"pytest {text}", f"bash -c {shlex.quote(text)} # pytest"):
        finding = detect_in_text(each, shell=shell, rules=Rules(aliases=("make test", "")))

        assert finding.pytest or not finding.full_suite
        assert finding.reason


@each_row(
    "source",
    [
        "(" * 3000 + ")" * 3000,
        "[" * 150 + "]" * 150,
        "-" * 5000 + "1",
        "[]+" * 2000 + "[]",
        "x" + "[0]" * 2000,
        "x" + ".a" * 3000,
        "x" + "()" * 2000,
        "\0",
        "\\",
        "f'{'",
    ],
)
@each_row("call", ["pytest.main({})", "a = {}\npytest.main(a)", "{}"])
def test_no_python_source_raises(source, call):
    code = "import pytest, subprocess\n" + call.format(source)

    detect_in_text(f"python - <<'EOF'\n{code}\nEOF")
    detect_in_argv(["python", "-c", code])


def test_no_number_of_python_statements_raises():
    code = "a = []\n" + "a += ['x']\n" * 1500 + "import pytest;pytest.main(a)"
    detect_in_argv(["python", "-c", code])


@each_row("size", [MAX_TEXT_CHARACTERS + 1, 1_000_000])
def test_a_very_long_command_is_let_through_unread(size):
    command = "pytest " * (size // 7 + 1)
    finding = detect_in_text(command)

    assert not finding.pytest
    assert "not read" in finding.reason
    assert count_calls(lambda: detect_in_text(command)) < 100
