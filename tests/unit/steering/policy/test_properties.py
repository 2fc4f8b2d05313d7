"""What must not matter to the answer does not, and no input raises."""

from __future__ import annotations

import random
import shlex
import string
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_agent_eval.steering.policy.detection import (
    MAX_TEXT_CHARACTERS,
    detect_in_argv,
    detect_in_text,
)
from ci_agent_eval.steering.policy.model import Rules
from tests.call_count import count_calls
from tests.tables import each_row
from tests.unit.steering.policy.test_cases import answer, cases

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
NAMES = st.text(string.ascii_uppercase, min_size=1, max_size=6).filter(lambda n: n != "IFS")
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


@given(st.sampled_from(COMMANDS), st.dictionaries(NAMES, st.text(max_size=8), max_size=3))
def test_assignments_before_it_change_no_answer(case, variables):
    expected, words = case
    before = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())

    assert of(f"{before} {shlex.join(words)}") == expected


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


@given(st.data(), st.sampled_from(COMMANDS))
def test_spacing_and_quoting_change_no_intent(data, case):
    _, words = case
    blanks = st.sampled_from([" ", "  ", "\t", " \\\n "])
    others = [draw for draw in QUOTES if "$'" not in draw("x")]
    text = "".join(data.draw(st.sampled_from(others))(word) + data.draw(blanks) for word in words)

    assert detect_in_text(text).intents == detect_in_text(shlex.join(words)).intents
    assert detect_in_text(text + "\n").intents == detect_in_argv(words).intents


@given(st.sampled_from(COMMANDS), st.sampled_from(WRAPPERS))
def test_what_runs_it_and_what_stands_around_it_change_no_intent(case, wrapper):
    _, words = case
    inner = shlex.join(words)
    found = detect_in_text(wrapper.format(inner))

    assert "cd " in wrapper or found.intents == detect_in_text(inner).intents


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


@settings(max_examples=2 * settings.default.max_examples)
@given(st.lists(st.one_of(PIECES, FRAGMENTS, ANY_TEXT), max_size=8))
def test_no_words_raise(words):
    finding = detect_in_argv(words)

    assert finding.pytest or not finding.full_suite


@settings(max_examples=settings.default.max_examples // 2)
@given(FRAGMENTS, SHELLS)
def test_the_same_text_gets_the_same_finding(text, shell):
    assert detect_in_text(text, shell=shell) == detect_in_text(text, shell=shell)


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
    detect_in_argv(
        ["python", "-c", "a = []\n" + "a += ['x']\n" * 1500 + "import pytest;pytest.main(a)"]
    )


@given(ANY_TEXT)
def test_no_python_text_raises(text):
    detect_in_argv(["python", "-c", f"import pytest; pytest.main({text}"])
    detect_in_argv(["python", "-c", f"import pytest; pytest.main({text!r})"])


@each_row("size", [MAX_TEXT_CHARACTERS + 1, 1_000_000])
def test_a_very_long_command_is_let_through_unread(size):
    command = "pytest " * (size // 7 + 1)
    finding = detect_in_text(command)

    assert not finding.pytest
    assert "not read" in finding.reason
    assert count_calls(lambda: detect_in_text(command)) < 100


GROWING = [
    ")",
    "A=(",
    "<<<",
    "a|",
    '"$(',
    "${X:-",
    "{a,b}",
    "X=$X$X;",
    "f(){ f; f; };f;",
    'A=("${A[@]}" "${A[@]}");',
    "echo pytest|sh;",
    "<<A ",
    '@"\n',
    "%X%",
    "set X=%X%%X%a&",
]


@pytest.mark.full
@each_row("shell", ["bash", "powershell", "cmd"])
@each_row("unit", GROWING)
def test_the_work_grows_no_faster_than_the_text(unit, shell):
    text = "X=ab;A=(a b);pytest;" + unit * (MAX_TEXT_CHARACTERS // len(unit) - 20)

    # The most that any of these takes is 21 calls a character.
    assert count_calls(lambda: detect_in_text(text, shell=shell)) < 32 * len(text)


def test_threads_share_nothing():
    texts = [shlex.join(words) for _, words in COMMANDS] * 2
    random.Random(1).shuffle(texts)
    alone = [detect_in_text(text) for text in texts]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(detect_in_text, texts)) == alone
